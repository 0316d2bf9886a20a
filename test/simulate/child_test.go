package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/order"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/sim/timeline"
	"github.com/drover-project/drover/internal/sim/world"
)

// A child is this test in a process of its own, built with the overlay, as command drive
// runs it. It tells what happens by lines on its standard output that begin with a mark:
//
//	begin SEED                 before a history, for a panic ends the process
//	end SEED HASH INVARIANT    after it; the invariant is that which broke first, or nothing
//	differ SEED LINE LINE      where a seed that was lived through twice came to be two histories
//	reached JSON               at the end

const mark = "SIMULATE "

// task is what a child is to do.
type task struct {
	// From is the first seed, and Count how many there are; each Twice-th is lived through
	// twice.
	From  uint64 `json:"from"`
	Count uint64 `json:"count"`
	Twice uint64 `json:"twice"`
	// Back begins with the last seed.
	Back bool `json:"back"`
	// Shape is small or large for histories of one kind.
	Shape string `json:"shape"`
	// Plan is the file of a plan in place of a seed.
	Plan string `json:"plan"`
	// Stop ends the child at the first history that breaks something.
	Stop bool `json:"stop"`
	// Out is a directory: the one history is told there, and cut down to what it needs.
	Out string `json:"out"`
	// Orders is how many orders each smaller plan is tried in; zero does not cut.
	Orders int `json:"orders"`
}

// TestChild is not a test by itself.
func TestChild(t *testing.T) {
	var do task
	text := os.Getenv("DROVER_SIMULATE")
	if text == "" {
		t.Skip("only for command drive")
	}
	if err := json.Unmarshal([]byte(text), &do); err != nil {
		t.Fatal(err)
	}
	if !order.Repeats {
		t.Fatal("a child is built with the overlay and the tag simulation")
	}
	runtime.GOMAXPROCS(1)
	runtime.MemProfileRate = 0
	debug.SetGCPercent(-1)
	c := &child{T: t, options: world.Options{Dir: memoryDir(t), Reached: new(check.Reached)}, task: do}
	live(t, plan.Draw(0), c.options) // what is made once is made
	c.options.Reached = new(check.Reached)
	if do.Out != "" {
		c.tell()
		return
	}
	c.run()
	reached, err := json.Marshal(c.options.Reached.Times())
	if err != nil {
		t.Fatal(err)
	}
	c.sayf("reached %s", reached)
}

// memoryDir is a directory in memory, where there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	const shm = "/dev/shm"
	if _, err := os.Stat(shm); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shm, "drover-simulate-") //nolint:usetesting // those of tests are on disk
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

type child struct {
	*testing.T

	task    task
	options world.Options
}

func (c *child) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, mark+format+"\n", args...)
}

// draw is the plan of a seed.
func (c *child) draw(seed uint64) plan.Plan {
	switch c.task.Shape {
	case "small":
		return plan.DrawOf(seed, plan.Small)
	case "large":
		return plan.DrawOf(seed, plan.Large)
	}
	return plan.Draw(seed)
}

// run lives through histories.
func (c *child) run() {
	for i := range c.task.Count {
		if c.task.Back {
			i = c.task.Count - 1 - i
		}
		broken := c.one(c.draw(c.task.From + i))
		if c.task.Stop && broken != "" {
			return
		}
	}
}

// one lives through a history, and again if it is its turn: both must be one.
func (c *child) one(p plan.Plan) (broken string) {
	c.sayf("begin %d", p.Seed)
	o := c.options
	o.Keep = c.task.Twice > 0 && p.Seed%c.task.Twice == 0
	r := live(c.T, p, o)
	broken = first(judge(r))
	runtime.GC()
	if o.Keep {
		if again := live(c.T, p, o); again.Hash != r.Hash {
			broken = "a seed is one history"
			was, is := part(r.Events, again.Events)
			c.sayf("differ %d %q %q", p.Seed, was, is)
		}
		runtime.GC()
	}
	c.sayf("end %d %016x %s", p.Seed, r.Hash, broken)
	return broken
}

// part is where two histories part, as both tell it; empty for what has ended.
func part(one, other []world.Event) (was, is string) {
	i := 0
	for i < min(len(one), len(other)) && one[i] == other[i] {
		i++
	}
	for _, x := range []struct {
		events []world.Event
		text   *string
	}{{one, &was}, {other, &is}} {
		if i < len(x.events) {
			*x.text = x.events[i].String()
		}
	}
	return was, is
}

func first(broken []check.Broken) string {
	if len(broken) == 0 {
		return ""
	}
	return broken[0].Invariant
}

// tell writes all there is to say of one history into a directory.
func (c *child) tell() {
	p := c.draw(c.task.From)
	if c.task.Plan != "" {
		text, err := os.ReadFile(c.task.Plan)
		if err == nil {
			p, err = plan.Parse(text)
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	c.sayf("begin %d", p.Seed)
	whole := live(c.T, p, c.options)
	broken := first(judge(whole))
	if broken != "" && c.task.Orders > 0 {
		var runs int
		p, runs = plan.Cut(p, c.task.Orders, func(less plan.Plan) bool {
			runtime.GC()
			return first(judge(live(c.T, less, c.options))) == broken
		})
		c.sayf("cut %d %d %d", len(whole.Struck), len(p.Faults), runs)
	}
	c.options.Keep = true
	r := live(c.T, p, c.options)
	if p.Order == whole.Plan.Order && len(p.Faults) == len(whole.Plan.Faults) && p.Size == whole.Plan.Size && r.Hash != whole.Hash {
		broken = "a seed is one history"
	}
	if err := c.write(r); err != nil {
		c.Fatal(err)
	}
	c.sayf("end %d %016x %s", p.Seed, r.Hash, broken)
}

// write writes plan, reasons and time line of a history.
func (c *child) write(r *world.Result) error {
	var trace, lines, picture, why bytes.Buffer
	for _, b := range judge(r) {
		fmt.Fprintf(&why, "%.6f s: %v\n", b.At.Seconds(), b)
	}
	for _, f := range r.Struck {
		fmt.Fprintf(&why, "fault: %v\n", f)
	}
	title := fmt.Sprintf("seed %d: %s", r.Plan.Seed, strings.ReplaceAll(first(judge(r)), "\n", " "))
	if err := timeline.Text(&trace, r.Events, true); err != nil {
		return err
	}
	if err := timeline.Text(&lines, r.Events, false); err != nil {
		return err
	}
	if err := timeline.SVG(&picture, title, r.Events); err != nil {
		return err
	}
	if err := os.MkdirAll(c.task.Out, 0o750); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"plan.json": r.Plan.JSON(), "trace.txt": trace.Bytes(), "timeline.txt": lines.Bytes(), "timeline.svg": picture.Bytes(), "why.txt": why.Bytes()} {
		if err := os.WriteFile(filepath.Join(c.task.Out, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
