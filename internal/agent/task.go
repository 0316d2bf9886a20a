package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/fault"
)

// Task is a task of a deployment.
type Task struct {
	// Deployment, Step and Attempt name the task. A command that was begun under this name is not begun again, however
	// often and under which leader the order arrives: its end is awaited, and its result stays.
	Deployment int64
	Step       int
	Attempt    int
	// Type is that of the task, such as "shell".
	Type string
	// Parameters are those of the task, as JSON.
	Parameters json.RawMessage
	// Noop has the task run in the way of its type that changes nothing; Dry only has it reported.
	Noop, Dry bool
	// Hidden are texts that are told of the task nowhere: not in lines of its output, not in errors.
	Hidden *secret.Values
}

// tasksDir holds a directory for each deployment, with the output and the results of its commands.
const tasksDir = "tasks"

// programsDir holds programs of the node's own for further types of tasks. A program is named after the type and gets
// the parameters as JSON on its standard input; its first argument is "run" or "noop".
const programsDir = "task-types"

// taskKeep is how long the output and results of commands stay on the node.
const taskKeep = 30 * 24 * time.Hour

// RunTask carries a task out and hands lines of its output over as they come. Failed says that it did not succeed;
// Unavailable that the wait for it was given up because the controller ends, and the task goes on; NotFound that the
// node lacks the program for the type; Invalid that parameters are missing or wrong.
func (a *Agent) RunTask(ctx context.Context, order Order, t Task, log func(line string)) error {
	if !a.cfg.Tasks {
		return fault.New(fault.WrongState, "node %s does not allow tasks of deployments", a.cfg.Node).
			WithHint("they run commands with the rights of the agent; allow them in the configuration of the node")
	}
	r := &taskRun{agent: a, ctx: ctx, order: order, task: t, log: func(line string) { log(t.Hidden.Text(line)) }}
	return t.Hidden.Error(r.carry())
}

// carry carries the task out.
func (r *taskRun) carry() error {
	t := r.task
	if err := r.agent.fence.Check(r.ctx, r.claim()); err != nil {
		return err
	}
	if t.Dry {
		r.log(fmt.Sprintf("would run a task of type %s with %s", t.Type, t.Parameters))
		return nil
	}
	if kind, ok := taskKinds[t.Type]; ok {
		return kind(r)
	}
	return ownProgram(r)
}

// taskRun is a task that is being carried out.
type taskRun struct {
	agent *Agent
	ctx   context.Context
	order Order
	task  Task
	log   func(string)
}

// claim is what the order of the task claims. The step of a deployment is what effects work on: attempts at it follow one another.
func (r *taskRun) claim() effect.Claim {
	step := fmt.Sprintf("task %d/%d", r.task.Deployment, r.task.Step)
	return effect.Claim{Order: r.order, Of: step, What: "run " + step}
}

// taskKinds are the types of tasks that a node can run by itself. The parameters of each have a shape of their own; those of other types
// are for the node's own programs.
var taskKinds = map[string]func(*taskRun) error{
	"shell":        (*taskRun).shell,
	"master_shell": (*taskRun).shell,
	"puppet":       (*taskRun).puppet,
	"sync":         (*taskRun).sync,
	"upload_file":  (*taskRun).upload,
	"copy_files":   (*taskRun).copyFiles,
}

// decode reads the parameters of the task. What its type does not know is left alone: graphs hold what is for others.
func (r *taskRun) decode(into any) error {
	err := json.Unmarshal(r.task.Parameters, into)
	wrong, isShape := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.Invalid):
		return r.named(into, err)
	case isShape && wrong.Field != "":
		return fault.New(fault.Invalid, "the parameter %s of a task of type %s is a JSON %s, which it cannot be", wrong.Field, r.task.Type, wrong.Value).
			At("parameters." + wrong.Field)
	}
	return fault.New(fault.Invalid, "the parameters of the task cannot be read: %w", err)
}

// named says which parameter is the one that is refused: who refused it saw its value alone.
func (r *taskRun) named(into any, err error) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(r.task.Parameters, &all) == nil {
		for name, value := range all {
			alone, err := json.Marshal(map[string]json.RawMessage{name: value})
			if err != nil {
				return err
			}
			if wrong := json.Unmarshal(alone, into); fault.Is(wrong, fault.Invalid) {
				return fault.New(fault.Invalid, "the parameter %s is refused: %w", name, wrong).At("parameters." + name)
			}
		}
	}
	return err
}

func (r *taskRun) missing(name string) error {
	return fault.New(fault.Invalid, "a task of type %s needs the parameter %s", r.task.Type, name).At("parameters." + name)
}

func (r *taskRun) shell() error {
	var p struct {
		running

		Cmd  string            `json:"cmd"`
		Args []word            `json:"args"`
		Env  map[variable]word `json:"env"`
	}
	if err := r.decode(&p); err != nil {
		return err
	}
	if p.Cmd == "" {
		return r.missing("cmd")
	}
	script := withArguments(p.Cmd, p.Args)
	if r.task.Noop {
		r.log("would run: " + script)
		return nil
	}
	// From a file, for everybody on the machine can read the arguments of programs.
	return r.command(&p.running, program{args: []string{"/bin/sh"}, script: script, env: environ(p.Env)})
}

