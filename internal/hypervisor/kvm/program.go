package kvm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qmp"
)

// program is a QEMU, and what it says that it can do.
type program struct {
	path    string
	version string
	// types has the machine types' own names, by all names that they go by.
	types map[string]string
	// models are the processors that it can run as they are, by name, each with all of its features; "max" and "host" are what there is.
	models []string
}

// usualType is the machine type of new machines.
const usualType = "q35"

// Find returns where a QEMU is: the program that is named, or that of the search path. Environment when there is none.
func Find(path string) (string, error) {
	if path == "" {
		path = "qemu-system-x86_64"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fault.New(fault.Environment, "there is no QEMU: %w", err).WithHint("install it (Debian: apt-get install qemu-system-x86), or say where it is")
	}
	return found, nil
}

// openProgram finds a QEMU and asks it what it can do.
func openProgram(ctx context.Context, path string) (*program, error) {
	found, err := Find(path)
	if err != nil {
		return nil, err
	}
	p := &program{path: found, types: map[string]string{}}
	if err := p.converse(ctx, "tcg", p.askTypes); err != nil {
		return nil, err
	}
	if tooOld(p.version) {
		return nil, fault.New(fault.Unsupported, "%s is QEMU %s, which is too old: %s or later is needed", p.path, p.version, oldest).
			WithHint("Debian 12 has it; the setting qemu names another one")
	}
	return p, nil
}

// oldest is the QEMU that has all that is used: network cards that are said in JSON came last.
const oldest = "7.2"

// tooOld reports whether a QEMU is older than that, or says no version.
func tooOld(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err != nil || major < 7 || major == 7 && minor < 2
}

// converse runs QEMU without a machine and asks it something, which takes a tenth of a second.
func (p *program) converse(ctx context.Context, accelerator string, ask func(context.Context, *qmp.Client) error) error {
	ours, theirs, err := pair()
	if err != nil {
		return fault.New(fault.Environment, "cannot talk to QEMU: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.CommandContext(ctx, p.path, "-accel", accelerator, "-nodefaults", "-no-user-config", "-S", "-machine", "none", "-display", "none",
		"-chardev", "socket,id=monitor,fd=3", "-mon", "chardev=monitor,mode=control")
	var said tail
	cmd.Dir, cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = "/", []*os.File{theirs}, &said, &said
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return fault.New(fault.Environment, "cannot start QEMU: %w", err)
	}
	_ = theirs.Close() // its end is QEMU's alone, so it ends with QEMU
	c, asked := qmp.Open(ctx, ours, func(qmp.Event) {})
	if asked == nil {
		asked = ask(ctx, c)
		_ = c.Close()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if asked != nil {
		return fault.New(fault.Environment, "%s does not say what it can do: %w %s", p.path, asked, said)
	}
	return nil
}

// tail is the beginning of what a program says.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p[:min(len(p), 1000-len(*t))]...)
	return len(p), nil
}

// pair is a line with an end that can be handed on.
func pair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	mine := os.NewFile(uintptr(fds[0]), "monitor")
	defer func() { _ = mine.Close() }()
	theirs := os.NewFile(uintptr(fds[1]), "monitor")
	conn, err := net.FileConn(mine)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// askModels asks which processors it can run by an accelerator.
func (p *program) askModels(ctx context.Context, accelerator string) error {
	return p.converse(ctx, accelerator, func(ctx context.Context, c *qmp.Client) error {
		var all []struct {
			Name  string   `json:"name"`
			Lacks []string `json:"unavailable-features"`
		}
		if err := c.Do(ctx, "query-cpu-definitions", nil, &all); err != nil {
			return err
		}
		for _, model := range all {
			if len(model.Lacks) == 0 {
				p.models = append(p.models, model.Name)
			}
		}
		slices.Sort(p.models)
		return nil
	})
}

func (p *program) askTypes(ctx context.Context, c *qmp.Client) error {
	var machines []struct{ Name, Alias string }
	if err := c.Do(ctx, "query-machines", nil, &machines); err != nil {
		return err
	}
	for _, m := range machines {
		p.types[m.Name] = m.Name
		if m.Alias != "" {
			p.types[m.Alias] = m.Name
		}
	}
	p.version = c.Version()
	return nil
}

// machineType is the own name of the machine type that is asked for; empty asks for the usual one.
func (p *program) machineType(asked string) (string, error) {
	if asked == "" {
		asked = usualType
	}
	if name := p.types[asked]; name != "" {
		return name, nil
	}
	return "", fault.New(fault.Unsupported, "QEMU %s has no machine type %.100q", p.version, asked).At("hvparams").
		WithHint("%s -machine help lists them", p.path)
}
