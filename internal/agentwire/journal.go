package agentwire

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/wholefile"
)

// journal keeps on the node's disk which calls were begun that may not be done twice, and what came of them, so that an agent which is
// started again knows of those that it did not begin, and answers those that it had ended.
type journal struct {
	// dir is its directory; empty for a journal that keeps nothing.
	dir string
}

// keptCalls is how long a call is kept that nobody asked for again: longer than any controller asks.
const keptCalls = 7 * 24 * time.Hour

// openJournal opens the journal of a directory, and removes what is old.
func openJournal(dir string) (journal, error) {
	j := journal{dir}
	if dir == "" {
		return j, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return j, fault.New(fault.Environment, "cannot make the directory of calls: %w", err)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return j, fault.New(fault.Environment, "cannot read which calls were begun: %w", err)
	}
	for _, f := range all {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > keptCalls {
			_ = os.Remove(filepath.Join(dir, f.Name())) // it is tried again at the next start
		}
	}
	return j, nil
}

func (j journal) keeps() bool { return j.dir != "" }

func (j journal) path(id string) string { return filepath.Join(j.dir, id) } // a valid id is a name of a file

// begin notes a call before it is carried out.
func (j journal) begin(id string) error { return j.write(id, nil) }

// end notes what came of a call, before anybody is told.
func (j journal) end(id string, e *end) error { return j.write(id, e) }

// write keeps what is known of a call, all of it or nothing, flushed.
func (j journal) write(id string, e *end) error {
	if !j.keeps() {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Internal, "the call cannot be written: %w", err)
	}
	if err := wholefile.Write(j.path(id), text); err != nil {
		return fault.New(fault.Environment, "cannot note which calls are begun: %w", err)
	}
	return nil
}

// find tells whether a call was begun, and what came of it; nil if nobody knows.
func (j journal) find(id string) (e *end, begun bool, err error) {
	text, err := os.ReadFile(j.path(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err == nil:
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return nil, true, fault.New(fault.Unavailable, "it cannot be read what came of the call: %w", err)
	}
	return e, true, nil
}

// forget removes a call whose answer has come.
func (j journal) forget(id string) {
	if j.keeps() {
		_ = os.Remove(j.path(id)) // most are not there; what stays goes when it is old
	}
}
