package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// task is what a child is to do; test/simulate/child_test.go says what it means.
type task struct {
	From   uint64 `json:"from"`
	Count  uint64 `json:"count"`
	Twice  uint64 `json:"twice"`
	Back   bool   `json:"back"`
	Shape  string `json:"shape"`
	Plan   string `json:"plan"`
	Stop   bool   `json:"stop"`
	Out    string `json:"out"`
	Orders int    `json:"orders"`
}

// mark begins the lines of a child that are for this program.
const mark = "SIMULATE "

// told is what a child says of a history.
type told struct {
	seed uint64
	hash string
	// broken is the invariant that broke first; "panic" if the process ended.
	broken string
}

// outcome is what a child came to.
type outcome struct {
	histories []told
	reached   map[string]int
	// differences say where seeds came to be two histories.
	differences []string
	// cut says by what a plan was cut down; empty if it was not.
	cut string
	// trouble is what a child said that ended in the midst of a history, which is the last.
	trouble string
}

// mostMemory is how many bytes of addresses a child may have. A fault can make a history that grows without end: it is broken
// by that, and the machine is not to be.
const mostMemory = 6 << 30

// child runs a program with a task, in a process of one processor.
func child(ctx context.Context, program string, do task) (*outcome, error) {
	text, err := json.Marshal(do)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.run", "^TestChild$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), "DROVER_SIMULATE="+string(text), "GOMAXPROCS=1")
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	lines, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		err = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: mostMemory, Max: mostMemory}, nil)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot run the simulation: %w", err)
	}
	o, running, err := read(bufio.NewScanner(lines), &trouble)
	ended := cmd.Wait()
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return o, nil //nolint:nilerr // it was given up; what it came to counts
	case running != 0 && ended != nil:
		o.histories = append(o.histories, told{seed: running, broken: "panic"})
		o.trouble = trouble.String()
	case ended != nil:
		return nil, fault.New(fault.Failed, "a simulation ended: %w\n%s", ended, trouble.String())
	}
	return o, nil
}

// read reads what a child says; running is the seed of a history that did not end.
func read(lines *bufio.Scanner, other *bytes.Buffer) (o *outcome, running uint64, err error) {
	o = &outcome{}
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	for lines.Scan() {
		line, ours := strings.CutPrefix(lines.Text(), mark)
		if !ours {
			fmt.Fprintln(other, line)
			continue
		}
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "begin":
			_, err = fmt.Sscan(rest, &running)
		case "end":
			var h told
			_, err = fmt.Sscan(rest, &h.seed, &h.hash)
			_, h.broken, _ = strings.Cut(rest, h.hash+" ")
			o.histories = append(o.histories, h)
			running = 0
		case "differ":
			o.differences = append(o.differences, rest)
		case "cut":
			var was, is, runs int
			_, err = fmt.Sscan(rest, &was, &is, &runs)
			o.cut = fmt.Sprintf("%d of %d faults are enough (%d histories)", is, was, runs)
		case "reached":
			err = json.Unmarshal([]byte(rest), &o.reached)
		}
		if err != nil {
			return nil, 0, fault.New(fault.Internal, "a simulation says %q: %w", lines.Text(), err)
		}
	}
	return o, running, lines.Err()
}
