package listing

import "testing"

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		width            int
	}{
		{"it fits", "one two\n", "one two\n", 7},
		{"no terminal", "one two three\n", "one two three\n", 0},
		{"at blanks", "one two three four\n", "one two\n  three\n  four\n", 8},
		{"behind its beginning", "  one two three\nx\n", "  one two\n    three\nx\n", 10},
		{"a long word stays whole", "a 0123456789abcdef b\n", "a\n  0123456789abcdef\n  b\n", 8},
		{"a long word alone", "0123456789abcdef\n", "0123456789abcdef\n", 8},
		{"blanks between columns stay", "a    b\n", "a    b\n", 6},
		{"colours take no room", "\x1b[1mone\x1b[0m two\n", "\x1b[1mone\x1b[0m two\n", 7},
		{"letters, not bytes", "äöü äöü\n", "äöü äöü\n", 7},
		{"no end of line", "one two", "one\n  two", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Fold(c.text, c.width); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
