#!/usr/bin/env bash
# Makes the Go stubs from proto/ into gen/. Needs Go and a Python with grpcio-tools (it ships protoc): PYTHON names it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python=${PYTHON:-python3}
proto=../../proto
module=tidemill.dev/examples/go
files=(common producer consumer metadata admin group)
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
args=()
names=()
for f in "${files[@]}"; do
    names+=("tidemill/v1/$f.proto")
    for kind in go go-grpc; do
        args+=("--${kind}_opt=Mtidemill/v1/$f.proto=$module/gen/tidemillv1")
    done
done
rm -rf gen
mkdir -p gen
"$python" -m grpc_tools.protoc -I"$proto" \
    --plugin=protoc-gen-go="$bin/protoc-gen-go" --plugin=protoc-gen-go-grpc="$bin/protoc-gen-go-grpc" \
    --go_out=. --go_opt=module="$module" --go-grpc_out=. --go-grpc_opt=module="$module" \
    "${args[@]}" "${names[@]}"
