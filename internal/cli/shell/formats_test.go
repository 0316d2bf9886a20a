package shell

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/listing"
)

// TestFormats: each row of the table is taken, told by help, and shows data, or says why not; whatever is in none is refused, with their names.
func TestFormats(t *testing.T) {
	var flags Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Register(set)
	if usage := set.Lookup("output").Usage; usage != "how to show results: table, json, yaml, or csv for lists" {
		t.Errorf("help says %q", usage)
	}
	for _, f := range Formats {
		if flags.Output = f.Name; flags.Check() != nil {
			t.Errorf("%s is refused", f.Name)
		}
		if len(f.Options) > 0 && !slices.Contains(f.Options, "no-headers") {
			t.Errorf("%s has rows, and no line above them", f.Name)
		}
		var out bytes.Buffer
		sh := &Shell{Flags: Flags{Output: f.Name}, Out: &out}
		err := sh.Show(json.RawMessage(`{"id":9007199254740993,"text":"no"}`), func() error { return sh.Printf("for people") })
		switch {
		case f.Data == nil:
			if err != nil || out.String() != "for people" || sh.Structured() {
				t.Errorf("%s: %q, %v", f.Name, out.String(), err)
			}
		case f.Rows != nil:
			if err == nil || !strings.Contains(err.Error(), "only lists can be shown as "+f.Name) || f.Fields == nil {
				t.Errorf("%s: %q, %v", f.Name, out.String(), err)
			}
			if err := f.Rows(&out, &listing.Answer{}, listing.Options{}); err != nil {
				t.Errorf("%s: %v", f.Name, err)
			}
		case err != nil || !strings.Contains(out.String(), "9007199254740993") || !strings.ContainsAny(out.String(), `"'`) || !sh.Structured():
			t.Errorf("%s: %q, %v", f.Name, out.String(), err)
		}
	}
	flags.Output = "xml"
	if err := flags.Check(); err == nil || err.Error() != `--output must be table, json, yaml or csv, got "xml"` {
		t.Errorf("xml: %v", err)
	}
}
