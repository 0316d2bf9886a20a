package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
)

// hooksDir is the directory of operators' hooks, which may be a link to where they have them. Without it there are none.
const hooksDir = "hooks"

const (
	// hooksTime is how long all scripts of a directory may take.
	hooksTime = 15 * time.Minute
	// hookOutput is how much of the end of a script's output is kept, in bytes, and maxHooks how many scripts a directory may have.
	hookOutput = 4 << 10
	maxHooks   = 100
	// maxHookDirs is how many directories of hooks are told of.
	maxHookDirs = 100
)

// Hooks are scripts that are to run: those of a directory, with their environment.
type Hooks struct {
	Dir string            `json:"dir"`
	Env map[string]string `json:"env"`
}

// HookDirs are the directories of hooks that have anything to run, by name.
func (a *Agent) HookDirs(context.Context) ([]string, error) { return hookDirs(a.cfg.Dir), nil }

func hookDirs(dir string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(dir, hooksDir))
	if err != nil { // most nodes have none
		return nil
	}
	for _, e := range entries {
		if len(names) < maxHookDirs && hooks.IsDir(e.Name()) && len(hookScripts(filepath.Join(dir, hooksDir, e.Name()))) > 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

// hookScripts are the names of the scripts of a directory, in the order in which they run.
func hookScripts(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if !hooks.IsScript(e.Name()) {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

// RunHooks runs the scripts of a directory one behind the other, all of them whatever one comes to, and returns what they came to. Each is an effect, which ends
// with its order. One that runs when the time of all is over is ended with all that it began.
func (a *Agent) RunHooks(ctx context.Context, order Order, h Hooks) (results []hooks.Result, err error) {
	if !hooks.IsDir(h.Dir) {
		return nil, fault.New(fault.Invalid, "%.100q is no directory of hooks", h.Dir)
	}
	dir := filepath.Join(a.cfg.Dir, hooksDir, h.Dir)
	scripts := hookScripts(dir)
	if len(scripts) > maxHooks {
		return []hooks.Result{{Script: h.Dir, Failed: true, Output: fmt.Sprintf("there are %d scripts, and may be %d", len(scripts), maxHooks)}}, nil
	}
	limit, cancel := context.WithTimeoutCause(ctx, a.cfg.HooksTime, fault.New(fault.Failed, "the hooks took longer than %v", a.cfg.HooksTime))
	defer cancel()
	env := make([]string, 0, len(h.Env))
	for name, value := range h.Env {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	for _, name := range scripts {
		output := &tail{limit: hookOutput}
		err := a.runHook(limit, order, h.Dir, effect.Command{Args: []string{filepath.Join(dir, name)}, Dir: "/", Env: env, Output: output})
		switch {
		case ctx.Err() != nil || fault.Is(err, fault.Fenced):
			return nil, err
		case err == nil:
			results = append(results, hooks.Result{Script: h.Dir + "/" + name})
		default:
			results = append(results, hooks.Result{Script: h.Dir + "/" + name, Failed: true, Output: hooks.OneLine(output.lastLines(shownLines) + "\n" + why(err))})
		}
	}
	return results, nil
}

// errHook is that of a script that failed by its exit status, which says all.
var errHook = errors.New("")

// why is what an error adds to the output of a script.
func why(err error) string {
	if errors.Is(err, errHook) {
		return ""
	}
	return "Hook script execution error: " + err.Error()
}

// runHook runs one script. One that was ended because the controller was not sure that it leads runs again.
func (a *Agent) runHook(ctx context.Context, order Order, dir string, c effect.Command) error {
	of := fmt.Sprintf("hooks %s of job %d, opcode %d", dir, order.Job, order.Opcode)
	claim := effect.Claim{Order: order, Of: of, Kind: effect.Script, Name: fmt.Sprintf("job %d, opcode %d: hook %s", order.Job, order.Opcode, c.Args[0]), What: "run the hooks " + dir}
	for {
		hold, err := a.fence.Enter(ctx, claim)
		if err != nil {
			return err
		}
		exit, err := hold.Run(ctx, c)
		hold.Leave()
		switch {
		case errors.Is(err, effect.ErrUnsure):
			if err := a.cfg.Lead.Await(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case !exit.Known:
			return fault.New(fault.Failed, "it was killed")
		case exit.Status != 0:
			return errHook
		}
		return nil
	}
}
