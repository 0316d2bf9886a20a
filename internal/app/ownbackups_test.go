package app

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/testkit"
)

// said answers one request at a socket, whatever it asks, and returns the socket.
func said(t *testing.T, answer string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err = luxiwire.NewFrameReader(conn, 1<<20).Next(); err == nil {
			err = luxiwire.WriteFrame(conn, []byte(`{"success": true, "result": `+answer+`}`))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	return filepath.Join(dir, "s")
}

// TestABackupOnlyWhereItLeads: elsewhere nothing is made, which is said, and is no failure.
func TestABackupOnlyWhereItLeads(t *testing.T) {
	for _, tc := range []struct {
		answer, said string
		code         fault.Code
	}{
		{`{"asked": "c2", "leads": false}`, "nothing was done: c2 does not lead\n", ""},
		{`{"well": true}`, "", fault.Unsupported},
		{"", "", fault.Unavailable},
	} {
		for _, verb := range []string{"create", "verify"} {
			file := filepath.Join(t.TempDir(), "backup")
			socket := filepath.Join(t.TempDir(), "none")
			if tc.answer != "" {
				socket = said(t, tc.answer)
			}
			t.Setenv("DROVER_LUXI", socket)
			cmd := BackupCommand()
			var told strings.Builder
			cmd.SetOut(&told)
			cmd.SetErr(&told)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs([]string{verb, file, "--if-leading"})
			err := cmd.ExecuteContext(t.Context())
			if (err == nil) != (tc.code == "") || err != nil && !fault.Is(err, tc.code) || told.String() != tc.said {
				t.Errorf("%s where it is answered %s: %v, %q", verb, tc.answer, err, told.String())
			}
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s where it is answered %s made a backup", verb, tc.answer)
			}
		}
	}
}

// TestBackupsAreWhereTheConfigurationSays, unless somebody says otherwise; so is the controller of this machine.
func TestBackupsAreWhereTheConfigurationSays(t *testing.T) {
	t.Setenv("DROVER_LUXI", "")
	dir := t.TempDir()
	config := filepath.Join(dir, "drover.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf("backups = %q\nluxi = \"/run/other.sock\"\n", dir))
	if got, err := backupsAt(nil, config); err != nil || got != dir {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := ownSocket(&cobra.Command{}, config); err != nil || got != "/run/other.sock" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := backupsAt([]string{"x"}, config); err != nil || got != "x" {
		t.Errorf("%q, %v", got, err)
	}
	write("backups = \"\"\nluxi = \"\"\ndata = \"/data\"\n")
	if got, err := backupsAt(nil, config); !fault.Is(err, fault.Invalid) {
		t.Errorf("where none is named: %q, %v", got, err)
	}
	if got, err := ownSocket(&cobra.Command{}, config); err != nil || got != "/data/luxi.sock" {
		t.Errorf("%q, %v", got, err)
	}
	write(fmt.Sprintf("backups = %q\n", filepath.Join(dir, "none")))
	if got, err := backupsAt(nil, config); !fault.Is(err, fault.NotFound) {
		t.Errorf("where it is not there: %q, %v", got, err)
	}
}

// TestUnitsSayWhatThereIs: each command of the packaged units is one of this program, with options that there are, and systemd takes the units.
func TestUnitsSayWhatThereIs(t *testing.T) {
	units, err := filepath.Glob(filepath.Join(testkit.Root(t), "packaging/systemd/*"))
	if err != nil || len(units) < 6 {
		t.Fatal(units, err)
	}
	commands := 0
	for _, path := range units {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			words, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=/usr/bin/drover backup ")
			if !ok {
				continue
			}
			commands++
			cmd, rest, err := BackupCommand().Find(strings.Fields(words))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(path), words, err)
			}
		}
	}
	if commands != 3 {
		t.Errorf("the units make %d calls for backups", commands)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // nobody is there to ask
	}
	dir := t.TempDir()
	var names []string
	for _, path := range units { // the program is not where they say
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(path, "drover-backup") {
			names = append(names, filepath.Join(dir, filepath.Base(path)))
			err = os.WriteFile(names[len(names)-1], []byte(strings.ReplaceAll(string(text), "/usr/bin/drover", "/bin/true")), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify", "--man=no"}, names...)...).CombinedOutput(); err != nil || strings.Contains(string(out), dir) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestATrialDoesNotFillItsDisk, which may be that of the store: without room for all that it takes it is not begun.
func TestATrialDoesNotFillItsDisk(t *testing.T) {
	small, file := testkit.SmallDisk(t, "4m"), filepath.Join(t.TempDir(), "backup")
	img := &image.Image{Revision: 7, Objects: func(yield func(store.Object, error) bool) {
		yield(store.Object{Key: store.Key{Kind: "job", ID: "1"}, Revision: 7, Value: []byte(`"x"`)}, nil)
	}}
	if _, err := image.Create(file, img, time.Now(), false); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(small, ".drover-restored-1", "store"), 0o700); err != nil { // of one that was killed
		t.Fatal(err)
	}
	if _, err := tryRestore(t.Context(), file, small); !fault.Is(err, fault.Exhausted) {
		t.Errorf("without room: %v", err)
	}
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("left behind is %v, %v", left, err)
	}
	if count, err := tryRestore(t.Context(), file, t.TempDir()); err != nil || count == 0 {
		t.Errorf("with room: %d objects, %v", count, err)
	}
}
