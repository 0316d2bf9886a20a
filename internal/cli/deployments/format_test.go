package deployments

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormatOfFiles: files are written in their place, as whose they are, and only where that is asked for; those that are wrong keep no other from it.
func TestFormatOfFiles(t *testing.T) {
	const ugly, fine = "- type: stage\n  id:   a\n", "- id: a\n  type: stage\n"
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name, text string) {
		t.Helper()
		if got, err := os.ReadFile(file(name)); err != nil || string(got) != text {
			t.Errorf("%s is %q, want %q (%v)", name, got, text, err)
		}
	}
	run := func(fails bool, args ...string) (out, told string) {
		t.Helper()
		cmd, o, e := newFormat(), &bytes.Buffer{}, &bytes.Buffer{}
		cmd.SetOut(o)
		cmd.SetErr(e)
		cmd.SetIn(strings.NewReader(ugly))
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); (err != nil) != fails {
			t.Errorf("%q: %v", args, err)
		}
		return o.String(), e.String()
	}
	put("ugly.yaml", ugly)
	put("fine.yaml", fine)
	put("wrong.yaml", "- a\n b: c: d")
	if err := os.Symlink("ugly.yaml", file("link.yaml")); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(true, "--check", file("ugly.yaml"), file("fine.yaml")); out != file("ugly.yaml")+"\n" {
		t.Errorf("named is %q", out)
	}
	if out, _ := run(false, "--diff", file("ugly.yaml"), file("fine.yaml")); !strings.HasSuffix(out, "@@ -1,2 +1,2 @@\n-- type: stage\n-  id:   a\n+- id: a\n+  type: stage\n") {
		t.Errorf("the difference is %q", out)
	}
	run(true, "--check", "--diff", file("ugly.yaml"))
	has("ugly.yaml", ugly)
	if out, _ := run(false, "-"); out != fine {
		t.Errorf("of standard input came %q", out)
	}
	if out, told := run(true, file("wrong.yaml"), file("link.yaml"), file("fine.yaml")); out != file("link.yaml")+"\n" || !strings.Contains(told, "error: "+file("wrong.yaml")+":2: bad YAML") {
		t.Errorf("told is %q and %q", out, told)
	}
	has("ugly.yaml", fine)
	has("wrong.yaml", "- a\n b: c: d")
	info, err := os.Lstat(file("link.yaml"))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v (%v)", info, err)
	}
	if info, err := os.Stat(file("ugly.yaml")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v (%v)", info, err)
	}
	run(false, "--check", file("ugly.yaml"))
	if left, err := filepath.Glob(file(".*")); err != nil || len(left) > 0 {
		t.Errorf("left is %q (%v)", left, err)
	}
	run(true, file("nowhere.yaml"))
	run(true)
}
