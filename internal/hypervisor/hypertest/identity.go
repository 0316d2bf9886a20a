package hypertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// madeBy: a thing has the mark of the call that made it, whatever happens to it.
func (s *suite) madeBy() {
	ctx, other := s.Context(), hypervisor.Mark{Life: "another-life", Job: 8}
	prepared, started := spec("prepared", hypervisor.Disk{UUID: "d", Size: 8}), spec("started")
	prepared.By, started.By = other, mark
	s.do("Prepare", true)(s.d.Prepare(ctx, prepared.Thing(), mark, nil))
	s.do("Prepare by another", true)(s.d.Prepare(ctx, prepared.Thing(), other, prepared.Disks))
	s.do("Start by another", true)(s.d.Start(ctx, prepared))
	s.do("Start", true)(s.d.Start(ctx, started))
	s.do("Stop", true)(s.d.Stop(ctx, started.Thing(), hypervisor.Stop{}))
	s.do("Rename", true)(s.d.Rename(ctx, started.Thing(), "renamed"))
	s.d = s.open(s.T, s.dir)
	started.By = other
	s.do("Start by another", true)(s.d.Start(ctx, started))
	for _, name := range []string{"prepared", "started"} {
		if got := s.state(name, hypervisor.Running); got.MadeBy != mark {
			s.Errorf("%s is made by %v, and was by %v", name, got.MadeBy, mark)
		}
	}
	list, err := s.d.Instances(ctx)
	if err != nil || len(list) != 2 || list[0].MadeBy != mark || list[1].MadeBy != mark {
		s.Errorf("the list has %+v, %v", list, err)
	}
}

// stranger: what is under a name with another UUID is left alone by every call.
func (s *suite) stranger() {
	ctx := s.Context()
	there := spec("one", hypervisor.Disk{UUID: "old", Size: 8})
	second := hypervisor.Thing{UUID: "second", Name: "one"}
	verbs := map[string]func() error{
		"Prepare": func() error {
			_, err := s.d.Prepare(ctx, second, hypervisor.Mark{Life: "another-life", Job: 7, Opcode: 1}, []hypervisor.Disk{{UUID: "new", Size: 8}})
			return err
		},
		"Prepare by nobody": func() error { _, err := s.d.Prepare(ctx, second, hypervisor.Mark{}, nil); return err },
		"Drop":              func() error { _, err := s.d.Drop(ctx, second, []string{"old"}); return err },
		"Detach":            func() error { _, err := s.d.Detach(ctx, second, mark, []string{"old"}); return err },
		"Attach": func() error {
			_, err := s.d.Attach(ctx, second, hypervisor.Mark{Life: "another-life"}, []string{"old"})
			return err
		},
		"Remove": func() error { _, err := s.d.Remove(ctx, second); return err },
		"Rename": func() error { _, err := s.d.Rename(ctx, second, "two"); return err },
		"Start": func() error {
			_, err := s.d.Start(ctx, hypervisor.Spec{Name: "one", UUID: "second", By: mark})
			return err
		},
		"Stop":     func() error { _, err := s.d.Stop(ctx, second, hypervisor.Stop{Force: true}); return err },
		"Reboot":   func() error { return s.d.Reboot(ctx, second) },
		"Instance": func() error { _, err := s.d.Instance(ctx, second); return err },
	}
	if len(s.node().Snapshots) > 0 {
		verbs["Snapshot"] = func() error { _, err := s.d.Snapshot(ctx, second, "id"); return err }
		verbs["Release"] = func() error { _, err := s.d.Release(ctx, second, "id"); return err }
		verbs["CopySnapshot"] = func() error { return s.d.CopySnapshot(ctx, second, "id", "old", nil, func(int64, int64) {}) }
	}
	check := func(state hypervisor.State) {
		s.Helper()
		for verb, call := range verbs {
			err := call()
			s.refused(verb+" of another one", fault.Exists, err)
			if f, known := errors.AsType[*fault.Error](err); !known || f.Hint == "" || !strings.Contains(f.Message, "second") || !strings.Contains(f.Message, there.UUID) {
				s.Errorf("%s of another one: %v lacks a UUID, or a hint", verb, err)
			}
			if got := s.state("one", state); got.Name != "one" || len(got.Disks) != 1 || got.Disks[0].UUID != "old" || got.MadeBy != mark {
				s.Fatalf("%s of another one made of the first: %+v", verb, got)
			}
		}
	}
	s.do("Prepare", true)(s.d.Prepare(ctx, there.Thing(), mark, there.Disks))
	check(hypervisor.Stopped)
	s.do("Start", true)(s.d.Start(ctx, there))
	verbs["Prepare by the same life beside what runs"] = func() error { _, err := s.d.Prepare(ctx, second, mark, nil); return err }
	check(hypervisor.Running)
	s.d = s.open(s.T, s.dir)
	check(hypervisor.Running)
}

