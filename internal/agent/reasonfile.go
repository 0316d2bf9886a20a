package agent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

const reasonDir = "instance-reason"

// ReasonFile returns the path of an instance's reason file. It goes by the name, for others read it.
func (a *Agent) ReasonFile(instance string) string {
	return filepath.Join(a.cfg.Dir, reasonDir, instance)
}

// Reason tells why an instance last changed its state; nil where nothing that
// can be read tells it.
func (a *Agent) Reason(instance string) reason.Trail {
	text, err := os.ReadFile(a.ReasonFile(instance))
	if err != nil {
		return nil
	}
	var trail reason.Trail
	if json.Unmarshal(text, &trail) != nil {
		return nil
	}
	return trail
}

// writeReason replaces the instance's reason file with the trail and the
// node's own entry.
func (a *Agent) writeReason(instance string, trail reason.Trail, source string) error {
	entry := reason.Entry{Source: source, Time: a.cfg.Now().UnixNano()}
	data, err := json.Marshal(trail.Append(entry))
	if err != nil {
		return fault.New(fault.Internal, "cannot encode the reason trail of %s: %w", instance, err)
	}
	if err := replaceFile(a.ReasonFile(instance), append(data, '\n')); err != nil {
		return fault.New(fault.Environment, "cannot write the reason file of %s: %w", instance, err)
	}
	return nil
}

// dropReason removes the reason file of an instance that is gone, so that
// another of the same name does not show what became of the first.
func (a *Agent) dropReason(instance string) error {
	if err := os.Remove(a.ReasonFile(instance)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Environment, "cannot remove the reason file of %s: %w", instance, err)
	}
	return nil
}

// moveReason makes the reason file follow its instance to another name. One
// that an earlier instance of that name left does not stay.
func (a *Agent) moveReason(instance, to string) error {
	if instance == to {
		return nil
	}
	err := os.Rename(a.ReasonFile(instance), a.ReasonFile(to))
	if errors.Is(err, fs.ErrNotExist) {
		return a.dropReason(to)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot move the reason file of %s to %s: %w", instance, to, err)
	}
	return nil
}

// replaceFile writes a file so that a reader sees all of it or what was there
// before. The leading dot of the temporary file keeps it from being that of an
// instance.
func replaceFile(path string, data []byte) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	const readable = 0o640
	if err := os.WriteFile(temporary, data, readable); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
