package intake_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

type part struct {
	Name  string          `json:"name"`
	Of    *part           `json:"of,omitempty"`
	Parts []part          `json:"parts,omitempty"`
	By    map[string]part `json:"by,omitempty"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	Any   any             `json:"any,omitempty"`
	Bare  int
	common
}

type common struct {
	Size int `json:"size"`
}

// deep is a text that is nested so deep.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestRead(t *testing.T) {
	for text, want := range map[string]struct{ strict, open, field string }{
		`{"name":"x","of":{"name":"y"},"parts":[{"name":"z"}],"by":{"Name":{"name":"a"}},"raw":{"NAME":1},"any":{"NaMe":1},"Bare":1,"size":2}`: {},
		`null`:                  {},
		` {} `:                  {},
		`{"name":"x","name":1}`: {"the key 'name' is there twice", "the key 'name' is there twice", "name"},
		`{"parts":[{},{"of":{"name":"x","n\u0061me":"y"}}]}`: {"the key 'name' is there twice", "the key 'name' is there twice", "parts[1].of.name"},
		`{"any":[{"a":{"b":1,"b":2}}]}`:                      {"the key 'b' is there twice", "the key 'b' is there twice", "any[0].a.b"},
		`{"raw":{"a":1,"a":2}}`:                              {"the key 'a' is there twice", "the key 'a' is there twice", "raw.a"},
		`{"Name":"x"}`:                                       {"the key 'Name' is not written so (it is 'name')", "the key 'Name' is not written so (it is 'name')", "Name"},
		`{"bare":1}`:                                         {},
		`{"bare":1,"Bare":2}`:                                {"the key 'bare' is there twice", "the key 'bare' is there twice", "Bare"},
		`{"BARE":1}`:                                         {"the key 'BARE' is not written so (it is 'bare')", "the key 'BARE' is not written so (it is 'bare')", "BARE"},
		`{"by":{"x":{"SIZE":1}}}`:                            {"the key 'SIZE' is not written so (it is 'size')", "the key 'SIZE' is not written so (it is 'size')", "by.x.SIZE"},
		`{"\u017fize":1}`:                                    {"the key 'ſize' is not written so (it is 'size')", "the key 'ſize' is not written so (it is 'size')", "ſize"},
		`{"gone":1}`:                                         {"the key 'gone' means nothing here", "", "gone"},
		`{"common":{}}`:                                      {"the key 'common' means nothing here", "", "common"},
		`{"of":{"nmae":"x"}}`:                                {"the key 'nmae' means nothing here", "", "of.nmae"},
		`{} {}`:                                              {"there is more after the end of the JSON text", "there is more after the end of the JSON text", ""},
		`{}]`:                                                {"there is more after the end of the JSON text", "there is more after the end of the JSON text", ""},
		`{"any":` + deep(249) + `}`:                          {},
		`{"any":` + deep(250) + `}`:                          {"nested deeper than 250", "nested deeper than 250", "any" + strings.Repeat("[0]", 249)},
		``:                                                   {"ends too early", "ends too early", ""},
		`{"name":`:                                           {"ends too early", "ends too early", ""},
		`{"name":"x",}`:                                      {"it is not JSON, at byte 11", "it is not JSON, at byte 11", ""},
		`{"of":{"name":7}}`:                                  {"of.name: number is not what is expected here", "of.name: number is not what is expected here", "of.name"},
		`{"name":"` + "\xff" + `"}`:                          {"not UTF-8", "not UTF-8", ""},
		`{"name":"\ud800"}`:                                  {"half of a letter", "half of a letter", ""},
	} {
		for name, read := range map[string]func([]byte, any) error{"strict": intake.Read, "open": intake.ReadOpen} {
			words := want.strict
			if name == "open" {
				words = want.open
			}
			var got part
			err := read([]byte(text), &got)
			if words == "" {
				var same part
				if wrong := json.Unmarshal([]byte(text), &same); err != nil || wrong != nil || !reflect.DeepEqual(got, same) {
					t.Errorf("%s, %s: %v; it is %+v, and %+v to encoding/json (%v)", name, text, err, got, same, wrong)
				}
				continue
			}
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || (f.Code != fault.Invalid && f.Code != fault.TooLarge) || !strings.Contains(f.Error(), words) || f.Field != want.field && len(want.field) < 300 {
				t.Errorf("%s, %s: %v; want %q at %q", name, text, err, words, want.field)
			}
		}
	}
}

// FuzzRead: what is taken is what encoding/json makes of it, and has each key once.
func FuzzRead(f *testing.F) {
	f.Add(`{"name":"x","of":{"parts":[{"by":{"a":{"size":1}}}]}}`)
	f.Add(`{"any":{"a":1,"\u0061":2}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got, open, same part
		err := intake.Read([]byte(text), &got)
		if intake.ReadOpen([]byte(text), &open) != nil && err == nil {
			t.Errorf("%q is taken, but not where more may be there", text)
		}
		if err == nil && (json.Unmarshal([]byte(text), &same) != nil || !reflect.DeepEqual(got, same)) {
			t.Errorf("%q is %+v, and %+v to encoding/json", text, got, same)
		}
	})
}