// named lists what is under a name, by UUID.
func (s *suite) named(name string, want ...string) {
	s.Helper()
	list, err := s.d.Named(s.Context(), name)
	if err != nil {
		s.Fatalf("Named(%s): %v", name, err)
	}
	got := []string{}
	for i := range list {
		got = append(got, list[i].UUID)
		if list[i].Name != name {
			s.Errorf("Named(%s) has %+v", name, list[i])
		}
	}
	if !slices.Equal(got, want) {
		s.Fatalf("under the name %s are %v, want %v", name, got, want)
	}
}

// namesakes: a node may have several things of one name, which are told apart by UUID.
func (s *suite) namesakes() {
	ctx := s.Context()
	first, second, third := spec("one", hypervisor.Disk{UUID: "d", Size: 8}), spec("one"), spec("two")
	first.UUID, second.UUID = "uuid-1", "uuid-2"
	s.named("one")
	s.do("Prepare", true)(s.d.Prepare(ctx, first.Thing(), mark, first.Disks))
	s.do("Prepare beside what this life left", true)(s.d.Prepare(ctx, second.Thing(), mark, nil))
	s.do("second Prepare", false)(s.d.Prepare(ctx, second.Thing(), mark, nil))
	s.do("Prepare", true)(s.d.Prepare(ctx, third.Thing(), mark, nil))
	third.Name = "one"
	s.do("Start under another name", true)(s.d.Start(ctx, third))
	for range 2 {
		s.named("one", "uuid-1", "uuid-2", "uuid-of-two")
		s.named("two")
		for _, of := range []hypervisor.Spec{first, second, third} {
			got, err := s.d.Instance(ctx, of.Thing())
			if err != nil || got.UUID != of.UUID || got.Name != "one" || len(got.Disks) != len(of.Disks) || got.Active() != (of.UUID == third.UUID) {
				s.Errorf("of three namesakes %s is %+v, %v", of.UUID, got, err)
			}
		}
		s.d = s.open(s.T, s.dir)
	}
	_, err := s.d.Rename(ctx, first.Thing(), "one")
	if err != nil {
		s.Errorf("Rename to the name that it has: %v", err)
	}
	s.do("Stop", true)(s.d.Stop(ctx, third.Thing(), hypervisor.Stop{}))
	s.do("Rename", true)(s.d.Rename(ctx, third.Thing(), "three"))
	s.do("Remove", true)(s.d.Remove(ctx, first.Thing()))
	s.named("one", "uuid-2")
	s.named("three", "uuid-of-two")
	_, err = s.d.Instance(ctx, hypervisor.Thing{UUID: "uuid-of-two", Name: "whatever"})
	if err != nil {
		s.Errorf("what is known under another name: %v", err)
	}
}

func (s *suite) rename() {
	ctx := s.Context()
	_, err := s.d.Rename(ctx, thing("a"), "b")
	s.refused("Rename of an unknown instance", fault.NotFound, err)
	disk := hypervisor.Disk{UUID: "d", Size: 8}
	i := spec("a", disk)
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	s.do("Prepare", true)(s.d.Prepare(ctx, thing("taken"), mark, nil))
	_, err = s.d.Rename(ctx, thing("a"), "taken")
	s.refused("Rename to a name in use", fault.Exists, err)
	_, err = s.d.Rename(ctx, thing("a"), "../b")
	s.refused("Rename to a bad name", fault.Invalid, err)
	s.do("first Rename", true)(s.d.Rename(ctx, thing("a"), "b"))
	s.do("second Rename", false)(s.d.Rename(ctx, thing("a"), "b"))
	s.d = s.open(s.T, s.dir)
	if got := s.state("a", hypervisor.Stopped); got.Name != "b" || got.UUID != i.UUID || len(got.Disks) != 1 {
		s.Fatalf("renamed instance is %+v", got)
	}
	s.named("a")
	_, err = s.d.Rename(ctx, thing("unknown"), "b")
	s.refused("Rename of what is not there to a name in use", fault.NotFound, err)
	i.Name = "b"
	s.do("Start", true)(s.d.Start(ctx, i))
	_, err = s.d.Rename(ctx, i.Thing(), "c")
	s.refused("Rename of a running instance", fault.WrongState, err)
}

func (s *suite) badNames() {
	for _, name := range []string{"..", "../x", "a/b", ".hidden", "a\x00b"} {
		_, err := s.d.Start(s.Context(), spec(name))
		s.refused(fmt.Sprintf("Start(%q)", name), fault.Invalid, err)
		_, err = s.d.Remove(s.Context(), thing(name))
		s.refused(fmt.Sprintf("Remove(%q)", name), fault.Invalid, err)
		_, err = s.d.Instance(s.Context(), hypervisor.Thing{UUID: name, Name: "one"})
		s.refused(fmt.Sprintf("Instance with the UUID %q", name), fault.Invalid, err)
		_, err = s.d.Named(s.Context(), name)
		s.refused(fmt.Sprintf("Named(%q)", name), fault.Invalid, err)
	}
	_, err := s.d.Stop(s.Context(), hypervisor.Thing{Name: "one"}, hypervisor.Stop{})
	s.refused("Stop without a UUID", fault.Invalid, err)
	s.do("a name in another script", true)(s.d.Start(s.Context(), spec("größe.пример")))
}
