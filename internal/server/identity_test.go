package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// with is a sight with further tags, and name.
func with(sight server.Sight, name string, tags ...string) server.Sight {
	sight.Name, sight.Tags = name, append(slices.Clone(sight.Tags), tags...)
	return sight
}

// TestMarks: on another cluster an instance tells whose it is, also where nobody knows how its creation ended.
func TestMarks(t *testing.T) {
	far := &server.Server{ID: "s1", Number: 1, Instance: "snf-1", Backend: "far"}
	unmarked := begin(t, far, server.Create, alice) // as a program of before has begun it
	unmarked.Tasks[0].Marked = false
	unmarked = unmarked.Submitted(1, 7)
	fresh := begin(t, far, server.Create, alice).Submitted(1, 7)
	lost := servertag.Outcome{Text: "the job is not known any more"}
	failed := fresh.Settle(policy, server.Sight{Sight: servertag.Sight{Now: 90, Ended: map[job.ID]servertag.Outcome{7: lost}}})
	deleted := begin(t, failed, server.Delete, alice)
	near := asked(t)
	refused := near.Settle(policy, server.Sight{Sight: servertag.Sight{Now: 90, Ended: map[job.ID]servertag.Outcome{7: lost}}})
	for what, c := range map[string]struct {
		server *server.Server
		sight  server.Sight
		own    bool
	}{
		"marked, and its creation runs":             {fresh, with(seen("u1"), "snf-1", server.Mark("s1")), false},
		"marked, and its creation succeeded":        {fresh, with(seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 60}), "snf-1", server.Mark("s1")), true},
		"marked, and its creation is not known":     {fresh, with(seen("u1", lost), "snf-1", server.Mark("s1")), true},
		"marked, long after its creation failed":    {failed, with(seen("u1"), "snf-1", server.Mark("s1")), true},
		"marked, and to be deleted":                 {deleted, with(seen("u1"), "snf-1", server.Mark("s1")), true},
		"another one took its place since":          {fresh, seen("u2", servertag.Outcome{OK: true, Began: 40, Ended: 60}), false},
		"marked for another server":                 {fresh, with(seen("u2", servertag.Outcome{OK: true, Began: 40, Ended: 60}), "snf-1", server.Mark("s2")), false},
		"begun by a program of before":              {unmarked, seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 60}), true},
		"the same, and another one took its place":  {unmarked, seen("u1", servertag.Outcome{OK: true, Began: 51, Ended: 60}), false},
		"no mark of Drover's own cluster is needed": {near, seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 60}), true},
		"nor does it count there":                   {near, with(seen("u1", lost), "snf-1", server.Mark("s1")), false},
		"nor long after the creation failed":        {refused, with(seen("u1"), "snf-1", server.Mark("s1")), false},
		"another one took its place here":           {near, seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 49}), false},
	} {
		if got := c.server.Own(c.sight); got.Instance != c.own || got.Doubt {
			t.Errorf("%s: %+v", what, got)
		}
	}
	for s, want := range map[*server.Server]bool{fresh: true, unmarked: false, near: false} {
		s.Image.OS = "noop"
		op, err := s.Opcode(s.Doing())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(op.Strings("tags"), server.Mark("s1")) != want {
			t.Errorf("the creation on cluster %q sets the tags %v, %v", s.Backend, op.Strings("tags"), err)
		}
	}
	// A mark is no tag of a server: it is neither adopted, nor told as different, nor removed.
	known := fresh.Settle(policy, fresh.Own(with(seen("u1", lost), "snf-1", server.Mark("s1"))))
	if names := append(known.Tags.Names(servertag.User), known.Tags.Names(servertag.System)...); !slices.Equal(names, []string{"web"}) {
		t.Errorf("its tags are %q", names)
	}
	if differ := known.Tags.Compare(policy, with(seen("u1"), "snf-1", server.Mark("s1")).Sight); len(differ) != 0 {
		t.Errorf("it differs: %+v", differ)
	}
	effects := servertag.DefaultPolicy()
	effects.Effects = []servertag.Effect{{Namespace: servertag.User, Tag: "x", Label: server.Mark("s1")}}
	if err := effects.CheckEffects(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "whose an instance is") {
		t.Errorf("an effect sets a mark: %v", err)
	}
}

