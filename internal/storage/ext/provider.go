package ext

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

// provider is a directory of scripts.
type provider struct {
	name, dir string
	params    []string    // that it lists
	listed    [][2]string // the same, with what it says of them
}

var (
	isProvider = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	isParam    = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
)

// scripts are those that a provider must have. verify is there for what may come: the reference calls it neither.
var scripts = []string{"create", "attach", "detach", "remove", "grow", "setinfo", "verify"}

// maxName is how long the name of a provider or parameter may be, in bytes.
const maxName = 100

// maxList is how much of a list of parameters is read, in bytes.
const maxList = 64 << 10

// provider looks whether a provider has what it must have.
func (d *Driver) provider(name string) (*provider, error) { return lookAt(d.providers, name) }

// lookAt looks at a provider of a directory.
func lookAt(dir, name string) (*provider, error) {
	if len(name) > maxName || !isProvider.MatchString(name) {
		return nil, fault.New(fault.Invalid, "%.200q cannot be the name of a storage provider", name).At("provider")
	}
	p := &provider{name: name, dir: filepath.Join(dir, name)}
	for _, script := range scripts {
		if !p.has(script) {
			return nil, fault.New(fault.Environment, "the storage provider %s has no script %s on this node", name, script).At("provider").
				WithHint("providers are directories in %s; each needs, executable: %s; and parameters.list", dir, strings.Join(scripts, ", "))
		}
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "parameters.list"))
	if err == nil && len(text) > maxList {
		err = errors.New("it is too long")
	}
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot read which parameters the storage provider %s has: %w", name, err).At("provider")
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 {
			p.params = append(p.params, words[0])
			p.listed = append(p.listed, [2]string{words[0], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0]))})
		}
	}
	return p, nil
}

// has reports whether a provider has a script.
func (p *provider) has(script string) bool {
	info, err := os.Stat(filepath.Join(p.dir, script))
	const execute = 0o111
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&execute != 0
}

// check refuses a disk that the scripts cannot be told of.
func (p *provider) check(disk *storage.Disk) error {
	if disk.Name == "" {
		return fault.New(fault.Invalid, "disk %s has no name by which the storage provider %s would know it", disk.ID, p.name).At("disks")
	}
	for _, name := range slices.Sorted(maps.Keys(disk.Params)) {
		switch {
		case len(name) > maxName || !isParam.MatchString(name) || !slices.Contains(p.params, name):
			return fault.New(fault.Invalid, "the storage provider %s has no parameter %.100q", p.name, name).At("disks."+name).WithHint("it has: %s", strings.Join(p.params, ", "))
		case strings.ContainsRune(disk.Params[name], 0):
			return fault.New(fault.Invalid, "the parameter %s of the storage provider %s has a zero byte", name, p.name).At("disks." + name)
		}
	}
	return nil
}

func sizeOf(r *record) string    { return "VOL_SIZE=" + strconv.Itoa(r.Size) }
func newSize(size int) string    { return "VOL_NEW_SIZE=" + strconv.Itoa(size) }
func changes(script string) bool { return script == "create" || script == "grow" || script == "remove" }
func pause(ctx context.Context) error {
	const again = 100 * time.Millisecond
	select {
	case <-time.After(again):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// environment is all that a script gets.
func environment(r *record, more []string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "VOL_NAME=" + r.Name, "VOL_UUID=" + r.ID}
	if r.Label != "" {
		env = append(env, "VOL_CNAME="+r.Label)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		env = append(env, "EXTP_"+strings.ToUpper(name)+"="+r.Params[name])
	}
	return append(env, more...)
}

// How long scripts may take, and how much of what they say is kept, in bytes.
const (
	longest  = time.Hour       // of those that make, grow or remove
	patience = 2 * time.Minute // of the others
	kept     = 16 << 10
)

// run runs a script.
func (d *Driver) run(ctx context.Context, p *provider, script string, r *record, more ...string) error {
	_, err := d.output(ctx, p, script, r, more...)
	return err
}

// output runs a script, and returns what it said.
func (d *Driver) output(ctx context.Context, p *provider, script string, r *record, more ...string) (string, error) {
	within := patience
	if changes(script) {
		within = longest
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fault.New(fault.Failed, "it took longer than %s", within))
	defer cancel()
	args := []string{filepath.Join(p.dir, script)}
	if script == "remove" { // what it came to is known also to an agent that comes behind this one
		args = []string{"/bin/sh", "-c", `"$1"; s=$?; echo $s >"$2"; exit $s`, "sh", args[0], d.outcome(r.ID)}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = p.dir, environment(r, more)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // what it leaves running may hold its output open
	var said, complaint head
	cmd.Stdout, cmd.Stderr = &said, &complaint
	if changes(script) {
		held, err := d.lock(ctx, r.ID)
		if err != nil {
			return "", err
		}
		defer func() { _ = held.Close() }()
		cmd.ExtraFiles = append(cmd.ExtraFiles, held)
	}
	err := cmd.Run()
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return said.String(), nil
	case ctx.Err() != nil:
		return "", fault.New(fault.Canceled, "the script %s of the storage provider %s was ended: %w", script, p.name, context.Cause(ctx))
	}
	text := strings.TrimSpace(complaint.String() + said.String())
	return "", fault.New(fault.Failed, "the script %s of the storage provider %s failed for the volume %s (%w): %s", script, p.name, r.Name, err, fault.Clip(text, 1000))
}

// head keeps the beginning of what is written to it.
type head struct{ text bytes.Buffer }

// Write never fails.
func (h *head) Write(text []byte) (int, error) {
	if room := kept - h.text.Len(); room > 0 {
		_, _ = h.text.Write(text[:min(room, len(text))]) // never fails
	}
	return len(text), nil
}

func (h *head) String() string { return h.text.String() }
