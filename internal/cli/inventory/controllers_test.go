package inventory

import (
	"strings"
	"testing"
	"time"
)

// TestWhatBecomesOfControllers: people are told what is, or would be, of a controller that is drained or forgotten, in 80 columns.
func TestWhatBecomesOfControllers(t *testing.T) {
	why := "drained by root over luxi on 2030-01-02T12:00:00Z: new memory"
	day := time.Date(2030, 1, 2, 12, 0, 0, 0, time.Local)
	for _, c := range []struct{ got, want string }{
		{controllerDrain{Name: "c1", Drained: true, Changed: true, Leads: true, To: "c2", Why: why}.text(false), "c1 is drained, and gives the lead to c2.\n"},
		{controllerDrain{Name: "c1", Drained: true, Changed: true, Leads: true, To: "c2"}.text(true), "c1 would be drained, and gives the lead to c2.\n"},
		{controllerDrain{Name: "c1", Drained: true, Changed: true, Leads: true}.text(false), "c1 is drained, and leads on, for no other could lead.\n"},
		{controllerDrain{Name: "c1", Drained: true, Changed: true}.text(false), "c1 is drained: it leads only if no other could.\n"},
		{controllerDrain{Name: "c1", Drained: true, Why: why}.text(true), "c1 is " + why + "\n"},
		{controllerDrain{Name: "c1", Changed: true}.text(false), "c1 is drained no more: it may lead again.\n"},
		{controllerDrain{Name: "c1", Changed: true}.text(true), "c1 would be drained no more: it may lead again.\n"},
		{controllerDrain{Name: "c1"}.text(false), "c1 is not drained.\n"},
		{forgotten{Name: "c9", Address: "10.0.0.9:5081", Started: day}.text(false), "c9 (at 10.0.0.9:5081, started 2030-01-02 12:00) is forgotten.\n"},
		{forgotten{Name: "c9", Address: "h:1", Started: day, Drained: true}.text(true),
			"c9 (at h:1, started 2030-01-02 12:00) would be forgotten, drained as it is.\n"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
		if len(strings.TrimSuffix(c.got, "\n")) > 80 {
			t.Errorf("more than 80 columns: %s", c.got)
		}
	}
}
