package nodedriver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// The kernel is told by one letter, and not before the reset; where it cannot be, it is refused before.
func TestPowercycleBySysrq(t *testing.T) {
	trigger := filepath.Join(t.TempDir(), "trigger")
	if _, err := powercycle(sysrq, trigger)(); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "takes root") {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reset, err := powercycle(sysrq, trigger)()
	if err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(trigger); err != nil || len(said) > 0 {
		t.Errorf("before it the kernel is told %q, %v", said, err)
	}
	if err := reset(t.Context()); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(trigger); err != nil || string(said) != "b" {
		t.Errorf("the kernel is told %q, %v", said, err)
	}
}

// A program runs when it is time, without arguments; what it fails with is told. One that others could have changed does not run.
func TestPowercycleByAProgram(t *testing.T) {
	dir := t.TempDir()
	program, ran := filepath.Join(dir, "reset"), filepath.Join(dir, "ran")
	write := func(text string, mode os.FileMode) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(program, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("echo $# >"+ran, 0o700)
	reset, err := powercycle(program, "")()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran before its time")
	}
	if err := reset(t.Context()); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(ran); err != nil || string(said) != "0\n" {
		t.Errorf("it left %q, %v", said, err)
	}
	write("yes | head -c 100000; echo no way >&2; exit 3", 0o700)
	if err := reset(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") || len(err.Error()) > 5000 {
		t.Errorf("it fails with %.300v", err)
	}
	write("touch "+ran, 0o777)
	if _, err := powercycle(program, "")(); !fault.Is(err, fault.WrongState) {
		t.Errorf("one that everybody may change: %v", err)
	}
	if _, err := powercycle(filepath.Join(dir, "nosuch"), "")(); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if powercycle("", "") != nil {
		t.Error("a machine is switched off though nobody has said how")
	}
}