// puppet takes the exit status 2 for a success: it means that something was changed.
func (r *taskRun) puppet() error {
	var p struct {
		running

		Manifest string `json:"puppet_manifest"`
		Modules  string `json:"puppet_modules"`
	}
	if err := r.decode(&p); err != nil {
		return err
	}
	if p.Manifest == "" {
		return r.missing("puppet_manifest")
	}
	path, err := r.program("puppet")
	if err != nil {
		return err
	}
	args := []string{path, "apply", "--verbose", "--detailed-exitcodes"}
	if p.Modules != "" {
		args = append(args, "--modulepath="+p.Modules)
	}
	if r.task.Noop {
		args = append(args, "--noop")
	}
	const changed = 2
	return r.command(&p.running, program{args: append(args, p.Manifest), good: []int{changed}})
}

func (r *taskRun) sync() error {
	var p struct {
		running

		Src string `json:"src"`
		Dst string `json:"dst"`
	}
	if err := r.decode(&p); err != nil {
		return err
	}
	if p.Src == "" || p.Dst == "" {
		return r.missing("src and dst")
	}
	path, err := r.program("rsync")
	if err != nil {
		return err
	}
	args := []string{path, "--checksum", "--recursive", "--delete", "--verbose"}
	if r.task.Noop {
		args = append(args, "--dry-run")
	}
	return r.command(&p.running, program{args: append(args, p.Src, p.Dst)})
}

// program finds a program on the node.
func (r *taskRun) program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fault.New(fault.NotFound, "node %s has no program %s, which tasks of type %s need", r.agent.cfg.Node, name, r.task.Type)
	}
	return path, nil
}

// ownProgram runs a task of a type that only the node's own programs know. Its parameters may have any shape; those that
// say how a command runs count if they have the one that they have elsewhere.
func ownProgram(r *taskRun) error {
	if r.task.Type != filepath.Base(r.task.Type) {
		return fault.New(fault.Invalid, "%q is no type of a task", r.task.Type)
	}
	path := filepath.Join(r.agent.cfg.Dir, programsDir, r.task.Type)
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o111 == 0 || info.IsDir() {
		return fault.New(fault.NotFound, "node %s has no program for tasks of type %s", r.agent.cfg.Node, r.task.Type).
			WithHint("it would be the file %s of the agent's directory", filepath.Join(programsDir, r.task.Type))
	}
	how := "run"
	if r.task.Noop {
		how = "noop"
	}
	return r.command(r.ownRunning(), program{args: []string{path, how}, input: r.task.Parameters})
}

// ownRunning reads how the program of an own type is run.
func (r *taskRun) ownRunning() *running {
	var all map[string]json.RawMessage
	if json.Unmarshal(r.task.Parameters, &all) != nil {
		return &running{} // no object
	}
	p := &running{}
	for name, into := range map[string]any{"cwd": &p.Cwd, "timeout": &p.Timeout, "retries": &p.Retries, "interval": &p.Interval} {
		text, there := all[name]
		if there && json.Unmarshal(text, into) != nil {
			r.log("the parameter " + name + " is left to the program: it says nothing about how the program runs")
		}
	}
	if _, err := p.Timeout.limit(); err != nil {
		p.Timeout = length{}
	}
	return p
}

// enter waits for the turn of the task.
func (r *taskRun) enter(claim effect.Claim) (*effect.Hold, error) {
	hold, err := r.agent.fence.Enter(r.ctx, claim)
	if err != nil && r.ctx.Err() != nil {
		return nil, interrupted(r.ctx)
	}
	return hold, err
}

// interrupted is the error of a wait that ended early. Unavailable: the controller ends, and the task goes on.
func interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	if goesOn(cause) {
		return fault.New(fault.Unavailable, "the wait for the task was given up: %w", cause)
	}
	return fault.New(fault.Canceled, "the task was ended: %w", cause)
}

func goesOn(cause error) bool {
	return fault.Is(cause, fault.Unavailable) || fault.Is(cause, fault.Fenced)
}

// dir is where output and results of the task are kept.
func (r *taskRun) dir() (string, error) {
	all := filepath.Join(r.agent.cfg.Dir, tasksDir)
	mine := filepath.Join(all, strconv.FormatInt(r.task.Deployment, 10))
	if _, err := os.Stat(mine); errors.Is(err, fs.ErrNotExist) {
		r.agent.prune(all)
	}
	dir := filepath.Join(mine, strconv.Itoa(r.task.Step)+"."+strconv.Itoa(r.task.Attempt))
	return dir, os.MkdirAll(dir, 0o700)
}

// prune removes what deployments left that are long over.
func (a *Agent) prune(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && a.cfg.Now().Sub(info.ModTime()) > taskKeep {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // it is tried again next time
		}
	}
}

// oneLine is a line of output as it is shown.
func oneLine(line []byte) string {
	return strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")
}
