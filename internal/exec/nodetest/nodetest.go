// Package nodetest is what everything promises that is an exec.Node, as tests: an agent in the same process, and one that
// is reached over a wire. Each case has a node of its own, with a hypervisor that is pretended.
//
// Invariants, each a case of the suite that fails without it:
//   - What was ordered has happened when the order returns, and the next look at the node shows it.
//   - An order of one name is carried out once; one of an older epoch never.
//   - Errors arrive as they were made: code, message, field, hint.
//   - Who stops waiting ends what was begun for it, and returns behind its end.
//   - A slow order holds up no other instance's.
package nodetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/testkit"
)

// Reach returns an agent as a controller sees it, until the test ends.
type Reach func(t *testing.T, a *agent.Agent) exec.Node

// Rig is a node with its machine.
type Rig struct {
	*testing.T
	Node  exec.Node
	Agent *agent.Agent
	// Dir is the directory of the agent.
	Dir string

	mu      sync.Mutex
	renewed int      // how often the certificate of the agent was
	calls   []string // of the driver that came to an end, such as "reboot"
	fail    func(fake.Call) error
}

// Life is the life of the store in whose name the suite gives orders.
const Life = "life-of-nodetest"

// New makes a node, with an agent that is reached by the adapter.
func New(t *testing.T, reach Reach) *Rig {
	t.Helper()
	r := &Rig{T: t, Dir: filepath.Join(t.TempDir(), "node")}
	driver, err := fake.Open(fake.Config{Dir: filepath.Join(t.TempDir(), "fake"), Fault: r.called, Providers: func() ([]storage.Provider, error) {
		return []storage.Provider{{Name: "shelf", Path: "/shelf", Problem: "it has no scripts"}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Agent, err = agent.New(agent.Config{Node: "node1.example.com", Dir: r.Dir, Driver: driver, Tasks: true, Commands: filepath.Join(r.Dir, "commands"), PowercycleDelay: 10 * time.Millisecond, Renew: r.renew})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Agent.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Node = reach(t, r.Agent)
	return r
}

func (r *Rig) called(c fake.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.After {
		r.calls = append(r.calls, c.Method)
	}
	if r.fail != nil {
		return r.fail(c)
	}
	return nil
}

// Fail has calls of the driver ask whether they fail; nil for none.
func (r *Rig) Fail(f func(fake.Call) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

// Calls counts the calls of a method of the driver that came to an end.
func (r *Rig) Calls(method string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c == method {
			n++
		}
	}
	return n
}

// Order is the order of a step of a job, under the first epoch.
func Order(number, step int) agent.Order {
	return agent.Order{Epoch: 1, Life: Life, Job: job.ID(number), Step: step}
}

// One is the instance that most cases are about.
var One = hypervisor.Thing{UUID: "7a4f0f3c-1111-4c67-a7f8-6f6d0f3f0001", Name: "one.example.com"}

// Spec is what runs an instance with a disk.
func Spec(of hypervisor.Thing) hypervisor.Spec {
	return hypervisor.Spec{
		Name: of.Name, UUID: of.UUID, Memory: 512, VCPUs: 2, Disks: []hypervisor.Disk{{UUID: of.UUID + "-disk", Size: 1024, Template: "plain"}},
		NICs:   []hypervisor.NIC{{UUID: of.UUID + "-nic", MAC: "aa:00:00:11:22:33", Mode: "bridged", Link: "br0"}},
		Params: map[string]any{"kernel_args": "ro", "acpi": true},
	}
}

// Made makes an instance and starts it.
func (r *Rig) Made(of hypervisor.Thing) {
	r.Helper()
	spec := Spec(of)
	r.Must(r.Node.Prepare(r.Context(), Order(1, 1), of, spec.Disks))
	r.Must(r.Node.Start(r.Context(), Order(1, 2), spec, nil))
}

// Must ends the test upon an error.
func (r *Rig) Must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// Want tells of an error that has not the code.
func (r *Rig) Want(code fault.Code, err error) {
	r.Helper()
	if fault.CodeOf(err) != code {
		r.Errorf("the error is %q: %v, want %q", fault.CodeOf(err), err, code)
	}
}

// Program writes an executable file below the agent's directory.
func (r *Rig) Program(text string, path ...string) {
	r.Helper()
	file := filepath.Join(append([]string{r.Dir}, path...)...)
	r.Must(os.MkdirAll(filepath.Dir(file), 0o750))
	r.Must(os.WriteFile(file, []byte(text), 0o700))
}

// OS makes a definition whose create script is given.
func (r *Rig) OS(name, create string) {
	r.Program("20\n", "os", name, "ganeti_api_version")
	r.Program("#!/bin/sh\n"+create, "os", name, "create")
}

// Pipe makes a pipe with a name. What opens it for writing is noticed by Begun, and its end by Gone.
type Pipe struct {
	r    *Rig
	Path string
	file *os.File
}

// Pipe returns a new pipe.
func (r *Rig) Pipe() *Pipe {
	p := &Pipe{r: r, Path: filepath.Join(r.TempDir(), "pipe")}
	r.Must(syscall.Mkfifo(p.Path, 0o600))
	return p
}

// Begun waits until somebody has written to the pipe.
func (p *Pipe) Begun() {
	p.r.Helper()
	var err error
	p.file, err = os.Open(p.Path)
	p.r.Must(err)
	_, err = p.file.Read(make([]byte, 1))
	p.r.Must(err)
}

// Gone waits until nobody has the pipe open any more.
func (p *Pipe) Gone() {
	p.r.Helper()
	_, err := io.Copy(io.Discard, p.file)
	p.r.Must(err)
	_ = p.file.Close()
}

// Within waits for something, for as long as tests are patient.
func Within[T any](t *testing.T, of <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-of:
		return v
	case <-time.After(testkit.Patience()):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

// Run holds an adapter to the suite.
func Run(t *testing.T, reach Reach) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*Rig)
	}{
		{"what is there", whatIsThere},
		{"strangers", strangers},
		{"disks", disks},
		{"memory", memory},
		{"what is handed over", migrated},
		{"figures and states", figures},
		{"operating systems", operatingSystems},
		{"reasons", reasons},
		{"an order twice", orderTwice},
		{"an order of old", orderOfOld},
		{"errors", errorsArrive},
		{"a script", script},
		{"a script that is ended", scriptIsEnded},
		{"images", images},
		{"exports", keptExports},
		{"hooks", runHooks},
		{"restricted commands", restrictedCommands},
		{"a powercycle", powercycle},
		{"another certificate", anotherCertificate},
		{"storage units", storageUnits},
		{"a delay", delay},
		{"orders beside one another", beside},
		{"tasks", tasks},
		{"checks of tasks", checks},
		{"a task that is ended", taskIsEnded},
		{"a task that goes on", taskGoesOn},
		{"a task's secrets", taskSecrets},
		{"much output", muchOutput},
		{"strange texts", strangeTexts},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(New(t, reach)) })
	}
}

