package machine

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
)

// Expectation says when a job is likely to begin its next opcode.
type Expectation struct {
	// At is when; 0 if that cannot be told.
	At job.Time `json:"at,omitempty"`
	// Text says what it rests upon, or why it cannot be told.
	Text string `json:"text"`
}

// Durations are how long opcodes ran that succeeded, by their summaries and by
// their kinds.
type Durations map[string][]job.Time

// DurationsOf collects the durations of the opcodes of jobs.
func DurationsOf(jobs iter.Seq[*job.Job]) Durations {
	out := Durations{}
	for j := range jobs {
		for i := range j.Ops {
			op := &j.Ops[i]
			if op.Status != job.Success || op.Exec == 0 || op.Input.DryRun {
				continue
			}
			for _, key := range []string{op.Input.Summary(), op.Input.ID} {
				out[key] = append(out[key], op.End-op.Exec)
			}
		}
	}
	for _, took := range out {
		slices.Sort(took)
	}
	return out
}

// typical is the median of opcodes that were about the same thing, else of those
// of the same kind; false if there is none.
func (d Durations) typical(op *opcode.Opcode) (job.Time, bool) {
	for _, key := range []string{op.Summary(), op.ID} {
		if took := d[key]; len(took) > 0 {
			return took[len(took)/2], true
		}
	}
	return 0, false
}

// maxExpected is how many ends of opcodes are imagined for an expectation.
const maxExpected = 10_000

// Expect says when a job is likely to begin its next opcode; nil for one that has
// begun it, or has ended. A clone lives through what is to come: opcodes end after
// the time that such took, rules when they are to end, and nothing else comes.
func (m *Machine) Expect(id job.ID, took Durations, now time.Time) *Expectation {
	if e, ok := m.jobs.Get(id); !ok || e.place == inRunner {
		return nil
	}
	c := newCourse(m.Clone(), took, job.At(now))
	for range maxExpected {
		e, goesOn := c.m.jobs.Get(id)
		switch {
		case !goesOn:
			end, _ := c.m.ending.Get(id)
			return &Expectation{Text: fmt.Sprintf("never: as things are, it will end as %s", end.Status())}
		case e.place == inRunner:
			return &Expectation{At: c.now, Text: "if opcodes take as long as such took, and nothing comes in between"}
		case !c.step():
			return &Expectation{Text: "cannot be told: " + c.blocked(e)}
		}
	}
	return &Expectation{Text: "cannot be told: too many opcodes come before it"}
}

// course is what a machine is expected to live through.
type course struct {
	m    *Machine
	took Durations
	now  job.Time
	// ends are the opcodes that run, by when they are expected to end.
	ends *btree.BTreeG[expectedEnd]
	// unknown are summaries of opcodes that run, of which no like has ended.
	unknown []string
}

type expectedEnd struct {
	at    job.Time
	job   job.ID
	index int
}

func (a expectedEnd) less(b expectedEnd) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.job, b.job)) < 0
}

func newCourse(m *Machine, took Durations, now job.Time) *course {
	c := &course{m: m, took: took, now: now, ends: newTree(expectedEnd.less)}
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		if e.place == inRunner {
			i := e.job.Next()
			c.begin(Start{Job: id, Index: i, Op: e.inputs[i]}, e.job.Ops[i].Exec)
		}
		return true
	})
	return c
}

// begin takes note of an opcode that runs since a time.
func (c *course) begin(s Start, since job.Time) {
	if took, known := c.took.typical(s.Op); known {
		c.ends.Set(expectedEnd{max(since+took, c.now), s.Job, s.Index})
		return
	}
	c.unknown = append(c.unknown, fmt.Sprintf("%s of job %d", s.Op.Summary(), s.Job))
}

// step lets what is expected next happen; false if nothing is.
func (c *course) step() bool {
	end, ends := c.ends.Min()
	if until, expires := c.expiry(); expires && (!ends || until <= end.at) {
		c.now = max(c.now, until)
		return c.expire()
	}
	if !ends {
		return false
	}
	c.ends.Delete(end)
	c.now = end.at
	c.apply(Done{Log: Log{Job: end.job, Index: end.index}})
	return true
}

func (c *course) apply(e Event) {
	for _, s := range c.m.Apply(e, time.UnixMicro(int64(c.now))).Starts {
		c.begin(s, c.now)
	}
}

// expiry is when the next rule ends by itself.
func (c *course) expiry() (at job.Time, some bool) {
	for i := range c.m.rules {
		if r := &c.m.rules[i]; !r.Until.IsZero() && (!some || job.At(r.Until) < at) {
			at, some = job.At(r.Until), true
		}
	}
	return at, some
}

// expire ends the rules whose time is over; false if that is not possible.
func (c *course) expire() bool {
	plan, err := c.m.PlanRules(func(rules []jobfilter.Rule, _ job.ID) (next []jobfilter.Rule, changed []string, err error) {
		for _, r := range rules {
			if !r.Until.IsZero() && job.At(r.Until) <= c.now {
				changed = append(changed, r.UUID)
			} else {
				next = append(next, r)
			}
		}
		return next, changed, nil
	}, func(n int, f func(int)) {
		for i := range n {
			f(i)
		}
	})
	if err == nil {
		c.apply(plan)
	}
	return err == nil
}

// blocked says why nothing is expected that would let a job go on.
func (c *course) blocked(e *entry) string {
	for e.place == inDependents {
		_, on := c.m.standing(e)
		next, ok := c.m.jobs.Get(on)
		if !ok {
			break
		}
		e = next
	}
	switch {
	case e.place == inNodes:
		return fmt.Sprintf("nothing tells when node %s comes, for which job %d waits", e.job.Hold.Node, e.id())
	case e.place == inHold && e.rule.Rule != nil:
		return fmt.Sprintf("%s holds job %d until somebody changes that", e.rule.Rule.Describe(), e.id())
	case len(c.unknown) > 0:
		return "nothing like " + c.unknown[0] + " has succeeded lately"
	}
	return "nothing tells when what it waits for ends"
}
