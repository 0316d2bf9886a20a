package debug

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
)

const bundleHelp = `Put into FILE (a .tar.gz) what is needed to find out what went wrong: of each
controller its version, settings, health, figures, the newest of its log,
goroutines and profiles. It holds no password and no key; names of nodes,
instances and accounts are in it. A controller that does not answer is named.

Exit statuses: 0 all controllers answered; 6 some did not.`

// bundleCommand returns the command "debug bundle".
func bundleCommand(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Asking, &cobra.Command{
		Use: "bundle FILE", Short: "Gather what is needed to find out what went wrong", Long: bundleHelp, Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			began := time.Now()
			if _, err := os.Lstat(args[0]); err == nil {
				return fault.New(fault.Exists, "%s is there already", args[0]).WithHint("name another file")
			}
			size, silent, err := writeBundle(cmd.Context(), sh, args[0])
			if err != nil {
				return err
			}
			shown := map[string]any{"file": args[0], "bytes": size, "silent": silent}
			err = sh.Show(shown, func() error {
				return sh.Printf("%s: %d kB, gathered in %.1f s\n", args[0], (size+1023)>>10, time.Since(began).Seconds())
			})
			for _, who := range silent {
				sh.Notef("no answer from %s\n", who)
			}
			if err == nil && len(silent) > 0 {
				return &shell.ExitError{Status: shell.ExitNotWell}
			}
			return err
		},
	})
}

// writeBundle asks for a bundle, and writes it into a new file, for its owner alone. What is not whole is removed.
func writeBundle(ctx context.Context, sh *shell.Shell, name string) (size int64, silent []string, err error) {
	var b health.Bundle
	if err := sh.Ask(ctx, "MakeBundle", &b); err != nil {
		return 0, nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, nil, fault.New(fault.Environment, "cannot make the file: %w", err)
	}
	err = errors.Join(packed(f, strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ".tar"), &b), f.Sync())
	info, wrong := f.Stat()
	if err = errors.Join(err, wrong, f.Close()); err != nil {
		return 0, nil, errors.Join(fault.New(fault.Environment, "cannot write the file: %w", err), os.Remove(name))
	}
	return info.Size(), b.Silent, nil
}

// packed writes a bundle as a compressed archive, whose files are in one directory.
func packed(w io.Writer, dir string, b *health.Bundle) error {
	small := gzip.NewWriter(w)
	out := tar.NewWriter(small)
	now := time.Now()
	for _, f := range b.Files {
		err := out.WriteHeader(&tar.Header{Name: path.Join(dir, f.Name), Mode: 0o600, Size: int64(len(f.Data)), ModTime: now})
		if err == nil {
			_, err = out.Write(f.Data)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), small.Close())
}
