package tagsync_test

import (
	"context"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
)

// blind does not know which instances there are.
type blind struct{ tagsync.Backend }

func (blind) Has(string) bool { return false }

// byOperator makes an instance as an operator does.
func (r *rig) byOperator(name string) (uuid string) {
	r.Helper()
	if j := r.finish("OP_INSTANCE_CREATE", map[string]any{"instance_name": name, "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{},
		"os_type": "noop", "name_check": false, "ip_check": false, "tags": []any{"cyclades:user:theirs"}}); j.Status() != job.Success {
		r.Fatalf("making %s: %s", name, j.Ops[0].Result)
	}
	return r.shown.Load().Inventory.InstanceNamed(name).UUID
}

// stands fails the test unless an instance is as the operator made it.
func (r *rig) stands(name, uuid string) {
	r.Helper()
	inst := r.shown.Load().Inventory.InstanceNamed(name)
	if inst == nil || inst.UUID != uuid || !slices.Equal(inst.Tags, []string{"cyclades:user:theirs"}) {
		r.Fatalf("the operator's machine %s is %+v", name, inst)
	}
}

func (r *rig) wish(tags ...string) *tagsync.Wish {
	return &tagsync.Wish{Name: "web", Project: "p", User: "u", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], NICs: 1, Tags: tags, Asked: r.asked()}
}

// TestStrangersAreLeftAlone: an instance that has the name of a server, and that
// its creation did not make, is neither shown as the server, nor tagged, nor removed.
func TestStrangersAreLeftAlone(t *testing.T) {
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend { return blind{b} })
	uuid := r.byOperator("snf-1")
	s, err := r.engine.Create(t.Context(), r.wish("mine"))
	r.check(err)
	s = r.until(s.ID, "cannot be made", func(s *server.Server) bool { return s.Status() == server.Failed })
	if s.Fault == nil || s.UUID != "" || s.Tags.Has(user, "theirs") {
		t.Errorf("the server is %+v", s)
	}
	sight, err := r.local().Look(t.Context(), server.Ref{Name: "snf-1"}, []job.ID{s.Fault.Job})
	r.check(err)
	j, err := r.queue.Job(t.Context(), s.Fault.Job)
	if o := sight.Ended[s.Fault.Job]; err != nil || o.Began != j.Ops[0].Exec || o.Ended != j.Ops[0].End || o.Ended == 0 || sight.Made == 0 || sight.Made >= o.Ended {
		t.Errorf("its creation is told as %+v, the instance as %+v, %v", o, sight, err)
	}
	if _, err := r.engine.Want(s.ID, user, []string{"more"}, r.asked()); err != nil {
		t.Fatal(err)
	}
	r.engine.Reconcile()
	r.check(r.engine.Attend(t.Context(), s.ID))
	r.stands("snf-1", uuid)
	if found := r.examine(s.ID, false); slices.ContainsFunc(found.Findings, func(f tagsync.Finding) bool {
		return f.Missing || slices.ContainsFunc(f.Differences, func(d servertag.Difference) bool { return d.What == servertag.Stranger })
	}) {
		t.Errorf("told is a tag of the stranger as the server's, or that one lacks which could not be made: %+v", found)
	}
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	r.stands("snf-1", uuid)
}

// TestNamesInUseArePassedOver: so an operator who has instances of such names does
// not keep users from servers.
func TestNamesInUseArePassedOver(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"snf-1", "snf-2", "snf-4"} {
		r.byOperator(name)
	}
	for _, want := range []int64{3, 5} {
		if s := r.create(); s.Number != want {
			t.Errorf("the server has number %d, want %d", s.Number, want)
		}
	}
}

// TestAnotherInstanceOfTheNameIsAStranger: one that was made in place of a
// server's. What was asked of the server is not done to it, also when it was asked
// before.
func TestAnotherInstanceOfTheNameIsAStranger(t *testing.T) {
	r := newRig(t)
	s := r.create("mine")
	r.finish("OP_INSTANCE_REMOVE", map[string]any{"instance_name": s.Instance, "ignore_failures": true})
	s = r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Status() == server.Gone })
	uuid := r.byOperator(s.Instance)
	r.check(r.engine.Attend(t.Context(), s.ID))
	if s = r.engine.Servers().Get(s.ID); s.Status() != server.Gone {
		t.Errorf("it is %s", s.Status())
	}
	op, err := s.Opcode(&server.Task{Do: server.Delete, Asked: r.asked()})
	r.check(err)
	id, err := r.local().Submit(t.Context(), "late", op)
	r.check(err)
	if j, err := r.queue.Wait(t.Context(), id, (*job.Job).Final); err != nil || j.Status() == job.Success {
		t.Errorf("a deletion that comes late: %v, %v", j.Status(), err)
	}
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	r.stands(s.Instance, uuid)
}

// TestAnInstanceThatOutlivesItsCreationIsTheServers: also when the creation
// counts as failed, and so is removed with the server.
func TestAnInstanceThatOutlivesItsCreationIsTheServers(t *testing.T) {
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend { return &pessimist{Backend: b} })
	s, err := r.engine.Create(t.Context(), r.wish())
	r.check(err)
	s = r.until(s.ID, "is there", func(s *server.Server) bool { return s.Built != 0 })
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	if inst := r.shown.Load().Inventory.InstanceNamed(s.Instance); inst != nil {
		t.Errorf("its instance stays: %+v", inst)
	}
}

// pessimist tells of the first job that it failed, although it did not.
type pessimist struct {
	tagsync.Backend
	first job.ID
}

func (p *pessimist) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	id, err := p.Backend.Submit(ctx, key, ops...)
	if p.first == 0 {
		p.first = id
	}
	return id, err
}

func (p *pessimist) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	sight, err := p.Backend.Look(ctx, instance, jobs)
	if o, over := sight.Ended[p.first]; over && o.OK {
		sight.Ended[p.first] = servertag.Outcome{Text: "no time", Began: 1, Ended: sight.Made}
	}
	return sight, err
}
