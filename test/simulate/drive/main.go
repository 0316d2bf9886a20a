// Command drive builds and runs simulations: see the targets simulate and simulate-power
// of the Makefile.
//
//	drive replay [-plan FILE] SEED    live through one history
//	drive run [-time D] [-from SEED]  live through new ones
//	drive repeat [-from SEED] N       live through N of them in two processes each
//	drive power [NAME...]             find the known faults
//	drive overlay DIRECTORY           write the overlay alone
//
// Invariants:
//   - What it prints last is for programs: "seed N: HASH ok" (or "failed") of one history,
//     "N histories, M failed" of many, "N seeds, M differences", "N of M known faults found".
//   - It fails when a history does, when a seed is two histories, and when a known fault is
//     not found or no longer fits the code.
//   - The seed of a history is known before it begins, so also one that ends the process
//     has a name.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	d := driver{out: os.Stdout, dir: filepath.Join(".cache", "simulate")}
	err := d.run(ctx, os.Args[1:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// driver does what it is told to, from the root of the tree.
type driver struct {
	out io.Writer
	dir string // of all that it writes
}

func (d driver) sayf(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }

func (d driver) run(ctx context.Context, args []string) error {
	usage := fault.New(fault.Invalid, "usage: drive replay [-plan FILE] SEED | run [-time D] [-from SEED] | repeat [-from SEED] N | power [NAME...] | overlay DIRECTORY")
	if len(args) == 0 {
		return usage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	plan := flags.String("plan", "", "file of the plan")
	length := flags.Duration("time", time.Minute, "how long new histories begin")
	from := flags.Uint64("from", 0, "first seed; 0 draws one")
	shape := flags.String("shape", "", "small or large, for histories of one kind")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch rest := flags.Args(); {
	case args[0] == "overlay" && len(rest) == 1:
		name, err := writeOverlay(ctx, rest[0], nil)
		if err == nil {
			d.sayf("%s", name)
		}
		return err
	case args[0] == "replay" && len(rest) == 1:
		seed, err := strconv.ParseUint(rest[0], 10, 64)
		if err != nil {
			return fault.New(fault.Invalid, "%q is not a seed", rest[0])
		}
		return d.replay(ctx, seed, *plan)
	case args[0] == "run" && len(rest) == 0:
		return d.many(ctx, *length, *from, *shape)
	case args[0] == "repeat" && len(rest) == 1:
		n, err := strconv.ParseUint(rest[0], 10, 64)
		if err != nil || n == 0 {
			return fault.New(fault.Invalid, "%q is no number of seeds", rest[0])
		}
		return d.repeat(ctx, n, *from, *shape)
	case args[0] == "power":
		return d.power(ctx, rest)
	}
	return usage
}
