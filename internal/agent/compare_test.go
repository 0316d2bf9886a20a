package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// asked is a check of a task of a type with its parameters.
func asked(t *testing.T, kind string, parameters, command any) Check {
	t.Helper()
	c := Check{Type: kind}
	for into, v := range map[*json.RawMessage]any{&c.Parameters: parameters, &c.Command: command} {
		if v == nil {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		*into = text
	}
	return c
}

// TestWhatAChecksEndMeans: 0 is as wanted, up to 125 differs, and all else is no answer.
func TestWhatAChecksEndMeans(t *testing.T) {
	a, here := tasked(t, t.TempDir()), testkit.OpenDir(t)
	for _, c := range []struct {
		command any
		differs string // the summary
		lines   []string
		code    fault.Code
		says    string
	}{
		{command: "echo all is well"},
		{command: "true >&2"},
		{command: "exit 1", differs: "the check exited with 1"},
		{command: "exit 2", differs: "the check exited with 2"},
		{command: "echo; echo ' it is 3'; echo not 4 >&2; exit 125", differs: "it is 3", lines: []string{"", " it is 3", "not 4"}},
		{command: "diff " + here + "/nowhere /dev/null", differs: "diff: " + here + "/nowhere: No such file or directory", lines: []string{"diff: " + here + "/nowhere: No such file or directory"}},
		{command: "if then", code: fault.Failed, says: "it is no command that a shell can read: "},
		{command: "no-such-program", code: fault.Failed, says: "it cannot be run (exit status 127): "},
		{command: "/etc/passwd", code: fault.Failed, says: "it cannot be run (exit status 126): "},
		{command: "kill -9 $$", code: fault.Failed, says: "it was ended by a signal"},
		{command: "exit 200", code: fault.Failed, says: "it was ended by a signal"},
		{command: map[string]any{"cmd": "sleep 600 & sleep 600", "timeout": 0.3}, code: fault.Failed, says: "the check took longer than 300ms on node node1 and was ended"},
		{command: map[string]any{"cmd": `echo "$1 $2 $V"; pwd; exit 1`, "args": []any{"it's", 3}, "env": map[string]any{"V": []int{1}}, "cwd": here},
			differs: "it's 3 [1]", lines: []string{"it's 3 [1]", here}},
		{command: map[string]any{"cmd": "true", "colour": "red"}, code: fault.Invalid, says: "colour"},
		{command: map[string]any{"cmd": " "}, code: fault.Invalid, says: "no command"},
		{command: map[string]any{"cmd": "true", "timeout": "11m"}, code: fault.Invalid, says: "up to 10m0s"},
		{command: map[string]any{"cmd": "true", "timeout": 0}, code: fault.Invalid, says: "up to 10m0s"},
		{command: map[string]any{"cmd": "true", "cwd": "x"}, code: fault.Invalid, says: "no absolute path"},
		{command: map[string]any{"cmd": "true", "cwd": here + "/none"}, code: fault.Failed, says: "cannot be run"},
		{command: 3, code: fault.Invalid, says: "cannot be read"},
		{command: nil, code: fault.Unsupported, says: "a task of type shell has no check"},
	} {
		found, err := a.Compare(t.Context(), asked(t, "shell", map[string]any{"cmd": "x"}, c.command))
		if c.code != "" {
			if !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) || found.Differs {
				t.Errorf("%v: %+v, %v, want %s and %q", c.command, found, err, c.code, c.says)
			}
			continue
		}
		if err != nil || found.Differs != (c.differs != "") || found.Summary != c.differs || !slices.Equal(found.Difference, c.lines) || found.More {
			t.Errorf("%v: %+v, %v, want %q and %q", c.command, found, err, c.differs, c.lines)
		}
	}
}