// ofBefore is a server whose record is of a version that remembered no UUIDs; it is to have a tag.
func ofBefore(t *testing.T) *server.Server {
	t.Helper()
	tags, _, err := servertag.Set{}.Want(policy, servertag.User, []string{"web"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	return (&server.Server{ID: "s1", Number: 1, Name: "shop", Instance: "snf-1", Built: 51, Serial: 1}).WithTags(tags)
}

// TestARecordOfBefore is matched by what its own creation made, and by nothing else.
func TestARecordOfBefore(t *testing.T) {
	s := ofBefore(t)
	if !s.Unknown() {
		t.Error("nobody asks for its creation")
	}
	for what, c := range map[string]struct {
		creation servertag.Outcome
		own      bool
	}{
		"its creation made it":                 {servertag.Outcome{OK: true, Began: 40, Ended: 60}, true},
		"another one was made since":           {servertag.Outcome{OK: true, Began: 20, Ended: 30}, false},
		"its creation failed":                  {servertag.Outcome{Began: 40, Ended: 60}, false},
		"its creation is not known any more":   {servertag.Outcome{}, false},
		"it is not known when that was at all": {servertag.Outcome{OK: true}, false},
	} {
		sight := with(seen("u1"), "snf-1")
		sight.Creation = c.creation
		got := s.Own(sight)
		if got.Instance != c.own || got.Doubt == c.own {
			t.Errorf("%s: %+v", what, got)
		}
		next := s.Settle(policy, got)
		if (next.UUID == "u1") != c.own || (next.Unmatched != 0) == c.own || next.Deleted != 0 || !next.Tags.Has(servertag.User, "web") {
			t.Errorf("%s: it becomes %+v", what, next)
		}
		if want := map[bool]server.Status{true: server.Shutoff, false: server.Failed}[c.own]; next.Status() != want || (next.Trouble() == nil) != c.own {
			t.Errorf("%s: it is %s: %+v", what, next.Status(), next.Trouble())
		}
		if next.Unknown() {
			t.Errorf("%s: it is asked again", what)
		}
	}
}

// TestAnUnmatchedServerIsLeftAlone, by everybody, until its name is nobody's or an operator says which instance it is.
func TestAnUnmatchedServerIsLeftAlone(t *testing.T) {
	s := ofBefore(t)
	s = s.Settle(policy, s.Own(with(seen("u1"), "snf-1")))
	for _, do := range []server.Do{server.Delete, server.Start, server.Stop, server.Reboot, server.RebootHard} {
		if _, err := s.Begin(do, bob); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "cannot be told") {
			t.Errorf("%s of it: %v", do, err)
		}
	}
	if again := s.Settle(policy, s.Own(with(seen("u1"), "snf-1"))); again != s {
		t.Errorf("looked at again it is %+v", again)
	}
	gone := s.Settle(policy, s.Own(server.Sight{Sight: servertag.Sight{Now: 100}}))
	if gone.Status() != server.Gone || gone.Unmatched != 0 || gone.Trouble() != nil {
		t.Errorf("with no instance of its name it is %s, %+v", gone.Status(), gone)
	}
	matched, err := s.Match(s.Own(with(seen("u1"), "snf-1")), with(seen("u1"), "snf-1"), nil, nil)
	if err != nil || matched.UUID != "u1" || matched.Unmatched != 0 || matched.Status() != server.Shutoff {
		t.Fatalf("matched it is %+v, %v", matched, err)
	}
	if plan := matched.Settle(policy, matched.Own(with(seen("u1"), "snf-1"))); plan.Tags.OldestPending() != 0 {
		t.Errorf("its tag is not found in force: %+v", plan.Tags)
	}
}

// TestNothingIsDoneByNameAlone: of a server whose instance is not known no job can be made but its creation.
func TestNothingIsDoneByNameAlone(t *testing.T) {
	s := ofBefore(t)
	for _, do := range []server.Do{server.Delete, server.Start, server.Stop, server.Reboot, server.RebootHard} {
		if op, err := s.Opcode(&server.Task{Do: do, Asked: bob}); !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: %+v, %v", do, op, err)
		}
	}
	if op, err := s.TagOpcode(&servertag.Job{Action: servertag.Add}); !fault.Is(err, fault.WrongState) {
		t.Errorf("a tag: %+v, %v", op, err)
	}
	for _, e := range []servertag.Effect{{Label: "x"}, {Parameter: "always_failover", Value: true}} {
		if op, err := s.EffectOpcode(&servertag.Applied{Effect: e}); !fault.Is(err, fault.WrongState) {
			t.Errorf("an effect: %+v, %v", op, err)
		}
	}
}

// TestARenamedInstanceStaysTheServers: it is known by its UUID, and called what it is called.
func TestARenamedInstanceStaysTheServers(t *testing.T) {
	s := asked(t)
	s = s.Settle(policy, s.Own(with(seen("u1", servertag.Outcome{OK: true}), "snf-1")))
	s = s.Settle(policy, s.Own(with(seen("u1"), "renamed")))
	if s.Instance != "renamed" || s.Deleted != 0 || s.Ref() != (server.Ref{UUID: "u1", Name: "renamed"}) {
		t.Fatalf("it is %+v", s)
	}
	op, err := s.Opcode(&server.Task{Do: server.Delete, Asked: bob})
	if err != nil || op.Str("instance_name") != "renamed" || op.Str("instance_uuid") != "u1" {
		t.Errorf("its deletion is %+v, %v", op, err)
	}
	// One that is put back from a backup has another UUID, whatever tags it has.
	if got := s.Own(with(seen("u2"), "renamed", server.Mark("s1"))); got.Instance || got.Doubt {
		t.Errorf("another one is seen as %+v", got)
	}
}

