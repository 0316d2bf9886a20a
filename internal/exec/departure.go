package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/evacuation"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// departure is an opcode by which instances go elsewhere: each by a job of its own. Which they are is a plan (package evacuation); it is told before
// any of them is submitted, and by a dry run.
type departure struct {
	env     *Env
	courses []evacuation.Course
	// live: what runs is never stopped; failover: it always is. ignorePolicy: the policies of groups do not count.
	live, failover, ignorePolicy bool
	// sequential: each job waits for the end of the one before it.
	sequential bool
}

// names are those of the instances that are meant.
func (l *departure) names() []string {
	names := make([]string, len(l.courses))
	for i := range l.courses {
		names[i] = l.courses[i].Instance.Name
	}
	return names
}

// tellCourses says how each leaves, or why it cannot.
func (l *departure) tellCourses() {
	for i := range l.courses {
		if l.courses[i].Cannot != "" {
			l.env.Warnf("%s", l.courses[i].Text())
		} else {
			l.env.Infof("%s", l.courses[i].Text())
		}
	}
}

// mostNamed is how many of those that cannot leave an error names.
const mostNamed = 10

// stuck is the error if some cannot leave.
func (l *departure) stuck() error {
	var stuck []string
	for i := range l.courses {
		if c := &l.courses[i]; c.Cannot != "" {
			stuck = append(stuck, fmt.Sprintf("%s (%s)", c.Instance.Name, c.Cannot))
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	if more := len(stuck) - mostNamed; more > 0 {
		stuck = append(stuck[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return fault.New(fault.Exhausted, "Unable to evacuate instances %s", strings.Join(stuck, ", ")).
		WithHint("nothing was moved; what can be is moved one by one: drover instance migrate, failover, replace-disks")
}

// planned is a course as a dry run shows it.
type planned struct {
	Instance string        `json:"instance"`
	Group    string        `json:"group,omitempty"`
	Moves    []plannedMove `json:"moves"`
	Cannot   string        `json:"cannot,omitempty"`
}

type plannedMove struct {
	Do  evacuation.Verb `json:"do"`
	To  string          `json:"to"`
	Why string          `json:"why"`
}

// plan submits a job for each instance that leaves. The others are in the result as jobs that were not taken.
func (l *departure) plan() (Plan, error) {
	jobs := make([][]*opcode.Opcode, 0, len(l.courses))
	dry := make([]planned, len(l.courses))
	for i := range l.courses {
		c := &l.courses[i]
		dry[i] = planned{Instance: c.Instance.Name, Moves: []plannedMove{}, Cannot: c.Cannot}
		if c.Group != nil {
			dry[i].Group = c.Group.Name
		}
		for _, m := range c.Moves {
			dry[i].Moves = append(dry[i].Moves, plannedMove{m.Verb, m.To.Name, m.Why})
		}
		if c.Cannot != "" {
			continue
		}
		ops, err := l.job(c)
		if err != nil {
			return Plan{}, err
		}
		if l.sequential && len(jobs) > 0 {
			for _, op := range ops {
				op.Depends = []opcode.Dependency{{Job: -1, Statuses: []string{"error", "success"}}}
			}
		}
		jobs = append(jobs, ops)
	}
	return Plan{
		Dry: map[string]any{"jobs": []any{}, "plan": dry},
		Do: func(ctx context.Context) (any, error) {
			submitted, err := l.env.submitChildren(ctx, jobs)
			if err != nil {
				return nil, err
			}
			for i := range l.courses {
				if l.courses[i].Cannot != "" {
					submitted = slices.Insert(submitted, i, [2]any{false, l.courses[i].Text()})
				}
			}
			return map[string]any{"jobs": submitted}, nil
		},
	}, nil
}

// job are the opcodes of a course.
func (l *departure) job(c *evacuation.Course) (ops []*opcode.Opcode, err error) {
	for _, m := range c.Moves {
		id, p := "OP_INSTANCE_REPLACE_DISKS", map[string]any{"instance_name": c.Instance.Name, "instance_uuid": c.Instance.UUID}
		if l.ignorePolicy {
			p["ignore_ipolicy"] = true
		}
		switch m.Verb {
		case evacuation.ReplaceSecondary:
			p["mode"], p["remote_node"], p["early_release"] = replaceSecondary, m.To.Name, l.env.Op.Bool("early_release")
		default:
			if c.Instance.Mirroring() == cluster.ExternalMirror {
				p["target_node"] = m.To.Name
			}
			if id = "OP_INSTANCE_FAILOVER"; !l.failover {
				id = "OP_INSTANCE_MIGRATE"
				l.migration(p)
			}
		}
		op, err := opcode.FromMap(id, p)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// migration are the parameters of a migration. That of an evacuation may stop what cannot be handed over.
func (l *departure) migration(p map[string]any) {
	p["allow_failover"] = !l.live
	if !l.live {
		return
	}
	for _, name := range []string{"mode", "live", "allow_runtime_changes"} {
		if l.env.Op.Has(name) {
			p[name] = l.env.Op.Params[name]
		}
	}
}
