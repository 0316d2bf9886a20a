package ext

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

// Providers lists the directories of providers, also of those that cannot be used.
func (d *Driver) Providers(ctx context.Context) ([]storage.Provider, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Canceled, "listing storage providers was interrupted: %w", err)
	}
	return Providers(d.providers)
}

// Providers lists what a directory has of providers.
func Providers(dir string) (found []storage.Provider, err error) {
	entries, err := os.ReadDir(dir) // by name
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot list the storage providers: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a link to a directory is one, too
		if err != nil || !info.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		p, err := lookAt(dir, e.Name())
		shown := storage.Provider{Name: e.Name(), Path: path}
		if err != nil {
			shown.Problem = problem(err)
		} else {
			shown.Parameters = p.listed
		}
		found = append(found, shown)
	}
	return found, nil
}

// problem is what is wrong with a provider, without what to do.
func problem(err error) string {
	if e, is := errors.AsType[*fault.Error](err); is {
		return e.Message
	}
	return err.Error()
}
