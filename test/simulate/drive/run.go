package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

const (
	// portion is how many histories a process lives through.
	portion = 250
	// twice is every how-manieth seed is lived through twice.
	twice = 100
	// orders is in how many orders of goroutines a smaller plan is tried.
	orders = 20
	// told in full are so many failures; the others are counted.
	fullyTold = 5
)

// replay lives through one history and tells it.
func (d driver) replay(ctx context.Context, seed uint64, plan string) error {
	program, err := d.build(ctx, "healthy", nil)
	if err != nil {
		return err
	}
	out := d.failureDir(seed)
	if plan != "" {
		if plan, err = filepath.Abs(plan); err != nil {
			return fault.New(fault.Environment, "cannot tell where %s is: %w", plan, err)
		}
	}
	o, err := child(ctx, program, task{From: seed, Plan: plan, Out: out})
	if err != nil {
		return err
	}
	return d.tellOne(o, out)
}

func (d driver) failureDir(seed uint64) string {
	dir, err := filepath.Abs(filepath.Join(d.dir, "failure", strconv.FormatUint(seed, 10)))
	if err != nil {
		return filepath.Join(d.dir, "failure")
	}
	return dir
}

// tellOne prints the time line of a history, and last its hash and whether all is well.
func (d driver) tellOne(o *outcome, dir string) error {
	if len(o.histories) == 0 {
		return fault.New(fault.Failed, "the simulation was given up")
	}
	h := o.histories[len(o.histories)-1]
	if h.broken == "panic" {
		d.sayf("%s", o.trouble)
	} else {
		for _, name := range []string{"timeline.txt", "why.txt"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return fault.New(fault.Environment, "the history was not written: %w", err)
			}
			d.sayf("%s", text)
		}
		d.sayf("plan, trace and picture are in %s", dir)
	}
	if h.broken == "" {
		d.sayf("seed %d: %s ok", h.seed, h.hash)
		return nil
	}
	d.sayf("seed %d: %s failed", h.seed, h.hash)
	return fault.New(fault.Failed, "%s", h.broken)
}

// tally is what many histories came to.
type tally struct {
	mu        sync.Mutex
	histories int
	failed    []told
	reached   map[string]int
	troubles  map[uint64]string
	// differences are the places where seeds came to be two histories.
	differences []string
}

// take adds what a child came to, and returns the last seed of it.
func (t *tally) take(o *outcome) (last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range o.histories {
		t.histories++
		last = h.seed
		if h.broken != "" {
			t.failed = append(t.failed, h)
			if h.broken == "panic" {
				t.troubles[h.seed] = o.trouble
			}
		}
	}
	t.differences = append(t.differences, o.differences...)
	for place, n := range o.reached {
		t.reached[place] += n
	}
	return last
}

// many lives through new histories for a time, on all processors.
func (d driver) many(ctx context.Context, length time.Duration, from uint64, shape string) error {
	program, err := d.build(ctx, "healthy", nil)
	if err != nil {
		return err
	}
	from = d.first(from)
	all := &tally{reached: map[string]int{}, troubles: map[uint64]string{}}
	var next atomic.Uint64
	next.Store(from)
	begun := time.Now()
	errs := make(chan error, runtime.NumCPU())
	for range runtime.NumCPU() {
		go func() {
			var err error
			for err == nil && time.Since(begun) < length && ctx.Err() == nil {
				end := next.Add(portion)
				err = all.some(ctx, program, task{From: end - portion, Count: portion, Twice: twice, Shape: shape})
			}
			errs <- err
		}()
	}
	for range runtime.NumCPU() {
		if err := <-errs; err != nil {
			return err
		}
	}
	return d.tellMany(ctx, program, shape, all, time.Since(begun))
}

// first is the first of many seeds, which is told: one that was asked for, or such a one
// as no other run has and people can read.
func (d driver) first(from uint64) uint64 {
	if from == 0 {
		from = uint64(time.Now().Unix()) % 10_000_000 * 1000
	}
	d.sayf("seeds from %d", from)
	return from
}

// some lives through a portion; where a history ends its process, another goes on.
func (t *tally) some(ctx context.Context, program string, do task) error {
	for end := do.From + do.Count; do.From < end && ctx.Err() == nil; {
		do.Count = end - do.From
		o, err := child(ctx, program, do)
		if err != nil {
			return err
		}
		do.From = t.take(o) + 1
		if len(o.histories) == 0 {
			return nil
		}
	}
	return nil
}

// tellMany tells what failed, each with the smallest plan that was found, and last how
// many did.
func (d driver) tellMany(ctx context.Context, program, shape string, all *tally, took time.Duration) error {
	for i, h := range all.failed {
		if i == fullyTold {
			d.sayf("and %d more", len(all.failed)-i)
			break
		}
		if err := d.tellFailure(ctx, program, shape, all, h); err != nil {
			return err
		}
	}
	for _, where := range all.differences {
		d.sayf("two histories of seed %s", where)
	}
	d.sayf("%.0f histories a minute; came by: %v", float64(all.histories)/took.Minutes(), all.reached)
	d.sayf("%d histories, %d failed", all.histories, len(all.failed))
	if len(all.failed) > 0 {
		return fault.New(fault.Failed, "%d histories failed", len(all.failed))
	}
	return nil
}

func (d driver) tellFailure(ctx context.Context, program, shape string, all *tally, h told) error {
	d.sayf("seed %d failed: %s", h.seed, h.broken)
	if h.broken == "panic" {
		d.sayf("%s\nmake simulate SEED=%d", tail(all.troubles[h.seed]), h.seed)
		return nil
	}
	dir := d.failureDir(h.seed)
	o, err := child(ctx, program, task{From: h.seed, Shape: shape, Out: dir, Orders: orders})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "timeline.txt"))
	if err != nil {
		return fault.New(fault.Environment, "the history was not written: %w", err)
	}
	d.sayf("%s%s\nmake simulate SEED=%d PLAN=%s", text, o.cut, h.seed, filepath.Join(dir, "plan.json"))
	return nil
}

// tail is the end of a text that may be long.
func tail(text string) string {
	const most = 4000
	if len(text) > most {
		return fmt.Sprintf("[...]%s", text[len(text)-most:])
	}
	return text
}
