package effect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// system is the operating system as a host: groups of processes, notes as files, locks of files.
//
// The directory of the agent's files has the epoch that the node follows, and in effects/, of each thing that an effect works on, NOTE.json and, while somebody acts on it, NOTE.hold, where
// NOTE is made from the thing's name; of a script also its lock and exit status.
type system struct {
	epoch string // path
	dir   string
	boot  string
}

const (
	epochName  = "epoch"
	effectsDir = "effects"

	noteEnd = ".json"
	holdEnd = ".hold"
	lockEnd = ".lock"
	pidEnd  = ".pid"
	// restEnd is that of the file which says that all output of a task is in its log.
	restEnd = ".end"
)

// again is how long is waited between two looks at what another process has: nobody tells when a lock is free.
const again = 20 * time.Millisecond

// System returns the operating system as a host, with its files in the directory of an agent.
func System(dir string) (Host, error) {
	s := &system{epoch: filepath.Join(dir, epochName), dir: filepath.Join(dir, effectsDir), boot: bootID()}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fault.New(fault.Environment, "cannot make the directory of what the node's agent begins: %w", err)
	}
	return s, nil
}

// Follows reads the file each time: agents of the node in other processes may have followed another leader since.
func (s *system) Follows() (int64, error) {
	text, err := os.ReadFile(s.epoch)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot tell which controller the node follows: %w", err)
	}
	epoch, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot tell which controller the node follows: the file %s is damaged, it holds no number but %q",
			s.epoch, fault.Clip(string(text), 100)).
			WithHint("remove it when no controller of an earlier term runs any more; the node then follows the next one that gives it an order")
	}
	return epoch, nil
}

func (s *system) Follow(epoch int64) error {
	if err := replaceFile(s.epoch, []byte(strconv.FormatInt(epoch, 10)+"\n"), 0o640); err != nil {
		return fault.New(fault.Environment, "cannot remember the controller that the node follows: %w", err)
	}
	return nil
}

// path is that of the files of a thing; names may be as long as those of files, so they are not in it.
func (s *system) path(of string) string {
	sum := sha256.Sum256([]byte(of))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16]))
}

// Hold locks the file of a thing. Who leaves removes it, so what is locked has to be what is there.
func (s *system) Hold(ctx context.Context, of string) (release func(), err error) {
	path := s.path(of) + holdEnd
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		switch held, err := holds(f, path); {
		case err != nil:
			return nil, errors.Join(err, f.Close())
		case held:
			return func() {
				_ = os.Remove(path)
				_ = f.Close()
			}, nil
		}
		_ = f.Close() // it was only locked
		if ctx.Err() != nil {
			return nil, fault.New(fault.Busy, "%s is held by %s", of, holders(path))
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// holds locks an open file, if nobody else has it, and tells whether it is then the one that has a path. One that is not was that of
// somebody who has left.
func holds(f *os.File, path string) (bool, error) {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil && isAt(f, path), err
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// isAt tells whether an open file is the one that has a path now.
func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func (s *system) Noted(of string) (*Effect, error) { return readNote(s.path(of) + noteEnd) }

func readNote(path string) (*Effect, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	e := new(Effect)
	if err == nil {
		err = json.Unmarshal(text, e)
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "what runs on the node cannot be told, for %s cannot be read: %w", path, err).
			WithHint("make sure that nothing runs there for an earlier order, and remove the file")
	}
	return e, nil
}

func (s *system) All() ([]Effect, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var all []Effect
	for _, entry := range entries {
		if name := entry.Name(); filepath.Ext(name) == noteEnd && name[0] != '.' {
			e, err := readNote(filepath.Join(s.dir, name))
			if err != nil {
				return nil, err
			}
			if e != nil {
				all = append(all, *e)
			}
		}
	}
	return all, nil
}

func (s *system) Note(e Effect) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = replaceFile(s.path(e.Of)+noteEnd, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot note what is to run on the node: %w", err)
	}
	return nil
}

// Forget removes the note, and what only it made use of.
func (s *system) Forget(e Effect) error {
	err := os.Remove(s.path(e.Of) + noteEnd)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if e.Files == s.path(e.Of) {
		for _, end := range []string{"", lockEnd, pidEnd} {
			_ = os.Remove(e.Files + end) // the next effect of the thing does it otherwise
		}
	}
	return err
}

func (s *system) Find(e Effect) Process { return &process{system: s, effect: e} }

// replaceFile writes a file so that a reader, and a machine that lost its power, finds all of it or what was there before.
func replaceFile(path string, data []byte, perm fs.FileMode) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return flushDir(filepath.Dir(path))
}

// flushDir makes the names in a directory durable.
func flushDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
