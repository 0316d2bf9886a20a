package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/guarded"
)

// outOfBand runs the programs that ask management controllers of nodes. They are in directories that the operator of this machine has named.
type outOfBand struct{ dirs []string }

// outOfBandMost is how many bytes such a program may answer.
const outOfBandMost = 1 << 20

// newOutOfBand returns the programs of directories that are separated by colons; nil for none.
func newOutOfBand(path string) exec.Programs {
	dirs := directories(path)
	if len(dirs) == 0 {
		return nil
	}
	return outOfBand{dirs}
}

// directories are those of a list with colons.
func directories(path string) (dirs []string) {
	for dir := range strings.SplitSeq(path, ":") {
		if dir != "" {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// Check refuses a program that is in none of the directories, or that others could have changed.
func (o outOfBand) Check(program string) error {
	dir, name := filepath.Split(program)
	if !filepath.IsAbs(program) || filepath.Clean(program) != program || !slices.Contains(o.dirs, filepath.Clean(dir)) {
		return fault.New(fault.WrongState, "%.200q is in none of the directories that are allowed", program).
			WithHint("the setting oob-programs of the controllers is %s; the node parameter oob_program is the whole path of a program in one of these", strings.Join(o.dirs, ":"))
	}
	_, err := guarded.Program(filepath.Clean(dir), name)
	return err
}

// Run runs a program, with a command and the name of a node.
func (o outOfBand) Run(ctx context.Context, program, command, node string, most time.Duration) ([]byte, error) {
	if err := o.Check(program); err != nil { // it was checked when it was planned, and may be another by now
		return nil, err
	}
	said, err := ask{program: program, args: []string{command, node}, patience: most, most: outOfBandMost}.run(ctx)
	if err != nil {
		return nil, fault.New(fault.Failed, "'%s' failed: %w", fmt.Sprintf("%s %s %s", program, command, node), err)
	}
	return said, nil
}
