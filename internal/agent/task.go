package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
	if err := a.ledger.obey(order, "run a task"); err != nil {
		return err
	}
	p := taskParameters{}
	if err := json.Unmarshal(t.Parameters, &p); err != nil {
		return fault.New(fault.Invalid, "the parameters of the task cannot be read: %w", err)
	}
	if t.Dry {
		log(fmt.Sprintf("would run a task of type %s with %s", t.Type, t.Parameters))
		return nil
	}
	if kind, ok := taskKinds[t.Type]; ok {
		return kind(&taskRun{a, ctx, t, p, log})
	}
	return ownProgram(&taskRun{a, ctx, t, p, log})
}

// obey admits an order that is not about an instance.
func (l *ledger) obey(o Order, what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.follow(o, what)
}

// taskRun is a task that is being carried out.
type taskRun struct {
	agent *Agent
	ctx   context.Context
	task  Task
	p     taskParameters
	log   func(string)
}

// taskParameters are those of all types together.
type taskParameters struct {
	Cmd      string  `json:"cmd"`
	Cwd      string  `json:"cwd"`
	Timeout  seconds `json:"timeout"`
	Retries  number  `json:"retries"`
	Interval seconds `json:"interval"`

	Manifest string `json:"puppet_manifest"`
	Modules  string `json:"puppet_modules"`

	Path           string `json:"path"`
	Data           *text  `json:"data"`
	Permissions    mode   `json:"permissions"`
	DirPermissions mode   `json:"dir_permissions"`

	Files []struct {
		Src string `json:"src"`
		Dst string `json:"dst"`
	} `json:"files"`
	Src string `json:"src"`
	Dst string `json:"dst"`
}

// taskKinds are the types of tasks that a node can run by itself.
var taskKinds = map[string]func(*taskRun) error{
	"shell":        (*taskRun).shell,
	"master_shell": (*taskRun).shell,
	"puppet":       (*taskRun).puppet,
	"sync":         (*taskRun).sync,
	"upload_file":  (*taskRun).upload,
	"copy_files":   (*taskRun).copyFiles,
}

func (r *taskRun) missing(name string) error {
	return fault.New(fault.Invalid, "a task of type %s needs the parameter %s", r.task.Type, name).At("parameters." + name)
}

func (r *taskRun) shell() error {
	if r.p.Cmd == "" {
		return r.missing("cmd")
	}
	if r.task.Noop {
		r.log("would run: " + r.p.Cmd)
		return nil
	}
	return r.command([]string{"/bin/sh", "-c", r.p.Cmd}, nil)
}

// puppet takes the exit status 2 for a success: it means that something was changed.
func (r *taskRun) puppet() error {
	if r.p.Manifest == "" {
		return r.missing("puppet_manifest")
	}
	program, err := r.program("puppet")
	if err != nil {
		return err
	}
	args := []string{program, "apply", "--verbose", "--detailed-exitcodes"}
	if r.p.Modules != "" {
		args = append(args, "--modulepath="+r.p.Modules)
	}
	if r.task.Noop {
		args = append(args, "--noop")
	}
	const changed = 2
	return r.command(append(args, r.p.Manifest), nil, changed)
}

func (r *taskRun) sync() error {
	if r.p.Src == "" || r.p.Dst == "" {
		return r.missing("src and dst")
	}
	program, err := r.program("rsync")
	if err != nil {
		return err
	}
	args := []string{program, "--checksum", "--recursive", "--delete", "--verbose"}
	if r.task.Noop {
		args = append(args, "--dry-run")
	}
	return r.command(append(args, r.p.Src, r.p.Dst), nil)
}

// program finds a program on the node.
func (r *taskRun) program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fault.New(fault.NotFound, "node %s has no program %s, which tasks of type %s need", r.agent.cfg.Node, name, r.task.Type)
	}
	return path, nil
}

// ownProgram runs a task of a type that only the node's own programs know.
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
	return r.command([]string{path, how}, r.task.Parameters)
}

// upload writes a file as a whole, or not at all.
func (r *taskRun) upload() error {
	if r.p.Path == "" || r.p.Data == nil {
		return r.missing("path and data")
	}
	return r.put(r.p.Path, func(w io.Writer) error {
		_, err := io.WriteString(w, string(*r.p.Data))
		return err
	})
}

// copyFiles copies files that the node can reach.
func (r *taskRun) copyFiles() error {
	for _, f := range r.p.Files {
		err := r.put(f.Dst, func(w io.Writer) error {
			src, err := os.Open(f.Src)
			if err != nil {
				return err
			}
			defer src.Close() //nolint:errcheck // it is only read
			_, err = io.Copy(w, src)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *taskRun) put(path string, write func(io.Writer) error) error {
	if r.task.Noop {
		r.log("would write " + path)
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.p.Cwd, path)
	}
	err := os.MkdirAll(filepath.Dir(path), r.p.DirPermissions.or(0o755))
	if err == nil {
		err = replaceWith(path, r.p.Permissions.or(0o644), write)
	}
	if err != nil {
		return fault.New(fault.Failed, "cannot write %s on node %s: %w", path, r.agent.cfg.Node, err)
	}
	r.log("wrote " + path)
	return nil
}

// replaceWith writes a file beside the one that it then takes the place of.
func replaceWith(path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".drover-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the first error counts
		}
	}()
	err = errors.Join(write(f), f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// number is a number or its text; anything else is none.
type number float64

// UnmarshalJSON never fails: graphs hold what their executors ignored.
func (n *number) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil {
		*n = number(f)
	}
	return nil
}

// seconds is a length of time, as a number of seconds.
type seconds struct{ number }

func (s seconds) or(d time.Duration) time.Duration {
	if s.number <= 0 {
		return d
	}
	return time.Duration(float64(s.number) * float64(time.Second))
}

// mode are permissions of a file, in octal digits.
type mode fs.FileMode

// UnmarshalJSON reads "0644", and 644 as the same.
func (m *mode) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(b), `"`), 8, 32)
	if err != nil {
		return fmt.Errorf("permissions must be octal digits, such as \"0644\", got %s", b)
	}
	*m = mode(n) & mode(fs.ModePerm)
	return nil
}

func (m mode) or(d fs.FileMode) fs.FileMode {
	if m == 0 {
		return d
	}
	return fs.FileMode(m)
}

// text is a text; other values are their JSON.
type text string

// UnmarshalJSON reads any value.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = text(s)
	return nil
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
