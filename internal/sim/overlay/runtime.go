package overlay

import (
	_ "embed"
	"path/filepath"
	"slices"
)

// The scheduler is a function of a seed where nothing of it depends on real time, on the
// address of anything, or on a number that was drawn elsewhere. Of Go 1.26 that is, with
// one processor (GOMAXPROCS=1) and without garbage collection, but for these places. Each
// asks whether a simulation is on, so tests that do not simulate are as ever. What is kept by address has to be kept otherwise
// where its order counts.

//go:embed simulate.go.txt
var simulate string

// ofRuntime are the changes of Go's package runtime, and of who draws from it, by file.
var ofRuntime = []Edit{
	// The keys of hashes are drawn when a process starts: one is to be like another.
	{"rand.go", "	if len(startupRand) >= 16 &&\n", "	if simFixed(seed[:]) {\n	} else if len(startupRand) >= 16 &&\n"},
	// What maps draw, of which some are made when they are first needed: once in a process, and not in each history. Code that is
	// compiled draws it as others do who want random numbers, so these get a function of their own.
	{"rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n	if simOn {\n		return simMap()\n	}\n"},
	{"../math/rand/v2/rand.go", "//go:linkname runtime_rand runtime.rand\n", "//go:linkname runtime_rand runtime.simRand\n"},
	{"../math/rand/rand.go", "//go:linkname runtime_rand runtime.rand\n", "//go:linkname runtime_rand runtime.simRand\n"},
	{"../os/tempfile.go", "//go:linkname runtime_rand runtime.rand\n", "//go:linkname runtime_rand runtime.simRand\n"},
	// Which case of a select that could go on does.
	{"select.go", "		j := cheaprandn(uint32(norder + 1))\n", "		j := simOrder(uint32(norder + 1))\n"},
	// In which order a select locks its channels, waits for them and leaves them: that of their addresses. It counts where several
	// belong to timers, which take their places among others by it.
	{"chan.go", "	lock mutex\n}\n\ntype waitq struct {\n", "	lock mutex\n	made uintptr\n}\n\ntype waitq struct {\n"},
	{"chan.go", "	c.dataqsiz = uint(size)\n", "	c.dataqsiz = uint(size)\n	simChannels++\n	c.made = simChannels\n"},
	{"select.go", "	return uintptr(unsafe.Pointer(c))\n", "	return c.made\n"},
	// Which of several timers of one moment comes first.
	{"time.go", "			t.rand = cheaprand()\n", "			t.rand = simOrder(1 << 31)\n"},
	// A mutex that was waited for longer than a millisecond of real time is handed over.
	{"sema.go", "func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n	if simOn {\n		return 1\n	}\n"},
	// Which goroutine goes on.
	{"proc.go", "func runqget(pp *p) (gp *g, inheritTime bool) {\n", "func runqget(pp *p) (gp *g, inheritTime bool) {\n	if simOn {\n		return simNext(pp), false\n	}\n"},
	// Every so many steps, also counted before the simulation, another queue has its turn.
	{"proc.go", "	if pp.schedtick%61 == 0 && !sched.runq.empty() {\n", "	if !simOn && pp.schedtick%61 == 0 && !sched.runq.empty() {\n"},
	// Who lets others go first is drawn among them.
	{"proc.go", "	if preempted && sched.gcwaiting.Load() {\n", "	if simOn {\n		runqput(pp, gp, false)\n	} else if preempted && sched.gcwaiting.Load() {\n"},
	// Who runs for ten milliseconds of real time gives way, and who is in a system call loses its processor.
	{"proc.go", "func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n	if simOn {\n		return 0\n	}\n"},
}

// ofContext are changes of package context: contexts that end with another do so in the order in which they came, and not in
// that of a map of their addresses.
var ofContext = []Edit{
	{"../context/context.go", "	children map[canceler]struct{} // set", "	begun    uint64\n	children map[canceler]uint64 // set"},
	{"../context/context.go", "p.children = make(map[canceler]struct{})", "p.children = make(map[canceler]uint64)"},
	{"../context/context.go", "			p.children[child] = struct{}{}\n", "			p.begun++\n			p.children[child] = p.begun\n"},
	{"../context/context.go", "	for child := range c.children {\n", "	for range len(c.children) {\n		var child canceler\n		for next, at := range c.children {\n" +
		"			if child == nil || at < c.children[child] {\n				child = next\n			}\n		}\n		delete(c.children, child)\n"},
}

// Runtime returns the changes of the Go at a root (go env GOROOT), and the file that it
// is given.
func Runtime(goroot string) (edits []Edit, added map[string]string) {
	dir := filepath.Join(goroot, "src", "runtime")
	for _, e := range slices.Concat(ofRuntime, ofContext) {
		e.File = filepath.Join(dir, e.File)
		edits = append(edits, e)
	}
	return edits, map[string]string{filepath.Join(dir, "simulate.go"): simulate}
}
