package daemon

import (
	"fmt"
	"strings"
	"testing"
)

// TestRecentKeepsTheNewestLines: what is kept is the end of what was written, in whole lines, within the bound.
func TestRecentKeepsTheNewestLines(t *testing.T) {
	const most = 100
	r, all := NewRecent(most), ""
	for i := range 1000 {
		line := strings.Repeat("x", i%17) + fmt.Sprintln(i)
		all += line
		if n, err := r.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
		text := string(r.Text())
		kept, cut := strings.CutPrefix(text, "... older lines are not kept\n")
		switch {
		case !strings.HasSuffix(all, kept), len(kept) > most, cut != (len(all) > most):
			t.Fatalf("after %d bytes it keeps %q", len(all), text)
		case cut && !strings.HasSuffix(strings.TrimSuffix(all, kept), "\n"):
			t.Fatalf("%q begins within a line", kept)
		case cut && len(kept) < most-20:
			t.Fatalf("it keeps %d bytes of %d", len(kept), most)
		}
	}
	if _, err := r.Write([]byte(strings.Repeat("y", 3*most) + "\n")); err != nil || len(r.Text()) > most {
		t.Errorf("a line that is too long leaves %q, %v", r.Text(), err)
	}
}