func whatIsThere(r *Rig) {
	ctx, n := r.Context(), r.Node
	if n.Node() != "node1.example.com" {
		r.Errorf("the node is %q", n.Node())
	}
	_, err := n.Instance(ctx, One)
	r.Want(fault.NotFound, err)
	r.Made(One)
	got, err := n.Instance(ctx, One)
	r.Must(err)
	mark := hypervisor.Mark{Life: Life, Job: 1}
	if got.Name != One.Name || got.UUID != One.UUID || got.State != hypervisor.Running || got.Memory != 512 || got.VCPUs != 2 || got.MadeBy != mark {
		r.Errorf("the instance is %+v", got)
	}
	if !slices.Equal(got.Disks, Spec(One).Disks) {
		r.Errorf("its disks are %+v", got.Disks)
	}
	r.Must(n.Stop(ctx, Order(2, 1), One, hypervisor.Stop{Force: true}, nil))
	r.Must(n.Rename(ctx, Order(3, 1), One, "two.example.com"))
	all, err := n.Instances(ctx)
	r.Must(err)
	if len(all) != 1 || all[0].Name != "two.example.com" || all[0].Active() {
		r.Errorf("the instances are %+v", all)
	}
	named, err := n.Named(ctx, One.Name)
	r.Must(err)
	if len(named) != 0 {
		r.Errorf("under the name of before there is %+v", named)
	}
	r.Must(n.Remove(ctx, Order(4, 1), hypervisor.Thing{UUID: One.UUID, Name: "two.example.com"}))
	all, err = n.Instances(ctx)
	r.Must(err)
	if len(all) != 0 {
		r.Errorf("behind its removal there is %+v", all)
	}
}

