// Pairs measures the program of this tree beside one of an earlier revision: both run, and are asked for the same in turns, by fresh processes in each
// round. It tells how many times as long the newer one takes, and fails when something takes longer than it may.
//
//	go run ./bench/pairs [-rounds 5] [-cycles 200] [-most 1.05] REVISION
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/drover-project/drover/internal/bench"
)

func main() {
	rounds := flag.Int("rounds", 5, "how often both are started anew")
	cycles := flag.Int("cycles", 200, "how often in a round both are asked for the same")
	most := flag.Float64("most", 1.05, "fail when something takes more than so many times as long, in the median of all rounds")
	flag.Parse()
	if flag.NArg() != 1 || *rounds < 1 || *cycles < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), *rounds, *cycles, *most); err != nil {
		fmt.Fprintln(os.Stderr, "pairs:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

func run(ctx context.Context, revision string, rounds, cycles int, most float64) error {
	dir, err := os.MkdirTemp("", "drover-pairs")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left there is of no use to anybody
	programs := [2]string{filepath.Join(dir, "before"), filepath.Join(dir, "now")}
	if err := buildBefore(ctx, dir, revision, programs[0]); err != nil {
		return err
	}
	if err := build(ctx, ".", programs[1]); err != nil {
		return err
	}
	var all []measured
	for n := range rounds {
		if all, err = round(ctx, filepath.Join(dir, strconv.Itoa(n)), programs, n%2, cycles, all); err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d is over\n", n+1, rounds)
	}
	return tell(all, revision, rounds, most)
}

// buildBefore builds the program of an earlier revision.
func buildBefore(ctx context.Context, dir, revision, program string) error {
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	archive := filepath.Join(dir, "tree.tar")
	if err := do(ctx, ".", "git", "archive", "-o", archive, revision); err != nil {
		return err
	}
	if err := do(ctx, ".", "tar", "-xf", archive, "-C", tree); err != nil {
		return err
	}
	return build(ctx, tree, program)
}

// build builds the program of a tree, as those are that people use.
func build(ctx context.Context, tree, program string) error {
	return do(ctx, tree, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/drover")
}

func do(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// measured is one thing: how many times as long it took in each round, or how many times as much, and the middle of both.
type measured struct {
	name        string
	before, now []string
	times       []float64
}

// round measures fresh processes of both programs, of which one is started first.
func round(ctx context.Context, dir string, programs [2]string, first, cycles int, all []measured) ([]measured, error) {
	var running [2]*controller
	for _, i := range []int{first, 1 - first} {
		c, err := start(ctx, programs[i], filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		defer c.stop()
		running[i] = c
	}
	own := [2]float64{running[0].memory(), running[1].memory()}
	took, err := bench.Pair(ctx, running[0].ready, running[1].ready, bench.Amount{Cycles: cycles, Instances: 1000, Jobs: 1000})
	if err != nil {
		return nil, err
	}
	if all == nil {
		all = make([]measured, len(took)+2)
	}
	for i, t := range took {
		all[i].add(t.Name, bench.Median(t.Before).Round(time.Microsecond), bench.Median(t.Now).Round(time.Microsecond), t.Ratio())
	}
	cpu := [2]time.Duration{running[0].processor(), running[1].processor()}
	all[len(took)].add("processor time of all that", cpu[0], cpu[1], float64(cpu[1])/float64(cpu[0]))
	all[len(took)+1].add("memory of its own at the start, MiB", fmt.Sprintf("%.1f", own[0]), fmt.Sprintf("%.1f", own[1]), own[1]/own[0])
	return all, nil
}

func (m *measured) add(name string, before, now any, times float64) {
	m.name = name
	m.before, m.now, m.times = append(m.before, fmt.Sprint(before)), append(m.now, fmt.Sprint(now)), append(m.times, times)
}

// controller is a program that runs.
type controller struct {
	ready string
	cmd   *exec.Cmd
	said  *bytes.Buffer
}

// start starts a controller with nothing in it.
func start(ctx context.Context, program, data string) (*controller, error) {
	c := &controller{ready: filepath.Join(data, "ready.json"), said: &bytes.Buffer{}}
	c.cmd = exec.CommandContext(ctx, program, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--demo=false")
	c.cmd.Stdout, c.cmd.Stderr = c.said, c.said
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if _, err := os.Stat(c.ready); err == nil {
			return c, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	c.stop()
	return nil, fmt.Errorf("%s does not come up:\n%s", program, c.said)
}

func (c *controller) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = c.cmd.Wait()                          // what was measured was told before
}

// memory is what the controller has of its own, without pages of files, in MiB.
func (c *controller) memory() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "RssAnon:"); found {
			kB, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64) // zero shows as such
			return kB / 1024
		}
	}
	return 0
}

// processor is the processor time of the controller so far.
func (c *controller) processor() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])   // zero shows as such
	system, _ := strconv.Atoi(fields[12]) // likewise
	return time.Duration(user+system) * (time.Second / 100)
}

// tell prints what came, and says what takes longer than it may.
func tell(all []measured, revision string, rounds int, most float64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "MEASURED\t%.9s\tNOW\tTIMES\tLEAST\tGREATEST\n", revision)
	var longer []error
	for _, m := range all {
		sorted := slices.Sorted(slices.Values(m.times))
		middle := sorted[len(sorted)/2]
		at := slices.Index(m.times, middle)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%.2f\t%.2f\t%.2f\n", m.name, m.before[at], m.now[at], middle, sorted[0], sorted[len(sorted)-1])
		if middle > most {
			longer = append(longer, fmt.Errorf("%s: %.2f times, more than %.2f, in the median of %d rounds", m.name, middle, most, rounds))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return errors.Join(longer...)
}
