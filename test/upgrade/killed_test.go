//go:build upgrade

package upgrade_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write the stores of testdata anew, killed by the program of before")

// holding has the program of before stop in a driver's call that a file names, before or behind its effect, and say so.
var holding = [2]string{
	"func (d *Driver) hook(c Call) error {\n",
	"func (d *Driver) hook(c Call) error {\n" +
		"\tif at, err := os.ReadFile(os.Getenv(\"DROVER_HOLD\")); err == nil && string(at) == fmt.Sprint(c.Method, \" \", c.Name, \" \", c.After) {\n" +
		"\t\t_ = os.WriteFile(os.Getenv(\"DROVER_HOLD\")+\".held\", nil, 0o600)\n\t\tselect {}\n\t}\n",
}

// TestKilledInEachOfTheTen kills the program of before between the steps of each opcode that has several, and has either program take
// over; with -update the stores are kept.
func TestKilledInEachOfTheTen(t *testing.T) {
	now, before := testkit.Build(t), buildOf(t, program{revision: noFormats, changes: map[string][2]string{"internal/hypervisor/fake/fake.go": holding}})
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) {
			data := shortDir(t)
			k.kill(t, before, data)
			archive, again := filepath.Join(t.TempDir(), "store.tar.gz"), shortDir(t)
			if *update {
				archive = filepath.Join("testdata", k.name+".tar.gz")
			}
			pack(t, data, archive)
			unpack(t, archive, again)
			k.isTaken(t, before, data, false)
			k.isTaken(t, now, again, true)
		})
	}
}

// kill has a program of before carry the opcode out until it holds, and kills it there.
func (k *killed) kill(t *testing.T, bin, data string) {
	t.Helper()
	hold := filepath.Join(data, "hold")
	t.Setenv("DROVER_HOLD", hold)
	waits := "if [ -e " + hold + " ]; then echo $$ >" + hold + ".new; mv " + hold + ".new " + hold + ".held; while [ -e " + hold + " ]; do sleep 0.1; done; fi"
	for _, node := range []string{"node1.drover.example", "node2.drover.example"} {
		os := filepath.Join(data, "nodes", node, "os", "held")
		write(t, filepath.Join(os, "ganeti_api_version"), "20\n", 0o644)
		for _, script := range []string{"create", "import", "export", "rename", "verify"} {
			write(t, filepath.Join(os, script), "#!/bin/sh\n"+waits+"\n", 0o755)
		}
		write(t, filepath.Join(os, "variants.list"), "", 0o644)
		write(t, filepath.Join(os, "parameters.list"), "", 0o644)
	}
	files := shortDir(t)
	write(t, filepath.Join(files, "prod.yaml"), "hosts: {\"1\": node1.drover.example}\nnodes: {\"1\": {uid: \"1\", roles: [web]}}\n", 0o644)
	write(t, filepath.Join(files, "tasks.yaml"), "- {id: a, type: shell, version: 2.1.0, role: [web], parameters: {cmd: '"+waits+"'}}\n", 0o644)
	d := startDev(t, bin, data)
	for i, args := range append(k.setup[:len(k.setup):len(k.setup)], k.command) {
		if i == len(k.setup) {
			write(t, hold, k.hold, 0o600)
		}
		args = append([]string{"--luxi", d.Ready.LUXI}, args...)
		for i := range args {
			if strings.HasSuffix(args[i], ".yaml") {
				args[i] = filepath.Join(files, args[i])
			}
		}
		if text, err := say(t, bin, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
	}
	for limit := time.Now().Add(4 * testkit.Patience()); ; {
		if _, err := os.Stat(hold + ".held"); err == nil {
			d.Kill()
			_ = d.Gone()
			break
		}
		if time.Now().After(limit) {
			t.Fatal("it was not held")
		}
	}
	for _, name := range []string{hold, hold + ".held"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for limit := time.Now().Add(4 * testkit.Patience()); runsIn(t, data); { // what the node runs goes on, and ends
		if time.Now().After(limit) {
			t.Fatal("what the node ran does not end")
		}
	}
}

// runsIn tells whether a process has a directory in its command line.
func runsIn(t *testing.T, dir string) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), dir) {
			return true
		}
	}
	return false
}

func write(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o750)
	if err == nil {
		err = os.WriteFile(name, []byte(text), mode)
	}
	if err == nil {
		err = os.Chmod(name, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pack writes what a controller leaves: its database and its nodes, without sockets, and without certificates and accounts, which are made
// again.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	to := tar.NewWriter(zipped)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !strings.HasPrefix(name, "nodes/") && !strings.Contains(name, ".db") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := to.WriteHeader(&tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	})
	for _, close := range []func() error{to.Close, zipped.Close} {
		if err == nil {
			err = close()
		}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(archive), 0o750)
	}
	if err == nil {
		err = os.WriteFile(archive, out.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
