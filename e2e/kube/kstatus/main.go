// Says what kstatus, the judge of Flux and other tools, makes of an object: one JSON object on standard input, its
// status and message on standard output, parted by a tab.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		fail(err)
	}
	result, err := status.Compute(object)
	if err != nil {
		fail(err)
	}
	fmt.Printf("%s\t%s\n", result.Status, result.Message)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
