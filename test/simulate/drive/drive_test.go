package main

import (
	"bufio"
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/overlay"
)

// TestKnownFaultsFit: each text that a known fault changes is there once. Who moved or
// changed it mends the pair in faults.go.
func TestKnownFaultsFit(t *testing.T) {
	names := map[string]bool{}
	for _, f := range knownFaults {
		if names[f.name] || f.what == "" {
			t.Errorf("%s is there twice, or says nothing", f.name)
		}
		names[f.name] = true
		if _, err := overlay.Write(t.TempDir(), below("../../..", f.edits), nil); err != nil {
			t.Errorf("%s: %v", f.name, err)
		}
	}
}

// TestWhatAChildSays is read, also when it ends in the midst of a history.
func TestWhatAChildSays(t *testing.T) {
	text := "SIMULATE begin 7\nhello\nSIMULATE end 7 00ff \nSIMULATE begin 8\nSIMULATE end 8 0abc two words broke\n" +
		"SIMULATE differ 8 \"a b\" \"a c\"\nSIMULATE cut 5 1 30\nSIMULATE reached {\"a\":2}\nSIMULATE begin 9\n"
	var other bytes.Buffer
	o, running, err := read(bufio.NewScanner(strings.NewReader(text)), &other)
	want := &outcome{histories: []told{{7, "00ff", ""}, {8, "0abc", "two words broke"}}, reached: map[string]int{"a": 2}, cut: "1 of 5 faults are enough (30 histories)",
		differences: []string{`8 "a b" "a c"`}}
	if err != nil || running != 9 || !reflect.DeepEqual(o, want) || other.String() != "hello\n" {
		t.Errorf("%+v, %d, %v, %q", o, running, err, other.String())
	}
	if h := firstBroken(o); h == nil || h.seed != 8 {
		t.Errorf("%+v broke first", h)
	}
	if _, _, err := read(bufio.NewScanner(strings.NewReader("SIMULATE begin x\n")), &other); !fault.Is(err, fault.Internal) {
		t.Errorf("what makes no sense: %v", err)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range []string{"", "replay", "replay x", "run 5", "power nobody", "overlay", "repeat", "repeat 0", "other"} {
		d := driver{out: &bytes.Buffer{}, dir: t.TempDir()}
		if err := d.run(t.Context(), strings.Fields(args)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestTheLastLine is for programs.
func TestTheLastLine(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"timeline.txt": "what happened\n", "why.txt": "the reason\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for broken, want := range map[string]string{"": "seed 7: 00ff ok", "it": "seed 7: 00ff failed"} {
		var out bytes.Buffer
		err := driver{out: &out}.tellOne(&outcome{histories: []told{{7, "00ff", broken}}}, dir)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if lines[len(lines)-1] != want || (err == nil) != (broken == "") {
			t.Errorf("%q: %v, %v", broken, lines, err)
		}
	}
}

// TestSeedsThatAreTwoHistories are told, and those that were lived through once alone do not count.
func TestSeedsThatAreTwoHistories(t *testing.T) {
	first := map[uint64]told{1: {1, "aa", ""}, 2: {2, "bb", ""}, 3: {3, "cc", "it"}, 4: {4, "dd", ""}}
	for text, again := range map[string]told{"3 seeds, 0 differences": {2, "bb", ""}, "3 seeds, 1 differences": {2, "bc", ""}} {
		var out bytes.Buffer
		err := driver{out: &out}.tellDifferences(first, map[uint64]told{1: {1, "aa", ""}, 2: again, 3: {3, "cc", "it"}})
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); lines[len(lines)-1] != text || (err == nil) != (again == first[2]) {
			t.Errorf("%v: %v, want %q", lines, err, text)
		}
	}
}
