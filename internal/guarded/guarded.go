// Package guarded looks at programs that are run for others: those count that nobody could have changed but root and the user who runs them.
//
// Invariants:
//   - What others may write, or own, is refused, whatever link leads there; so is what would run with another's rights (TestWhatOthersCouldChange).
//   - A program is in a directory of which the same is so, and so is what a link leads to (TestProgram).
//
// The directories above these are not looked at: who may write to them is the administrator's choice.
package guarded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// loosest are the permissions that there may be at most: nobody but the owner writes.
const loosest = fs.FileMode(0o755)

// Program returns the path of a program of a directory.
func Program(dir, name string) (string, error) {
	info, err := look(dir, os.Geteuid())
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fault.New(fault.WrongState, "%s is not a directory", dir)
	}
	path := filepath.Join(dir, name)
	if target, err := filepath.EvalSymlinks(path); err == nil { // else look says why there is none
		if _, err := look(filepath.Dir(target), os.Geteuid()); err != nil {
			return "", err
		}
	}
	info, err = look(path, os.Geteuid())
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", fault.New(fault.WrongState, "%s is not a file that can be executed", path)
	}
	return path, nil
}

// look returns what is at a path, unless others than root and a user could have changed it.
func look(path string, user int) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "There is no %s", path)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "Can't look at %s: %w", path, err)
	}
	owner := -1
	if s, is := info.Sys().(*syscall.Stat_t); is {
		owner = int(s.Uid)
	}
	return info, changedByOthers(path, info.Mode(), owner, user)
}

// changedByOthers refuses what others than root and a user may write, and what runs with another's rights.
func changedByOthers(path string, mode fs.FileMode, owner, user int) error {
	const rights = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	switch {
	case mode.Perm()&^loosest != 0 || mode&rights != 0:
		return fault.New(fault.WrongState, "Permissions on %s are too permissive: %v", path, mode).WithHint("chmod 0755 %s, at most", path)
	case owner != 0 && owner != user:
		return fault.New(fault.WrongState, "%s is not owned by root, but by the user %d", path, owner).WithHint("chown root %s", path)
	}
	return nil
}
