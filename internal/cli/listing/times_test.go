package listing_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-project/drover/internal/cli/listing"
)

func TestTimesInAllUnits(t *testing.T) {
	for text, want := range map[string]string{
		`{"at":1795447341.3957555,"n":1795447341}`:                            `{"at":"2026-11-23T15:22:21.3957555Z","n":1795447341}`,
		`[{"at":1795447344501472},{"at":[1795447341,0]}]`:                     `[{"at":"2026-11-23T15:22:24.501472Z"},{"at":["2026-11-23T15:22:21Z",null]}]`,
		`{"x":{"at":1795447512259006023}}`:                                    `{"x":{"at":"2026-11-23T15:25:12.259006023Z"}}`,
		`{"at":0,"b":null,"c":"<\"&","d":12345678901234567890,"e":[],"f":{}}`: `{"at":null,"b":null,"c":"<\"&","d":12345678901234567890,"e":[],"f":{}}`,
		`{"parameters":{"at":1795447341},"at":1}`:                             `{"parameters":{"at":1795447341},"at":"1970-01-01T00:00:01Z"}`,
		`{"at":"2026"}`: `{"at":"2026"}`, `null`: `null`, `5`: `5`,
	} {
		got, err := listing.Times(json.RawMessage(text), "at")
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "{", `{"a"}`, "[1"} {
		if got, err := listing.Times(json.RawMessage(bad), "at"); err == nil {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
