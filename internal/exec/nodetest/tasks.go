package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// lines are the lines of a text.
func lines(text []byte) (all []string) {
	for l := range bytes.Lines(text) {
		all = append(all, string(bytes.TrimSuffix(l, []byte("\n"))))
	}
	return all
}

// shell is a task that runs a command.
func shell(command string) agent.Task {
	text, err := json.Marshal(map[string]any{"cmd": command, "cwd": "/"})
	if err != nil {
		panic(err)
	}
	return agent.Task{Deployment: 7, Step: 1, Attempt: 1, Type: "shell", Parameters: text}
}

// output collects lines, and tells of each.
type output struct {
	mu   sync.Mutex
	all  []string
	told chan string
}

func newOutput() *output { return &output{told: make(chan string, 1024)} }

func (o *output) line(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, text)
	select {
	case o.told <- text:
	default:
	}
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.all)
}

func tasks(r *Rig) {
	out := newOutput()
	r.Must(r.Node.RunTask(r.Context(), Order(1, 1), shell("echo one; echo two >&2; printf three"), out.line))
	if got := out.lines(); !slices.Equal(got, []string{"one", "two", "three"}) {
		r.Errorf("the lines are %q", got)
	}
	for kind, want := range map[string]fault.Code{"nosuch": fault.NotFound, "../shell": fault.Invalid} {
		task := shell("true")
		task.Step, task.Type = 2, kind
		r.Want(want, r.Node.RunTask(r.Context(), Order(1, 2), task, out.line))
	}
	failing := shell("exit 3")
	failing.Step = 3
	r.Want(fault.Failed, r.Node.RunTask(r.Context(), Order(1, 3), failing, out.line))
	dry := shell("exit 3")
	dry.Step, dry.Dry = 4, true
	r.Must(r.Node.RunTask(r.Context(), Order(1, 4), dry, out.line))
	noop := shell("exit 3")
	noop.Step, noop.Noop = 5, true
	r.Must(r.Node.RunTask(r.Context(), Order(1, 5), noop, out.line))
}

// What differs is told without secrets; what is no answer is an error.
func checks(r *Rig) {
	const hidden = "correct-horse"
	ask := func(command string) agent.Check {
		text, err := json.Marshal(command)
		r.Must(err)
		return agent.Check{Type: "shell", Parameters: json.RawMessage(`{"cmd":"x"}`), Command: text, Hidden: secret.NewValues([]string{hidden})}
	}
	found, err := r.Node.Compare(r.Context(), ask("echo it is "+hidden+"; exit 1"))
	r.Must(err)
	if want := "it is " + secret.Mark; !found.Differs || found.Summary != want || !slices.Equal(found.Difference, []string{want}) {
		r.Errorf("what differs is %+v", found)
	}
	found, err = r.Node.Compare(r.Context(), ask("true"))
	r.Must(err)
	if found.Differs {
		r.Errorf("what is as it should be: %+v", found)
	}
	_, err = r.Node.Compare(r.Context(), ask("nosuch-"+hidden))
	r.Want(fault.Failed, err)
	if strings.Contains(err.Error(), hidden) {
		r.Errorf("it is told %v", err)
	}
	_, err = r.Node.Compare(r.Context(), agent.Check{Type: "shell", Parameters: json.RawMessage(`{"cmd":"x"}`)})
	r.Want(fault.Unsupported, err)
	found, err = r.Node.Compare(r.Context(), agent.Check{Type: "upload_file", Parameters: json.RawMessage(`{"path":"/nowhere/to/be/found","data":"x"}`)})
	r.Must(err)
	if !found.Differs || found.Summary != "/nowhere/to/be/found is not there" {
		r.Errorf("a file that is not there: %+v", found)
	}
}

func taskIsEnded(r *Rig) {
	p, out := r.Pipe(), newOutput()
	ctx, stop := context.WithCancelCause(r.Context())
	result := make(chan error, 1)
	go func() {
		result <- r.Node.RunTask(ctx, Order(1, 1), shell("echo first; exec 3> "+p.Path+"; echo begun >&3; sleep 600"), out.line)
	}()
	p.Begun()
	if got := Within(r.T, out.told, "a line of a task that runs"); got != "first" {
		r.Errorf("the first line is %q", got)
	}
	stop(fault.New(fault.Canceled, "nobody needs it"))
	r.Want(fault.Canceled, Within(r.T, result, "the end of a task that was ended"))
	p.Gone()
}

// A controller that ends leaves the task alone: it is joined by the next.
func taskGoesOn(r *Rig) {
	p, out, on := r.Pipe(), newOutput(), r.Pipe()
	task := shell("echo first; exec 3> " + p.Path + "; echo begun >&3; read x < " + on.Path + "; echo last")
	ctx, stop := context.WithCancelCause(r.Context())
	result := make(chan error, 1)
	go func() { result <- r.Node.RunTask(ctx, Order(1, 1), task, out.line) }()
	p.Begun()
	stop(fault.New(fault.Unavailable, "the controller ends"))
	r.Want(fault.Unavailable, Within(r.T, result, "the answer about a task that goes on"))
	next, joined := Order(1, 1), newOutput()
	next.Epoch = 2
	go func() { result <- r.Node.RunTask(r.Context(), next, task, joined.line) }()
	if first := Within(r.T, joined.told, "a line for who joins"); first != "the command was begun before and still runs; its output follows" {
		r.Errorf("who joined is told %q", first)
	}
	r.Must(os.WriteFile(on.Path, []byte("on\n"), 0o600)) // when the task opens it
	r.Must(Within(r.T, result, "the end of a task that was joined"))
	p.Gone()
	if got := joined.lines(); !slices.Equal(got[1:], []string{"first", "last"}) {
		r.Errorf("who joined saw %q", got)
	}
}

func taskSecrets(r *Rig) {
	const hidden = "correct-horse"
	task, out := shell("echo it is "+hidden+"; exit 3"), newOutput()
	task.Hidden = secret.NewValues([]string{hidden})
	err := r.Node.RunTask(r.Context(), Order(1, 1), task, out.line)
	r.Want(fault.Failed, err)
	if all := fmt.Sprint(out.lines(), err); strings.Contains(all, hidden) || !strings.Contains(all, "it is ") {
		r.Errorf("the task told %s", all)
	}
}

func muchOutput(r *Rig) {
	const many = 20_000
	n := 0
	r.Must(r.Node.RunTask(r.Context(), Order(1, 1), shell(fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done", many)), func(line string) {
		if want := fmt.Sprintf("line %d", n); line != want && n < many {
			r.Errorf("line %d is %q", n, line)
			n = many
		}
		n++
	}))
	if n != many {
		r.Errorf("%d lines came of %d", n, many)
	}
}

func strangeTexts(r *Rig) {
	for i, name := range []string{"../../etc", "", "a/b", "\x00", strings.Repeat("x", 1<<16), "\xff\xfe", "e\u0301"} {
		of := hypervisor.Thing{UUID: fmt.Sprint("uuid-", i), Name: name}
		got := r.Node.Prepare(r.Context(), Order(10+i, 1), of, nil)
		if want := r.Agent.Prepare(r.Context(), Order(10+i, 2), of, nil); fault.CodeOf(got) != fault.CodeOf(want) {
			r.Errorf("an instance %.20q: %v, want %v", name, got, want)
		}
	}
}
