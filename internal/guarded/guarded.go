// Package guarded looks at programs that are run for others: those count that nobody could have changed but root and the user who runs them.
//
// Invariants:
//   - What others may write, or own, is refused, whatever link leads there; so is what would run with another's rights (TestWhatOthersCouldChange).
//   - A program is in a directory of which the same is so, and so is what a link leads to (TestProgram).
//   - Nobody else can put another one in its place on the way there: not by a link on it, nor in a directory above one (TestTheWay). In a directory with
//     the sticky bit, as /tmp, everybody may put things, and nobody takes the place of what is there.
package guarded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	if err := way(path, os.Geteuid()); err != nil {
		return "", err
	}
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
	return info, changedByOthers(path, info.Mode(), ownerOf(info), user)
}

// changedByOthers refuses what others than root and a user may write, and what runs with another's rights.
func changedByOthers(path string, mode fs.FileMode, owner, user int) error {
	const rights = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	switch {
	case mode.Perm()&^loosest != 0 || mode&rights != 0:
		return fault.New(fault.WrongState, "Permissions on %s are too permissive: %v", path, mode).WithHint("chmod 0755 %s, at most", path)
	case owner != 0 && owner != user:
		return notOwned(path, owner)
	}
	return nil
}

// most is how many links a way may have.
const most = 40

// way looks at each directory and each link that the kernel comes through on the way to a path. What is not there is not its concern.
func way(path string, user int) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fault.New(fault.Environment, "Can't look at %s: %w", path, err)
	}
	at, left, links := "/", parts(path), 0
	for len(left) > 0 {
		next := filepath.Join(at, left[0])
		left = left[1:]
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fault.New(fault.Environment, "Can't look at %s: %w", next, err)
		}
		if err := replaced(next, info.Mode(), ownerOf(info), user); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > most {
			return fault.New(fault.Environment, "Can't follow the link %s", next)
		}
		left = append(parts(to), left...)
		if filepath.IsAbs(to) {
			at = "/"
		}
	}
	return nil
}

// parts are the names that a path is made of.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// replaced refuses a directory or link on a way that others own, and a directory in which others can replace what is there.
func replaced(path string, mode fs.FileMode, owner, user int) error {
	const others = 0o022
	switch {
	case owner != 0 && owner != user:
		return notOwned(path, owner)
	case mode.IsDir() && mode.Perm()&others != 0 && mode&fs.ModeSticky == 0:
		return fault.New(fault.WrongState, "Permissions on %s are too permissive: %v", path, mode).WithHint("chmod go-w %s", path)
	}
	return nil
}

func notOwned(path string, owner int) error {
	return fault.New(fault.WrongState, "%s is not owned by root, but by the user %d", path, owner).WithHint("chown root %s", path)
}

// ownerOf is who owns what was looked at; -1 where nobody can tell.
func ownerOf(info fs.FileInfo) int {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return int(s.Uid)
	}
	return -1
}
