package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/guarded"
)

const (
	// commandTime is how long a restricted command may take.
	commandTime = 15 * time.Minute
	// commandOutput is how much of the end of its output is told, in bytes.
	commandOutput = 64 << 10
)

// commandName is what a restricted command may be called.
var commandName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// RunCommand runs a restricted command, which is a program in the directory that the node's operator has named, without arguments, and returns what it said.
// It is an effect, which ends with its order; given again, the order runs it again.
func (a *Agent) RunCommand(ctx context.Context, order Order, name string) (output string, err error) {
	program, err := a.command(name)
	if err != nil {
		return "", err
	}
	what := "run the restricted command " + name
	hold, err := a.fence.Enter(ctx, effect.Claim{
		Order: order, Of: fmt.Sprintf("command of job %d, opcode %d", order.Job, order.Opcode), Kind: effect.Script, Name: fmt.Sprintf("job %d, opcode %d: command %s", order.Job, order.Opcode, name), What: what,
	})
	if err != nil {
		return "", err
	}
	defer hold.Leave()
	limit, cancel := context.WithTimeoutCause(ctx, a.cfg.CommandTime, fault.New(fault.Failed, "terminated after %v", a.cfg.CommandTime))
	defer cancel()
	said := &tail{limit: commandOutput}
	exit, err := hold.Run(limit, effect.Command{Args: []string{program}, Dir: "/", Env: []string{"PATH=/sbin:/bin:/usr/sbin:/usr/bin"}, Output: said})
	var why string
	switch {
	case ctx.Err() != nil || fault.Is(err, fault.Fenced):
		return "", err
	case errors.Is(err, effect.ErrUnsure): // it may not be run twice
		return "", fault.New(fault.Failed, "Restricted command '%s' was ended, for the controller was not sure for a while that it leads; it is not run again", name)
	case err != nil:
		why = err.Error()
	case !exit.Known:
		why = "killed"
	case exit.Status != 0:
		why = "exited with exit code " + strconv.Itoa(exit.Status)
	default:
		return said.text(), nil
	}
	return "", fault.New(fault.Failed, "Restricted command '%s' failed: %s; output: %s", name, why, said.text())
}

// text is what was kept, and says how it begins if that is not the beginning. Bytes that are no text are replaced.
func (t *tail) text() string {
	text := strings.ToValidUTF8(string(t.kept), "�")
	if t.cut {
		return fmt.Sprintf("[only the last %d bytes] ", t.limit) + text
	}
	return text
}

// command returns the program of a restricted command, if the node has it and nobody but its operator could have put it there.
func (a *Agent) command(name string) (program string, err error) {
	dir := a.cfg.Commands
	switch {
	case dir == "":
		return "", fault.New(fault.WrongState, "Restricted commands are not enabled on node %s", a.cfg.Node).
			WithHint("the setting restricted-commands of the node's agent names the directory that they are in")
	case strings.TrimSpace(name) == "":
		return "", fault.New(fault.Invalid, "Missing command name").At("command")
	case filepath.Base(name) != name:
		return "", fault.New(fault.Invalid, "Invalid command name %.100q: it is the name of a file, without a directory", name).At("command")
	case !commandName.MatchString(name):
		return "", fault.New(fault.Invalid, "Command name %.100q contains forbidden characters", name).At("command")
	}
	return guarded.Program(dir, name)
}