func strangers(r *Rig) {
	r.Made(One)
	other := hypervisor.Thing{UUID: "7a4f0f3c-2222-4c67-a7f8-6f6d0f3f0002", Name: One.Name}
	for what, err := range map[string]error{
		"stop":    r.Node.Stop(r.Context(), Order(2, 1), other, hypervisor.Stop{Force: true}, nil),
		"drop":    r.Node.Drop(r.Context(), Order(2, 2), other, []string{"a"}),
		"detach":  r.Node.Detach(r.Context(), Order(2, 7), other, []string{"a"}),
		"balloon": r.Node.Balloon(r.Context(), Order(2, 5), other, 256),
		"remove":  r.Node.Remove(r.Context(), Order(2, 3), other),
		"reboot":  r.Node.RebootSoft(r.Context(), Order(2, 4), other, nil),
		"send":    r.Node.Send(r.Context(), Order(2, 6), other, nil),
	} {
		if !fault.Is(err, fault.Exists) {
			r.Errorf("%s of something else under the name: %v", what, err)
		}
	}
	_, err := r.Node.Instance(r.Context(), other)
	r.Want(fault.Exists, err)
	if got, err := r.Node.Instance(r.Context(), One); err != nil || got.State != hypervisor.Running {
		r.Errorf("what is under the name: %+v, %v", got, err)
	}
}

func disks(r *Rig) {
	ctx, more := r.Context(), []hypervisor.Disk{{UUID: "d1", Size: 100, Template: "plain"}, {UUID: "d2", Size: 200, Template: "plain", ReadOnly: true}}
	r.Must(r.Node.Prepare(ctx, Order(1, 1), One, more))
	more[0].Size = 150
	r.Must(r.Node.Prepare(ctx, Order(1, 2), One, more[:1]))
	r.Must(r.Node.Drop(ctx, Order(1, 3), One, []string{"d2"}))
	r.Want(fault.Unsupported, r.Node.Adjust(ctx, Order(1, 4), hypervisor.Spec{UUID: One.UUID, Name: One.Name})) // what is pretended
	got, err := r.Node.Instance(ctx, One)
	r.Must(err)
	if len(got.Disks) != 1 || got.Disks[0].Size != 150 || got.State != hypervisor.Stopped {
		r.Errorf("the instance is %+v", got)
	}
	r.Must(r.Node.Detach(ctx, Order(1, 5), One, []string{"d1"}))
	r.Want(fault.NotFound, r.Node.Detach(ctx, Order(1, 6), One, []string{"nosuch"}))
	if got, err = r.Node.Instance(ctx, hypervisor.DetachedDisk("d1")); err != nil || !got.Detached() || len(got.Disks) != 1 || got.Disks[0].Size != 150 {
		r.Errorf("the detached disk is %+v, %v", got, err)
	}
	r.Must(r.Node.Attach(ctx, Order(1, 7), One, []string{"d1"}))
	r.Want(fault.NotFound, r.Node.Attach(ctx, Order(1, 8), One, []string{"nosuch"}))
	if got, err = r.Node.Instance(ctx, One); err != nil || len(got.Disks) != 1 || got.Disks[0].UUID != "d1" {
		r.Errorf("the instance with its disk again is %+v, %v", got, err)
	}
}

func memory(r *Rig) {
	ctx := r.Context()
	r.Made(One)
	r.Must(r.Node.Balloon(ctx, Order(2, 1), One, 256))
	if got, err := r.Node.Instance(ctx, One); err != nil || got.Memory != 256 {
		r.Errorf("the instance is %+v, %v", got, err)
	}
	r.Must(r.Node.Stop(ctx, Order(3, 1), One, hypervisor.Stop{Force: true}, nil))
	r.Want(fault.WrongState, r.Node.Balloon(ctx, Order(3, 2), One, 256))
}

// migrated is an instance that the node sends, and one that it receives: the latter runs when it is started, and not before.
func migrated(r *Rig) {
	ctx, other := r.Context(), hypervisor.Thing{UUID: "7a4f0f3c-3333-4c67-a7f8-6f6d0f3f0003", Name: "three.example.com"}
	state := func(of hypervisor.Thing, want hypervisor.State) {
		r.Helper()
		if got, err := r.Node.Instance(ctx, of); err != nil || got.State != want {
			r.Errorf("%s is %+v, want %s, %v", of.Name, got, want, err)
		}
	}
	r.Made(One)
	r.Must(r.Node.Send(ctx, Order(2, 1), One, reason.Trail{{Source: "user", Reason: "away with it"}}))
	state(One, hypervisor.Stopped)
	spec := Spec(other)
	r.Must(r.Node.Prepare(ctx, Order(3, 1), other, spec.Disks))
	r.Must(r.Node.Receive(ctx, Order(3, 2), spec))
	state(other, hypervisor.Incoming)
	r.Must(r.Node.Start(ctx, Order(3, 3), spec, reason.Trail{{Source: "user", Reason: "here it is"}}))
	state(other, hypervisor.Running)
	for name, want := range map[string]string{One.Name: "away with it", other.Name: "here it is"} {
		trail := r.Agent.Reason(name)
		if len(trail) != 2 || trail[0].Reason != want || trail[1].Source != agent.SourceMigrate {
			r.Errorf("the reason file of %s has %+v", name, trail)
		}
	}
}

