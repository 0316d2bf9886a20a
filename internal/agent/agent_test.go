package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/reason"
)

// theOne is the instance that is called one.
var theOne = hypervisor.Thing{UUID: "uuid", Name: "one"}

func testAgent(t *testing.T) *Agent {
	t.Helper()
	dir := t.TempDir()
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(dir, "fake")})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Node: "node1", Dir: dir, Driver: driver, Now: func() time.Time { return time.Unix(0, 7) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func reasonOf(t *testing.T, a *Agent, instance string) string {
	t.Helper()
	data, err := os.ReadFile(a.ReasonFile(instance))
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReasonFileFollowsRealChanges(t *testing.T) {
	a := testAgent(t)
	ctx := t.Context()
	spec := hypervisor.Spec{UUID: "uuid", Name: "größe", Memory: 64}
	trail := func(text string) reason.Trail {
		return reason.Trail{{Source: "user", Reason: text, Time: 1}}
	}
	stop := hypervisor.Stop{Force: true}
	steps := []struct {
		name string
		do   func() error
		want string
	}{
		{"stop of what is not there", func() error { return a.Stop(ctx, Order{}, spec.Thing(), stop, trail("a")) }, ""},
		{"start", func() error { return a.Start(ctx, Order{}, spec, trail("b")) }, `[["user","b",1],["gnt:daemon:noded:start","",7]]`},
		{"second start", func() error { return a.Start(ctx, Order{}, spec, trail("c")) }, `[["user","b",1],["gnt:daemon:noded:start","",7]]`},
		{"soft reboot", func() error { return a.RebootSoft(ctx, Order{}, spec.Thing(), trail("d")) }, `[["user","d",1],["gnt:daemon:noded:reboot","",7]]`},
		{"hard reboot", func() error { return a.RebootHard(ctx, Order{}, spec, stop, trail("e")) }, `[["user","e",1],["gnt:daemon:noded:reboot","",7]]`},
		{"stop", func() error { return a.Stop(ctx, Order{}, spec.Thing(), stop, trail("f")) }, `[["user","f",1],["gnt:daemon:noded:shutdown","",7]]`},
		{"second stop", func() error { return a.Stop(ctx, Order{}, spec.Thing(), stop, trail("g")) }, `[["user","f",1],["gnt:daemon:noded:shutdown","",7]]`},
		{"remove", func() error { return a.Remove(ctx, Order{}, spec.Thing()) }, ""},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := strings.TrimSuffix(reasonOf(t, a, spec.Name), "\n"); got != s.want {
			t.Fatalf("after %s the reason file holds %s, want %s", s.name, got, s.want)
		}
	}
}

func TestReasonFileFollowsARename(t *testing.T) {
	a := testAgent(t)
	ctx := t.Context()
	trail := reason.Trail{{Source: "user", Reason: "first", Time: 1}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(a.Start(ctx, Order{}, hypervisor.Spec{UUID: "uuid", Name: "one"}, trail))
	check(a.Stop(ctx, Order{}, theOne, hypervisor.Stop{Force: true}, trail))
	was := reasonOf(t, a, "one")
	check(a.Rename(ctx, Order{}, theOne, "two"))
	if got := reasonOf(t, a, "one") + reasonOf(t, a, "two"); got != was {
		t.Fatalf("after the rename the reason files hold %q, want %q under the new name", got, was)
	}
	// An instance that never changed its state has no reason file, under no name.
	check(os.WriteFile(a.ReasonFile("four"), []byte("of an earlier instance"), 0o600))
	check(a.Prepare(ctx, Order{}, hypervisor.Thing{UUID: "u3", Name: "three"}, nil))
	check(a.Rename(ctx, Order{}, hypervisor.Thing{UUID: "u3", Name: "three"}, "four"))
	if got := reasonOf(t, a, "four"); got != "" {
		t.Fatalf("a renamed instance shows the trail of another: %q", got)
	}
}

// An order is about who has the UUID: another one of the name is not touched, and neither is its reason file. What an order makes
// has its mark.
func TestOrdersGoByUUID(t *testing.T) {
	a := testAgent(t)
	ctx, order := t.Context(), Order{Epoch: 1, Life: "life", Job: 7, Opcode: 2, Step: 1}
	spec := hypervisor.Spec{UUID: "another", Name: "one"}
	if err := a.Start(ctx, order, spec, reason.Trail{{Source: "user", Reason: "first", Time: 1}}); err != nil {
		t.Fatal(err)
	}
	was := reasonOf(t, a, "one")
	step := 1
	next := func() Order { step++; o := order; o.Step = step; return o }
	for verb, err := range map[string]error{
		"Prepare": a.Prepare(ctx, next(), theOne, nil), "Drop": a.Drop(ctx, next(), theOne, []string{"d"}), "Remove": a.Remove(ctx, next(), theOne),
		"Rename": a.Rename(ctx, next(), theOne, "two"), "Stop": a.Stop(ctx, next(), theOne, hypervisor.Stop{Force: true}, nil),
		"RebootSoft": a.RebootSoft(ctx, next(), theOne, nil), "Start": a.Start(ctx, next(), hypervisor.Spec{UUID: "uuid", Name: "one"}, nil),
		"RebootHard": a.RebootHard(ctx, next(), hypervisor.Spec{UUID: "uuid", Name: "one"}, hypervisor.Stop{}, nil),
	} {
		if !fault.Is(err, fault.Exists) {
			t.Errorf("%s of another one of the name: %v", verb, err)
		}
	}
	list, err := a.Named(ctx, "one")
	if want := (hypervisor.Mark{Life: "life", Job: 7, Opcode: 2}); err != nil || len(list) != 1 || !list[0].Active() || list[0].MadeBy != want {
		t.Errorf("under the name are %+v, %v", list, err)
	}
	if got := reasonOf(t, a, "one"); got != was {
		t.Errorf("the reason file is %q, and was %q", got, was)
	}
}

func TestRebootOfStoppedInstance(t *testing.T) {
	a := testAgent(t)
	if err := a.RebootSoft(t.Context(), Order{}, theOne, nil); !fault.Is(err, fault.WrongState) {
		t.Fatalf("got %v", err)
	}
	if got := reasonOf(t, a, "one"); got != "" {
		t.Fatalf("reason file after a failed reboot: %s", got)
	}
}

func TestDelayEndsWithItsContext(t *testing.T) {
	a := testAgent(t)
	if err := a.Delay(t.Context(), time.Microsecond); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Delay(ctx, time.Hour); !fault.Is(err, fault.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// writeOS makes an operating system definition from file contents.
func writeOS(t *testing.T, a *Agent, name string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(a.cfg.Dir, osDir, name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOSes(t *testing.T) {
	a := testAgent(t)
	writeOS(t, a, "debian", map[string]string{
		"ganeti_api_version": "20\n", "variants.list": "minimal\nfull\n",
		"parameters.list": "mirror where packages come from\n", "create": "#!/bin/sh\n",
	})
	writeOS(t, a, "broken", map[string]string{"ganeti_api_version": "5\n"})
	writeOS(t, a, "scriptless", map[string]string{"ganeti_api_version": "20\n"})
	list, err := a.OSes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range list {
		got = append(got, o.Name+":"+o.Problem[:min(len(o.Problem), 13)])
	}
	if want := "broken:no supported |debian:|noop:|scriptless:Required file"; strings.Join(got, "|") != want {
		t.Fatalf("got %q", got)
	}
	if d := list[1]; len(d.Variants) != 2 || d.Parameters[0] != (Parameter{"mirror", "where packages come from"}) {
		t.Fatalf("debian is %+v", d)
	}
}

func TestFindOS(t *testing.T) {
	a := testAgent(t)
	writeOS(t, a, "plain", map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\n"})
	writeOS(t, a, "broken", nil)
	writeOS(t, a, "two", map[string]string{"ganeti_api_version": "20\n", "create": "#!/bin/sh\n", "variants.list": "a\nb\n"})
	cases := []struct {
		name  string
		force bool
		want  fault.Code
	}{
		{"noop+default", false, ""},
		{"noop", false, ""},
		{"two", false, fault.Invalid},
		{"two", true, ""},
		{"two+b", false, ""},
		{"noop+other", false, fault.Invalid},
		{"noop+other", true, ""},
		{"plain", false, ""},
		{"plain+x", false, fault.Invalid},
		{"broken", false, fault.WrongState},
		{"nosuch", true, fault.NotFound},
	}
	for _, c := range cases {
		if _, err := a.FindOS(t.Context(), c.name, c.force); fault.CodeOf(err) != c.want {
			t.Errorf("FindOS(%q, %v): %v, want code %q", c.name, c.force, err, c.want)
		}
	}
}

func TestInstallRunsTheScript(t *testing.T) {
	a := testAgent(t)
	writeOS(t, a, "works", map[string]string{"ganeti_api_version": "20\n",
		"create": "#!/bin/sh\n[ \"$INSTANCE_NAME $OS_VARIANT $OSP_COLOR $DISK_0_SIZE\" = \"one v red 8\" ]\n"})
	writeOS(t, a, "failing", map[string]string{"ganeti_api_version": "20\n",
		"create": "#!/bin/sh\necho create script fails on purpose\nexit 1\n"})
	spec := hypervisor.Spec{UUID: "uuid", Name: "one", Disks: []hypervisor.Disk{{UUID: "d", Size: 8}}}
	if err := a.Install(t.Context(), Order{}, spec, "works+v", map[string]string{"color": "red"}, func(string) {}); err != nil {
		t.Error("works:", err)
	}
	if err := a.Install(t.Context(), Order{}, spec, "noop+default", nil, func(string) {}); err != nil {
		t.Error("noop:", err)
	}
	err := a.Install(t.Context(), Order{}, spec, "failing", nil, func(string) {})
	want := "OS create script failed (exited with exit code 1), last lines in the log file:\ncreate script fails on purpose"
	if !fault.Is(err, fault.Failed) || err.Error() != want {
		t.Errorf("failing: %v", err)
	}
}

func TestFleet(t *testing.T) {
	opened := 0
	f := NewFleet(func(node string) (*Agent, error) {
		if node == "down" {
			return nil, fault.New(fault.Environment, "no such machine")
		}
		opened++
		return testAgent(t), nil
	})
	first, err := f.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.Agent("node1"); err != nil || again != first || opened != 1 {
		t.Fatalf("second look-up: %v, %d opened", err, opened)
	}
	if _, err := f.Agent("down"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a node that cannot be opened: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Agent("node1"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("after Close: %v", err)
	}
}

// The reason file is of who has the name: the end of another one that had it, or was called so, leaves it.
func TestARemovalLeavesTheReasonFileOfWhoHasTheName(t *testing.T) {
	a := testAgent(t)
	ctx, life := t.Context(), Order{Epoch: 1, Life: "life"}
	left := hypervisor.Thing{UUID: "left", Name: "one"}
	if err := a.Prepare(ctx, life, left, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Prepare(ctx, life, theOne, nil); err != nil { // beside what a creation has left
		t.Fatal(err)
	}
	if err := a.Start(ctx, life, hypervisor.Spec{UUID: theOne.UUID, Name: "one"}, reason.Trail{{Source: "user", Reason: "first", Time: 1}}); err != nil {
		t.Fatal(err)
	}
	was := reasonOf(t, a, "one")
	if err := a.Remove(ctx, life, left); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, a, "one"); was == "" || got != was {
		t.Errorf("the reason file was %q, and is %q", was, got)
	}
}
