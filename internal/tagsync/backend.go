package tagsync

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// Backend is a cluster that servers are on.
type Backend interface {
	// Submit hands a job of some opcodes in. A key that was handed in before makes no second job
	// and gives the id of the first. An error that is about the job itself (about)
	// says that the cluster does not take such a job; after any other it may be tried
	// again.
	Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error)
	// Newest returns the newest job that the cluster has, for who is about to hand one in that must not be done twice. keyed: the key sees to that, and nothing
	// has to be looked for afterwards.
	Newest(ctx context.Context) (id job.ID, keyed bool, err error)
	// Find looks for a job of the same opcodes among those behind one; 0 for none. So becomes known whether one was taken to which there was no answer.
	Find(ctx context.Context, after job.ID, ops ...*opcode.Opcode) (job.ID, error)
	// Look returns what is known of an instance and of jobs. The jobs are looked at
	// first: of one that has ended, the sight shows the effect. The instance is that with the UUID, if one is given and there is
	// one, whatever its name is; else the one that has the name. Where an instance was meant by its UUID and is not
	// there, the sight says why that is known (Absent); where that cannot be known the look fails.
	Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error)
	// Creation returns how the creation of a server ended, which was handed in under a key; false if
	// that is not known any more.
	Creation(ctx context.Context, key string, s *server.Server) (outcome servertag.Outcome, known bool, err error)
	// Has reports whether an instance is known to be there, without asking.
	Has(instance string) bool
	// Follow calls changed with an instance whenever one of the jobs on
	// it has ended or something of it is different, and with none when any
	// instance may be, until ctx ends. It may call too often. Of an instance it tells what it knows: name, UUID, or both.
	Follow(ctx context.Context, changed func(instance server.Ref)) error
	// Met tells how the cluster was met by all that was asked of it; nothing where nobody has to be asked.
	Met() Met
}

// Met is how a cluster was met.
type Met struct {
	// Answered is when it answered last, the zero time if it never did.
	Answered time.Time `json:"answered,omitzero"`
	// Away is since when it has not answered, and Why the newest reason; both are empty while it does, or was not asked.
	Away time.Time `json:"away,omitzero"`
	Why  string    `json:"why,omitempty"`
}

// Then is how a cluster was met when it was asked once more: it answered, whatever it said, or did not, for a reason.
func (m Met) Then(at time.Time, err error) Met {
	switch {
	case err == nil:
		return Met{Answered: at}
	case m.Away.IsZero():
		m.Away = at
	}
	m.Why = err.Error()
	return m
}

// about are the codes of errors that are about a job itself. That something is denied is about the account, and that it is not the
// time for it about the cluster: both may be over when the job is handed in again.
var about = []fault.Code{fault.Invalid, fault.Mistyped, fault.BadTag, fault.TooLarge, fault.NotFound}

// temporary reports whether a refusal to take a job says nothing about the job.
func temporary(err error) bool { return err != nil && !slices.Contains(about, fault.CodeOf(err)) }

// UntakenError is why a job was not handed in, of which it is known that nothing came of it.
type UntakenError struct{ Err error }

// Error implements error.
func (u *UntakenError) Error() string { return u.Err.Error() }

// Unwrap returns the reason.
func (u *UntakenError) Unwrap() error { return u.Err }

// Local is Drover's own cluster.
type Local struct {
	Queue   *queue.Queue
	Picture *picture.Picture
	Store   store.Store
}

// Submit hands a job to the queue.
func (l Local) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	return l.Queue.Submit(ctx, queue.Submission{Ops: ops, Key: key})
}

// Newest tells that keys are enough: the queue keeps them for longer than jobs.
func (Local) Newest(context.Context) (job.ID, bool, error) { return 0, true, nil }

// Find is asked by nobody.
func (Local) Find(context.Context, job.ID, ...*opcode.Opcode) (job.ID, error) { return 0, nil }

// Do hands a job in, by its key once, and returns how it ended. An error tells that this is not known.
func (l Local) Do(ctx context.Context, key string, op *opcode.Opcode) (servertag.Outcome, error) {
	id, err := l.Submit(ctx, key, op)
	if err != nil {
		if temporary(err) {
			return servertag.Outcome{}, err
		}
		return servertag.Outcome{Text: fault.Clip(err.Error(), maxTold)}, nil
	}
	if _, err := l.Queue.Wait(ctx, id, (*job.Job).Final); err != nil && !fault.Is(err, fault.NotFound) { // it is in the archive
		return servertag.Outcome{}, err
	}
	sight, err := l.Look(ctx, server.Ref{}, []job.ID{id})
	outcome, ended := sight.Ended[id]
	if err == nil && !ended {
		err = fault.New(fault.Canceled, "job %d has not ended", id)
	}
	return outcome, err
}

