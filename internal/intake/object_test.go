package intake_test

import (
	"errors"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

func TestObjectsAskForWhatIsDone(t *testing.T) {
	o := intake.Object{
		"done": {Done: true}, "so": {So: []string{`"default"`, `[{"name":1}]`}, Why: "there is one"},
		"in": {Done: true, In: intake.Object{"done": {Done: true}}}, "bare": {Done: true, In: intake.Object{}},
	}
	for text, field := range map[string]string{
		`{}`: "", `{"done":{"what":"ever"}}`: "", `{"so":"default"}`: "", `{"so":[ {"name": 1} ]}`: "", `{"so":null,"x":"","y":[],"z":{},"a":false}`: "",
		`{"in":{"done":1}}`: "", `{"in":[{"done":1},{}]}`: "", `{"in":null,"bare":{}}`: "", `no JSON`: "",
		`{"so":"other"}`: "so", `{"x":0}`: "x", `{"x":true}`: "x", `{"Done":1}`: "Done", `{"DONE":null}`: "DONE", `{"in":{"done":1,"more":2}}`: "more", `{"in":[{},{"more":2}]}`: "more",
		`{"in":"text"}`: "in", `{"in":[1]}`: "in", `{"bare":{"x":1}}`: "x", `{"bare":true}`: "bare", `[{"x":1}]`: "x", `"text"`: "body",
	} {
		err := o.Check([]byte(text))
		got := ""
		if f, is := errors.AsType[*fault.Error](err); is {
			got = f.Field
		}
		if got != field || field != "" && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v at %q, want %q", text, err, got, field)
		}
	}
}