func figures(r *Rig) {
	ctx := r.Context()
	before, err := r.Node.Info(ctx)
	r.Must(err)
	if before.MemoryTotal == 0 || before.CPUs == 0 || before.BootID == "" || before.Version == "" {
		r.Errorf("the figures are %+v", before)
	}
	r.Made(One)
	s, err := r.Node.State(ctx, false)
	r.Must(err)
	if s.Err != nil || len(s.Instances) != 1 || s.Instances[0].State != hypervisor.Running || s.Node.MemoryFree != before.MemoryFree-512 || s.At.IsZero() {
		r.Errorf("behind the start the node tells %+v", s)
	}
	r.Fail(func(fake.Call) error {
		return fault.New(fault.Environment, "the driver is broken").WithHint("mend it")
	})
	s, err = r.Node.State(ctx, true)
	r.Must(err)
	if !fault.Is(s.Err, fault.Environment) || s.Err.Error() != "the driver is broken (mend it)" {
		r.Errorf("a broken driver's state: %+v", s)
	}
}

func operatingSystems(r *Rig) {
	r.OS("debian", "exit 0\n")
	r.Program("minimal\nfull\n", "os", "debian", "variants.list")
	r.Program("mirror where packages come from\n", "os", "debian", "parameters.list")
	o, err := r.Node.FindOS(r.Context(), "debian+full", false)
	r.Must(err)
	if o.Name != "debian" || !slices.Equal(o.Variants, []string{"minimal", "full"}) || len(o.Parameters) != 1 ||
		o.Parameters[0] != (agent.Parameter{Name: "mirror", Doc: "where packages come from"}) || !slices.Equal(o.APIVersions, []int{20}) {
		r.Errorf("the definition is %+v", o)
	}
	_, err = r.Node.FindOS(r.Context(), "nosuch", false)
	_, want := r.Agent.FindOS(r.Context(), "nosuch", false)
	if err == nil || err.Error() != want.Error() {
		r.Errorf("a definition that is not there: %v, want %v", err, want)
	}
}

func reasons(r *Rig) {
	trail := reason.Trail{{Source: "gnt:client:gnt-instance", Reason: "it is Tuesday: \"\u00e4\"", Time: 1_700_000_000_123_456_789}}
	r.Must(r.Node.Prepare(r.Context(), Order(1, 1), One, Spec(One).Disks))
	for i, act := range []func() error{
		func() error { return r.Node.Start(r.Context(), Order(1, 2), Spec(One), trail) },
		func() error {
			return r.Node.RebootHard(r.Context(), Order(2, 1), Spec(One), hypervisor.Stop{Force: true}, trail)
		},
		func() error { return r.Node.RebootSoft(r.Context(), Order(3, 1), One, trail) },
		func() error {
			return r.Node.Stop(r.Context(), Order(4, 1), One, hypervisor.Stop{Timeout: time.Minute}, trail)
		},
	} {
		r.Must(act())
		if got := r.Agent.Reason(One.Name); len(got) != 2 || got[0] != trail[0] {
			r.Errorf("order %d left the reason %+v", i, got)
		}
	}
}

func orderTwice(r *Rig) {
	r.Made(One)
	for range 3 {
		r.Must(r.Node.RebootSoft(r.Context(), Order(2, 1), One, nil))
	}
	if n := r.Calls("reboot"); n != 1 {
		r.Errorf("one order rebooted %d times", n)
	}
	r.Must(r.Node.RebootSoft(r.Context(), Order(2, 2), One, nil))
	if n := r.Calls("reboot"); n != 2 {
		r.Errorf("two orders rebooted %d times", n)
	}
}

