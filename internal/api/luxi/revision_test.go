package luxi

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestWatchRefusesWhatItCannotFollow(t *testing.T) {
	r := newRig(t)
	for _, with := range []map[string]any{
		{"watch": 0, "group_by": []string{"status"}}, {"watch": 0, "figures": []string{"count"}}, {"watch": 0, "explain": true}, {"watch": 0, "after": "x"},
	} {
		err := r.client().Call(t.Context(), "Query", []any{"job", []string{"id"}, nil, with}, nil)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", with, err)
		}
	}
}

// Clients that send a revision are told the one that shows what they changed; the
// answers of others are as they were.
func TestRevisionsAreForThoseWhoAsk(t *testing.T) {
	r := newRig(t)
	ask := func(more string) string {
		t.Helper()
		c := r.dial()
		c.send(`{"method":"SetDrainFlag","args":[true]` + more + "}\x03")
		frame, err := c.frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		return string(frame)
	}
	if got := ask(""); got != `{"success":true,"result":true}` {
		t.Errorf("without: %s", got)
	}
	if got := ask(`,"revision":0`); !strings.HasPrefix(got, `{"success":true,"result":true,"revision":`) {
		t.Errorf("with: %s", got)
	}
	if got := ask(`,"revision":-1`); !strings.Contains(got, "'revision'") {
		t.Errorf("a bad one: %s", got)
	}
}
