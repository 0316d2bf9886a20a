package rapi

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSettledUsersFileIsNotReadAgain: only when its last change is long past, and then
// until the next one, of whichever kind.
func TestSettledUsersFileIsNotReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plain pw write\n")
	f := OpenUsers(path, slog.New(slog.DiscardHandler))
	kept := func() bool {
		before := &Users{}
		f.users, f.text = before, nil // what is read makes new accounts
		return f.Current() == before
	}
	f.clock = func() time.Time { return time.Now().Add(settled) }
	if kept() || !kept() {
		t.Error("a file that nobody changes is not known again")
	}
	f.clock = time.Now
	if kept() {
		t.Error("a file that was changed a moment ago is not read")
	}
	f.clock = func() time.Time { return time.Now().Add(settled) }
	f.Current()
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for seen := f.sight; look(path, f.clock()) == seen; { // until the clock of the file system goes on
		write("other pw write\n")
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if !f.Current().Verify("other", "pw") {
		t.Error("an edit of the same size and time is not seen")
	}
}