func orderOfOld(r *Rig) {
	r.Made(One)
	newer := Order(2, 1)
	newer.Epoch = 2
	r.Must(r.Node.RebootSoft(r.Context(), newer, One, nil))
	r.Want(fault.Fenced, r.Node.Stop(r.Context(), Order(3, 1), One, hypervisor.Stop{Force: true}, nil))
	r.Want(fault.Fenced, r.Node.RunTask(r.Context(), Order(3, 2), shell("true"), func(string) {}))
	if got, err := r.Node.Instance(r.Context(), One); err != nil || got.State != hypervisor.Running {
		r.Errorf("behind an order of old: %+v, %v", got, err)
	}
}

func errorsArrive(r *Rig) {
	made := fault.New(fault.Exhausted, "there is no room: \"<&>\"\nat all").At("disks[0]").WithHint("make some")
	r.Fail(func(c fake.Call) error {
		if c.Method == "prepare" && !c.After {
			return made
		}
		return nil
	})
	err := r.Node.Prepare(r.Context(), Order(1, 1), One, Spec(One).Disks)
	got, ok := errors.AsType[*fault.Error](err)
	if !ok || got.Code != made.Code || got.Message != made.Message || got.Field != made.Field || got.Hint != made.Hint {
		r.Errorf("the error is %#v", err)
	}
	r.Fail(func(fake.Call) error { return errors.New("of no kind") })
	err = r.Node.Prepare(r.Context(), Order(1, 2), One, Spec(One).Disks)
	r.Want(fault.Internal, err)
	if err.Error() != "of no kind" {
		r.Errorf("an error without a code: %v", err)
	}
}

func script(r *Rig) {
	out := filepath.Join(r.TempDir(), "environment")
	r.OS("debian", "env > "+out+"\n")
	r.Must(r.Node.Install(r.Context(), Order(1, 1), Spec(One), "debian", map[string]string{"mirror": "http://\u00e4"}, func(string) {}))
	got, err := os.ReadFile(out)
	r.Must(err)
	want := "OSP_MIRROR=http://\u00e4"
	if !slices.Contains(lines(got), want) {
		r.Errorf("the script's environment lacks %s:\n%s", want, got)
	}
	r.OS("broken", "echo one; echo two >&2; exit 3\n")
	err = r.Node.Install(r.Context(), Order(2, 1), Spec(One), "broken", nil, func(string) {})
	r.Want(fault.Failed, err)
	if want := "OS create script failed (exited with exit code 3), last lines in the log file:\none\ntwo"; err == nil || err.Error() != want {
		r.Errorf("the error is %v", err)
	}
}

func scriptIsEnded(r *Rig) {
	p := r.Pipe()
	r.OS("slow", "exec 3> "+p.Path+"\necho begun >&3\nsleep 600\n")
	ctx, stop := context.WithCancelCause(r.Context())
	result := make(chan error, 1)
	go func() { result <- r.Node.Install(ctx, Order(1, 1), Spec(One), "slow", nil, func(string) {}) }()
	p.Begun()
	stop(fault.New(fault.Canceled, "nobody needs it"))
	err := Within(r.T, result, "the end of a script that was ended")
	p.Gone()
	r.Want(fault.Canceled, err)
	if err == nil || err.Error() != "OS create script was killed: nobody needs it" {
		r.Errorf("the error is %v", err)
	}
}

func delay(r *Rig) {
	r.Must(r.Node.Delay(r.Context(), time.Millisecond))
	ctx, stop := context.WithCancel(r.Context())
	stop()
	if err := r.Node.Delay(ctx, time.Hour); err == nil {
		r.Error("a delay that is ended succeeds")
	}
}

func beside(r *Rig) {
	p := r.Pipe()
	r.OS("slow", "exec 3> "+p.Path+"\necho begun >&3\nsleep 600\n")
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	result := make(chan error, 1)
	go func() { result <- r.Node.Install(ctx, Order(1, 1), Spec(One), "slow", nil, func(string) {}) }()
	p.Begun()
	done := make(chan error, 64)
	for i := range 64 {
		go func() {
			of := hypervisor.Thing{UUID: fmt.Sprintf("uuid-%d", i), Name: fmt.Sprintf("i%d.example.com", i)}
			done <- errors.Join(r.Node.Prepare(ctx, Order(10+i, 1), of, []hypervisor.Disk{{UUID: "d", Size: 1, Template: "plain"}}),
				r.Node.Start(ctx, Order(10+i, 2), hypervisor.Spec{UUID: of.UUID, Name: of.Name, Memory: 1, VCPUs: 1}, nil))
		}()
	}
	for range 64 {
		if err := Within(r.T, done, "an order beside a slow one"); err != nil {
			r.Error(err)
		}
	}
	stop()
	r.Want(fault.Canceled, Within(r.T, result, "the slow order"))
	p.Gone()
}

