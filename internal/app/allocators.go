package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// allocators runs programs that choose nodes. They are in directories that the operator has named; in none, if none is.
type allocators struct {
	dirs []string
	// patience is how long a program may take, and most how many bytes it may answer.
	patience time.Duration
	most     int
}

const (
	allocatorPatience = time.Minute
	allocatorMost     = 16 << 20
)

func newAllocators(path string) *allocators {
	return &allocators{dirs: directories(path), patience: allocatorPatience, most: allocatorMost}
}

// allocatorName is what a program may be called.
var allocatorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Has reports whether there is a program of that name.
func (a *allocators) Has(name string) bool { return a.find(name) != "" }

// find returns the first program of that name; empty if there is none.
func (a *allocators) find(name string) string {
	if !allocatorName.MatchString(name) {
		return ""
	}
	for _, dir := range a.dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Run asks a program, and returns what it says. One that takes too long, or says too much, is ended, with all that it began.
func (a *allocators) Run(ctx context.Context, name string, options []string, input []byte) ([]byte, error) {
	program := a.find(name)
	if program == "" {
		return nil, fault.New(fault.Failed, "iallocator module '%s' not found in the search path", name)
	}
	file, err := os.CreateTemp("", "drover-iallocator.")
	if err != nil {
		return nil, fault.New(fault.Environment, "iallocator module '%s' cannot be asked: %w", name, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(input)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fault.New(fault.Environment, "iallocator module '%s' cannot be asked: %w", name, err)
	}
	said, err := ask{program: program, args: append([]string{file.Name()}, options...), patience: a.patience, most: a.most}.run(ctx)
	if err != nil {
		return nil, fault.New(fault.Failed, "iallocator module '%s' failed: %w", name, err)
	}
	return said, nil
}
