// Package traces shows what Drover begins on nodes from outside of everything that Drover keeps: scripts and commands that
// leave a mark in a file at each tenth of a second, and a look at the file for two that worked on one thing at once.
package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// marks is a piece of a script for /bin/sh that leaves so many marks of a run on a thing. Each run has a name of its own.
const marks = `read -r run </proc/sys/kernel/random/uuid
n=0
while [ $n -lt %d ] || test -e '%s.hold'; do echo "%s $run" >>'%[2]s'; sleep 0.1; n=$((n+1)); done
`

// Marks is a text for /bin/sh that works on a thing for so many tenths of a second, and on while somebody holds it, and leaves a
// mark in the file at each.
func Marks(file, thing string, tenths int) string { return fmt.Sprintf(marks, tenths, file, thing) }

// Hold has what leaves marks in a file go on until the function is called that it returns.
func Hold(t testing.TB, file string) (end func()) {
	t.Helper()
	if err := os.WriteFile(file+".hold", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() { _ = os.Remove(file + ".hold") }
}

// InstallOS gives a node an operating system whose creation script works on its instance for so many tenths of a second. The
// directory is that of the node's files.
func InstallOS(t testing.TB, node, name, file string, tenths int) {
	t.Helper()
	dir := filepath.Join(node, "os", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ganeti_api_version": "20\n",
		"create":             "#!/bin/sh\n" + Marks(file, "$INSTANCE_NAME", tenths),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// Run is one run on a thing, with the number of its marks.
type Run struct {
	Thing, Name string
	Marks       int
}

// Read returns the runs that left marks in a file, in the order in which they began, and what is wrong with them: each mark of
// a run that another has followed on the same thing is one that it should not have lived to leave.
func Read(t testing.TB, file string) (runs []Run, wrong []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	newest, at := map[string]int{}, map[string]int{} // by thing, and by name
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		thing, name, ok := strings.Cut(line, " ")
		if !ok {
			continue // nothing was begun
		}
		i, seen := at[name]
		if !seen {
			i = len(runs)
			runs = append(runs, Run{Thing: thing, Name: name})
			at[name], newest[thing] = i, i
		}
		runs[i].Marks++
		if newest[thing] != i {
			wrong = append(wrong, fmt.Sprintf("mark %d: %s works on %s, on which %s had begun", n+1, name, thing, runs[newest[thing]].Name))
		}
	}
	return runs, wrong
}