// FailOnce has something happen once when a call of the driver has come to its end, before anybody is told.
func (r *Rig) FailOnce(method string, happens func()) {
	var once sync.Once
	r.Fail(func(c fake.Call) error {
		if c.Method == method && c.After {
			once.Do(happens)
		}
		return nil
	})
}

// images has the node fetch an image, and refuse to write it on a disk that is only pretended.
func images(r *Rig) {
	content := make([]byte, 1024)
	content[510], content[511] = 0x55, 0xaa
	path := filepath.Join(testkit.OpenDir(r.T), "one.img")
	r.Must(os.WriteFile(path, content, 0o644))
	var told []string
	log := func(line string) { told = append(told, line) }
	found, err := r.Node.FetchImage(r.Context(), Order(1, 1), agent.Image{Name: "one", Source: path}, log)
	r.Must(err)
	if len(found.SHA256) != 64 || found.Format != "raw" || found.Size != 1024 || found.VirtualSize != 1 || found.Source != path || len(told) != 2 {
		r.Errorf("the image is %+v, and it was told %q", found, told)
	}
	again, err := r.Node.FetchImage(r.Context(), Order(1, 2), found, log)
	if r.Must(err); again != found || len(told) != 2 {
		r.Errorf("what is there is fetched again: %+v, %q", again, told)
	}
	_, err = r.Node.FetchImage(r.Context(), Order(1, 3), agent.Image{Name: "one", Source: path + "x"}, log)
	r.Want(fault.NotFound, err)
	broughtImage(r, found, content)
	r.Made(One)
	r.Want(fault.Unsupported, r.Node.InstallImage(r.Context(), Order(1, 4), Spec(One), found, map[string]string{"user_data": "x"}, log))
	wrong := found
	wrong.VirtualSize = 1 << 20
	r.Want(fault.Invalid, r.Node.InstallImage(r.Context(), Order(1, 5), Spec(One), wrong, nil, log))
	newer := Order(2, 1)
	newer.Epoch = 2
	r.Must(r.Node.RebootSoft(r.Context(), newer, One, nil))
	_, err = r.Node.FetchImage(r.Context(), Order(3, 1), found, log)
	r.Want(fault.Fenced, err)
	r.Want(fault.Fenced, r.Node.InstallImage(r.Context(), Order(3, 2), Spec(One), found, nil, log))
	_, err = r.Node.KeepImage(r.Context(), Order(3, 3), found, agent.Piece{Data: content, Next: 1024, Size: 1024}, log)
	r.Want(fault.Fenced, err)
}

// broughtImage has the node tell what it has of an image, and take another one that comes in two pieces.
func broughtImage(r *Rig, has agent.Image, content []byte) {
	ctx, log := r.Context(), func(string) {}
	if p, err := r.Node.ReadImage(ctx, has.SHA256, -1); err != nil || p.Size != has.Size || len(p.Data) != 0 {
		r.Errorf("it has %+v, %v", p, err)
	}
	if p, err := r.Node.ReadImage(ctx, has.SHA256, 0); err != nil || p.Next != has.Size || !bytes.Equal(p.Data, content[:512]) {
		r.Errorf("it reads as %+v, %v", p, err)
	}
	other := slices.Clone(content)
	other[0] = 'x'
	sum := sha256.Sum256(other)
	brought := has
	brought.Name, brought.SHA256 = "two", hex.EncodeToString(sum[:])
	_, err := r.Node.ReadImage(ctx, brought.SHA256, -1)
	r.Want(fault.NotFound, err)
	for i, p := range []agent.Piece{{Data: other[:600], Next: 600, Size: 1024}, {From: 600, At: 1024, Next: 1024, Size: 1024}} {
		if have, err := r.Node.KeepImage(ctx, Order(1, 6), brought, p, log); err != nil || have != (i == 1) {
			r.Errorf("piece %d: %v, %v", i, have, err)
		}
	}
	if p, err := r.Node.ReadImage(ctx, brought.SHA256, 0); err != nil || p.Size != 1024 {
		r.Errorf("what was brought is %+v, %v", p, err)
	}
}
