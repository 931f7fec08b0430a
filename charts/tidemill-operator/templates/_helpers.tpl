{{- define "tidemill-operator.name" -}}
{{- if contains "tidemill-operator" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-tidemill-operator" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tidemill-operator.selector" -}}
app.kubernetes.io/name: tidemill-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidemill-operator.labels" -}}
{{ include "tidemill-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tidemill-operator.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "tidemill-operator.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "tidemill-operator.tag" -}}
{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