func TestMatch(t *testing.T) {
	s := ofBefore(t)
	s = s.Settle(policy, s.Own(with(seen("u1"), "snf-1")))
	none := server.Sight{Sight: servertag.Sight{Now: 100}}
	gone := s.Settle(policy, none)
	changing := *s
	changing.Tasks = []server.Task{{Do: server.Stop, Asked: bob}}
	there := func(id string) bool { return id == "s2" }
	for what, c := range map[string]struct {
		server     *server.Server
		own, sight server.Sight
		holder     *server.Server
		want       fault.Code
		says       string
	}{
		"unmatched":                            {s, none, with(seen("u1"), "snf-1"), nil, "", ""},
		"gone, and put back":                   {gone, none, with(seen("u2"), "snf-1", server.Mark("s1")), nil, "", ""},
		"marked for a server that is no more":  {s, none, with(seen("u1"), "snf-1", server.Mark("s3")), nil, "", ""},
		"being changed":                        {&changing, none, with(seen("u1"), "snf-1"), nil, fault.WrongState, "is being changed: stop by bob"},
		"it has its instance":                  {s, with(seen("u1"), "snf-1"), with(seen("u2"), "other"), nil, fault.WrongState, "has its instance, snf-1 with the UUID u1"},
		"there is no such instance":            {s, none, none, nil, fault.NotFound, "no such instance"},
		"another server's":                     {s, none, with(seen("u1"), "snf-1"), &server.Server{ID: "s2"}, fault.Exists, "instance snf-1 is server s2"},
		"made for another server":              {s, none, with(seen("u1"), "snf-1", server.Mark("s2")), nil, fault.Exists, "was made for server s2, as its tag drover:server:s2 says"},
		"made for this one, and for another":   {s, none, with(seen("u1"), "snf-1", server.Mark("s1"), server.Mark("s2")), nil, fault.Exists, "was made for server s2"},
		"one that could never be made, by now": {&server.Server{ID: "s1", Fault: &server.Fault{}}, none, with(seen("u1"), "late"), nil, "", ""},
	} {
		next, err := c.server.Match(c.own, c.sight, c.holder, there)
		if fault.CodeOf(err) != c.want || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s %q", what, err, c.want, c.says)
			continue
		}
		if err == nil && (next.UUID != c.sight.UUID || next.Instance != c.sight.Name || next.Status() != server.Shutoff || next.Trouble() != nil) {
			t.Errorf("%s: it is %s, %+v", what, next.Status(), next)
		}
	}
}

// TestTableByInstance: a server is found by its instance's UUID, and by the name that this was seen under last.
func TestTableByInstance(t *testing.T) {
	called := func(table *server.Table, backend, name string) (ids []string) {
		for s := range table.Called(backend, name) {
			ids = append(ids, s.ID)
		}
		return ids
	}
	a := &server.Server{ID: "a", Number: 1, Instance: "snf-1", UUID: "u1"}
	b := &server.Server{ID: "b", Number: 2, Instance: "snf-1", Backend: "far", UUID: "u1"}
	c := &server.Server{ID: "c", Number: 3, Instance: "snf-3"}
	table := server.NewTable(a, b, c)
	if table.At("", "u1") != a || table.At("far", "u1") != b || table.At("", "") != nil || table.At("", "snf-1") != nil {
		t.Error("servers are not found by UUID")
	}
	before := table.Copy()
	renamed := *c
	renamed.Instance, renamed.UUID = "snf-1", "u3"
	table.Put(&renamed)
	if got := called(table, "", "snf-1"); !slices.Equal(got, []string{"a", "c"}) || called(table, "", "snf-3") != nil || table.At("", "u3") != &renamed {
		t.Errorf("behind a renaming snf-1 is %v", got)
	}
	if got := called(before, "", "snf-3"); !slices.Equal(got, []string{"c"}) || before.At("", "u3") != nil {
		t.Errorf("the copy has changed: %v", got)
	}
	other := *a
	other.UUID = "u4"
	table.Put(&other)
	if table.At("", "u1") != nil || table.At("", "u4") != &other {
		t.Error("a server is still found by the instance that it is not any more")
	}
	taker := &server.Server{ID: "d", Number: 4, Instance: "snf-1", UUID: "u4"}
	table.Put(taker)
	last := other
	last.UUID = "u5"
	table.Put(&last)
	if table.At("", "u4") != taker {
		t.Error("an instance that is another server's by now is not found, since one that it was has let it go")
	}
	moved := renamed
	moved.Instance = "snf-9" // and is the same
	table.Put(&moved)
	if got := called(table, "", "snf-9"); !slices.Equal(got, []string{"c"}) || slices.Contains(called(table, "", "snf-1"), "c") || table.At("", "u3") != &moved {
		t.Errorf("behind another renaming snf-9 is %v, and snf-1 %v", got, called(table, "", "snf-1"))
	}
	table.Put(&renamed)
	table.Remove("d")
	table.Remove("a")
	table.Remove("b")
	if got := called(table, "", "snf-1"); !slices.Equal(got, []string{"c"}) || table.At("", "u4") != nil || table.At("", "u5") != nil || table.At("far", "u1") != nil || called(table, "far", "snf-1") != nil {
		t.Errorf("of those removed is left: %v", got)
	}
}