// Look reads the picture: jobs and inventory of one revision.
func (l Local) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	now := l.Picture.Load()
	sight := server.Sight{Sight: servertag.Sight{Ended: map[job.ID]servertag.Outcome{}}}
	for _, id := range jobs {
		j := now.Jobs.Get(id)
		if j == nil { // archived, so it has ended
			var err error
			if j, err = l.Queue.Job(ctx, id); err != nil {
				if fault.Is(err, fault.NotFound) {
					sight.Ended[id] = servertag.Outcome{Text: "the job is not known any more"}
					continue
				}
				return sight, err
			}
		}
		if j.Final() {
			sight.Ended[id] = outcomeOf(j)
		}
	}
	inst := now.Inventory.Instance(instance.UUID)
	if inst == nil {
		inst = now.Inventory.InstanceNamed(instance.Name)
	}
	if inst != nil {
		sight.Instance, sight.Tags, sight.UUID, sight.Name, sight.Made = true, inst.Tags, inst.UUID, inst.Name, job.Time(inst.CTime/1e3)
		sight.Stopped = inst.AdminState != cluster.AdminUp
	}
	if inst == nil || inst.UUID != instance.UUID {
		sight.Proven, sight.Absent = true, fmt.Sprintf("the inventory of revision %d does not have it", now.Revision)
	}
	return sight, nil
}

// Creation looks the job up that was submitted under the key.
func (l Local) Creation(ctx context.Context, key string, _ *server.Server) (o servertag.Outcome, known bool, err error) {
	submitted, err := l.Store.Get(ctx, store.Key{Kind: queue.KindSubmission, ID: key})
	if err == nil {
		var id job.ID
		if id, err = job.ParseID(string(submitted.Value)); err == nil {
			var j *job.Job
			if j, err = l.Queue.Job(ctx, id); err == nil && j.Final() {
				return outcomeOf(j), true, nil
			}
		}
	}
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return o, false, err
}

// Has looks into the inventory.
func (l Local) Has(instance string) bool {
	return l.Picture.Load().Inventory.InstanceNamed(instance) != nil
}

// final are the second arguments of failed prerequisites that another try will
// not change.
var final = []string{"wrong_input"}

// outcomeOf reads how a job ended.
func outcomeOf(j *job.Job) servertag.Outcome {
	if j.Status() == job.Success {
		return servertag.Outcome{OK: true, Began: j.Ops[0].Exec, Ended: j.Ops[len(j.Ops)-1].End}
	}
	for i := range j.Ops {
		op := &j.Ops[i]
		if op.Status == job.Success {
			continue
		}
		o := ReadOutcome(op.Status, op.Result)
		o.Began, o.Ended = op.Exec, op.End
		return o
	}
	return servertag.Outcome{Text: "the job did not succeed"}
}

// ReadOutcome reads the result of an opcode that did not succeed, as clusters
// give it.
func ReadOutcome(status job.Status, result []byte) servertag.Outcome {
	class, text, ok := job.DecodeError(result)
	if !ok {
		text, err := strconv.Unquote(string(result))
		if err != nil {
			text = string(result)
		}
		return servertag.Outcome{Text: "the job is " + string(status) + ": " + fault.Clip(text, maxTold)}
	}
	o := servertag.Outcome{Text: fault.Clip(text, maxTold), Final: class == "TagError"}
	if class == "OpPrereqError" {
		code := job.ErrorCode(result)
		o.Missing, o.Final = code == "unknown_entity", slices.Contains(final, code)
	}
	return o
}

// maxTold is how much of what a cluster says about a failure is kept, in bytes.
const maxTold = 1 << 10

// Met tells nothing: nobody has to be asked.
func (Local) Met() Met { return Met{} }

// Follow follows the picture.
func (l Local) Follow(ctx context.Context, changed func(server.Ref)) error {
	follower, now := l.Picture.Follow()
	defer follower.Close()
	names := map[string]string{} // of the instances, by UUID: what is removed has no name any more
	for inst := range now.Inventory.Instances() {
		names[inst.UUID] = inst.Name
	}
	changed(server.Ref{})
	for {
		again := l.Picture.Changed()
		now, changes, complete := follower.Next()
		if !complete {
			changed(server.Ref{})
		}
		for _, c := range changes {
			l.tell(c, now, names, changed)
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// tell tells what a change is about.
func (l Local) tell(c *state.Change, now *state.State, names map[string]string, changed func(server.Ref)) {
	for _, j := range slices.Concat(c.Jobs, c.Archived) {
		if !j.Final() {
			continue
		}
		for i := range j.Ops {
			if ref := instanceOf(j.Ops[i].Input); ref.Name != "" {
				changed(ref)
			}
		}
	}
	if c.Inventory != nil && c.Objects == nil {
		changed(server.Ref{})
	}
	for _, o := range c.Objects {
		if o.Kind != cluster.KindInstance {
			continue
		}
		was, known := names[o.UUID]
		if known {
			changed(server.Ref{UUID: o.UUID, Name: was})
		}
		inst := now.Inventory.Instance(o.UUID)
		if inst == nil {
			delete(names, o.UUID)
			continue
		}
		if names[o.UUID] = inst.Name; !known || was != inst.Name {
			changed(server.Ref{UUID: o.UUID, Name: inst.Name})
		}
	}
}

// instanceOf is the instance that an opcode of ours is about, without a name for none.
func instanceOf(op *opcode.Opcode) server.Ref {
	ref := server.Ref{UUID: op.Str("instance_uuid"), Name: op.Str("instance_name")}
	if op.Str("kind") == "instance" {
		ref.Name = op.Str("name")
	}
	return ref
}