// TestMuchThatDiffers bounds what is told, and never tells the half of a secret.
func TestMuchThatDiffers(t *testing.T) {
	a := tasked(t, t.TempDir())
	c := asked(t, "shell", nil, "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done; exit 1")
	found, err := a.Compare(t.Context(), c)
	if err != nil || len(found.Difference) != MostDifference || !found.More || found.Difference[99] != "line 99" {
		t.Errorf("%d lines, more %t, %v", len(found.Difference), found.More, err)
	}
	hidden := "secret-" + strings.Repeat("s", 40)
	c = asked(t, "shell", nil, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo %s; exit 1", checkOutput-20, hidden))
	c.Hidden = secret.NewValues([]string{hidden})
	found, err = a.Compare(t.Context(), c)
	if err != nil || !found.More || strings.Contains(fmt.Sprint(found), "secret-") || len([]rune(found.Difference[0])) != longestShown {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestAFileThatDiffers compares files with what upload_file would write.
func TestAFileThatDiffers(t *testing.T) {
	a, here := tasked(t, t.TempDir()), testkit.OpenDir(t)
	path := filepath.Join(here, "f")
	const password = "correct-horse"
	for _, c := range []struct {
		is, want   string
		permission any
		mode       os.FileMode
		summary    string // of what differs, behind the path; empty if nothing does
		lines      []string
	}{
		{is: "a\nb\n", want: "a\nb\n"},
		{is: "a\nb\n", want: "a\nc\n", summary: ": a line differs", lines: []string{"@@ -1,2 +1,2 @@", " a", "-b", "+c"}},
		{is: "a", want: "a\n", summary: ": a line differs", lines: []string{"@@ -1 +1 @@", "-a", `\ No newline at end of file`, "+a"}},
		{is: "", want: "a\n", summary: ": 0 of its lines are not wanted, and 1 that are wanted are not there", lines: []string{"@@ -0,0 +1 @@", "+a"}},
		{is: "a\x00b", want: "a\x00c", summary: " differs from byte 3 on"},
		{is: strings.Repeat("x", comparedBytes+1), want: "x", summary: " differs from byte 2 on"},
		{is: "x", want: strings.Repeat("x", 2*comparedBytes), summary: " differs from byte 2 on"},
		{is: strings.Repeat("x", 2*comparedBytes), want: strings.Repeat("x", 2*comparedBytes)},
		{is: "a\n", want: "a\n", permission: "0600", mode: 0o600},
		{is: "a\n", want: "a\n", permission: "0600", mode: 0o644, summary: ": its permissions are 0644, not 0600"},
		{is: "a\n", want: "a\n", permission: "4755", mode: 0o755, summary: ": its permissions are 0755, not 4755"},
		{is: "a\n", want: "b\n", mode: 0o600, summary: ": a line differs; its permissions are 0600, not 0644", lines: []string{"@@ -1 +1 @@", "-a", "+b"}},
		// Of the old password nobody knows that it is one, but by its place.
		{is: "user x\npass hunter2\n", want: "user x\npass " + password + "\n", summary: ": a line differs", lines: []string{"@@ -1,2 +1,2 @@", " user x", "-<redacted>", "+pass <redacted>"}},
		{is: "user: x\ndb_password: hunter2\n", want: "user: y\n", summary: ": 2 of its lines are not wanted, and 1 that are wanted are not there",
			lines: []string{"@@ -1,2 +1 @@", "-user: x", "-db_password: <redacted>", "+user: y"}},
	} {
		if err := os.WriteFile(path, []byte(c.is), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.mode == 0 {
			c.mode = usualPermissions
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		ask := asked(t, "upload_file", map[string]any{"path": path, "data": c.want, "permissions": c.permission}, nil)
		ask.Hidden = secret.NewValues([]string{password})
		found, err := a.Compare(t.Context(), ask)
		summary := ""
		if c.summary != "" {
			summary = path + c.summary
		}
		if err != nil || found.Differs != (c.summary != "") || found.Summary != summary || !slices.Equal(found.Difference, c.lines) {
			t.Errorf("%.40q to %.40q: %+v, %v, want %q and %q", c.is, c.want, found, err, summary, c.lines)
		}
	}
}

// TestWhereThereIsNoFile: what is not there differs, and so does what is no file; what cannot be read is not known.
func TestWhereThereIsNoFile(t *testing.T) {
	a, here := tasked(t, t.TempDir()), testkit.OpenDir(t)
	if err := os.WriteFile(filepath.Join(here, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(here, "loop")); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(here, "pipe") // who opens it waits for ever
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(here, "none"): " is not there", filepath.Join(here, "file", "below"): " is not there", here: " is no file that holds anything", pipe: " is no file that holds anything",
	} {
		found, err := a.Compare(t.Context(), asked(t, "upload_file", map[string]any{"path": path, "data": "x"}, nil))
		if err != nil || !found.Differs || found.Summary != path+want {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
	}
	_, err := a.Compare(t.Context(), asked(t, "upload_file", map[string]any{"path": filepath.Join(here, "loop"), "data": "x"}, nil))
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "cannot be read on node node1") {
		t.Errorf("of a link to itself: %v", err)
	}
	_, err = a.Compare(t.Context(), asked(t, "upload_file", map[string]any{"path": "x"}, nil))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("without data: %v", err)
	}
}

// TestChecksLeaveNothing: neither files, nor processes when nobody waits for the answer any more.
func TestChecksLeaveNothing(t *testing.T) {
	dir := t.TempDir()
	a := tasked(t, dir)
	files := func() (all []string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			all = append(all, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := files()
	pipe, awaitGone := held(t)
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := a.Compare(ctx, asked(t, "shell", nil, "exec 5> "+pipe+"; sleep 600 & echo begun > "+begun+"; sleep 600"))
		result <- err
	}()
	if _, err := os.ReadFile(begun); err != nil { // which waits for who writes to it
		t.Fatal(err)
	}
	leave(fault.New(fault.Canceled, "nobody needs it"))
	if err := <-result; !fault.Is(err, fault.Canceled) {
		t.Errorf("who left is told %v", err)
	}
	awaitGone()
	if after := files(); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
}

// TestChecksAreRefusedUnlessTheNodeAllowsTasks: they are commands as well.
func TestChecksAreRefusedUnlessTheNodeAllowsTasks(t *testing.T) {
	a := tasked(t, t.TempDir())
	a.cfg.Tasks = false
	_, err := a.Compare(t.Context(), asked(t, "shell", nil, "true"))
	if !fault.Is(err, fault.WrongState) {
		t.Error(err)
	}
}
