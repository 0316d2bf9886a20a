package textdiff

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

func TestUnified(t *testing.T) {
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""},
		{"a\nb\n", "a\nb\n", ""},
		{"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
		{"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -7,4 +8,3 @@\n 7\n 8\n 9\n-10\n"},
	} {
		want := c.want
		if want != "" {
			want = "--- x\n+++ y\n" + want
		}
		if got := Unified("x", "y", c.before, c.after); got != want {
			t.Errorf("%q to %q:\n%s\nwant\n%s", c.before, c.after, got, want)
		}
	}
}

// applied puts hunks in their place in a text.
func applied(t *testing.T, text string, all []Hunk) string {
	t.Helper()
	lines, at, out := split(text), 0, &strings.Builder{}
	for _, h := range all {
		first := h.Old - 1
		for ; at < first; at++ {
			out.WriteString(lines[at])
		}
		if n := strings.Count(out.String(), "\n") + 1; n != h.New {
			t.Errorf("%s: the hunk begins in line %d of the second text", h.Header(), n)
		}
		for _, l := range h.Lines {
			whole := l.Text
			if !l.Open {
				whole += "\n"
			}
			if l.Mark != '+' {
				if lines[at] != whole {
					t.Fatalf("%s: line %d of the first text is %q, not %q", h.Header(), at+1, lines[at], whole)
				}
				at++
			}
			if l.Mark != '-' {
				out.WriteString(whole)
			}
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

// TestHunksLeadFromOneToTheOther takes random texts, and some that differ too much for the shortest difference.
func TestHunksLeadFromOneToTheOther(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	text := func(lines, words int) string {
		b := &strings.Builder{}
		for range lines {
			fmt.Fprintln(b, draw.IntN(words))
		}
		return strings.TrimSuffix(b.String(), strings.Repeat("\n", draw.IntN(2)))
	}
	for i := range 600 {
		lines, words := draw.IntN(30), 1+draw.IntN(6)
		if i%300 == 299 {
			lines, words = 2*mostEdits, 1<<30
		}
		before, after, context := text(lines, words), text(lines, words), draw.IntN(4)
		all := Between(before, after, context)
		if got := applied(t, before, all); got != after {
			t.Fatalf("%q to %q came to %q", before, after, got)
		}
		for _, h := range all {
			marks := ""
			for _, l := range h.Lines {
				marks += string(l.Mark)
			}
			around := strings.Repeat(" ", context+1)
			if strings.HasPrefix(marks, around) || strings.HasSuffix(marks, around) || strings.Contains(marks, strings.Repeat(" ", 2*context+1)) {
				t.Fatalf("%q to %q with %d around: %q", before, after, context, marks)
			}
		}
	}
}

// TestPatchReadsThem has the program for patches apply differences, where there is one.
func TestPatchReadsThem(t *testing.T) {
	program, err := exec.LookPath("patch")
	if err != nil {
		testkit.Missingf(t, "there is no program for patches (Debian's package patch)")
	}
	draw := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var before []string
		for range 40 {
			before = append(before, strconv.Itoa(draw.IntN(9)))
		}
		after := slices.Clone(before)
		for range 4 {
			at := draw.IntN(len(after))
			after = slices.Insert(after, at, "new")
			after = slices.Delete(after, draw.IntN(len(after)-1), len(after)-1)
		}
		a, b := strings.Join(before, "\n")+"\n", strings.Join(after, "\n")
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(a), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-s", file)
		cmd.Stdin = strings.NewReader(Unified("f", "f", a, b))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != b {
			t.Fatalf("%q, want %q (%v)", got, b, err)
		}
	}
}
