package deployments

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/textdiff"
)

// formatting is how files are formatted.
type formatting struct {
	check, diff bool
	changes     bool // a file is not as it would be
}

func newFormat() *cobra.Command {
	f := &formatting{}
	cmd := &cobra.Command{
		Use:   "fmt PATH...",
		Short: "Lay files of task graphs out as all are",
		Long: "Lay files of task graphs out as all are: two spaces a level, an empty line between tasks, the fields of each in one order\n" +
			"(what it is, where and when it runs, what it waits for, what it does). Comments stay, and what the graph means. Files are\n" +
			"written in their place, and those that changed are named; of - (standard input) what comes of it is written to standard output.\n" +
			"A directory is all tasks.yaml and deployment_tasks.yaml below it. A file of which something could not be kept is refused, and\n" +
			"stays as it is. In files with aliases the fields keep their order.",
		Example: "  drover deploy graph fmt tasks.yaml\n  drover deploy graph fmt --check --diff graphs/",
		Args:    shell.AtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var files []string
			for _, path := range args {
				found, err := filesOfGraph(path)
				if err != nil {
					return err
				}
				files = append(files, found...)
			}
			failed := false
			for _, path := range files { // one that is wrong keeps none of the others from being formatted
				if err := f.file(cmd, path); err != nil {
					failed = true
					warnError(cmd.ErrOrStderr(), err)
				}
			}
			if failed || f.check && f.changes {
				return shell.ErrFailed
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing, name the files that would change, and end with status 1 if there are any")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "write nothing, and show what would change")
	return cmd
}

// warnError tells of an error with which the command goes on.
func warnError(w io.Writer, err error) {
	_, _ = fmt.Fprintf(w, "error: %v\n", err) // nobody reads it
}

// file formats a file.
func (f *formatting) file(cmd *cobra.Command, path string) error {
	text, err := read(path, cmd.InOrStdin())
	if err != nil {
		return err
	}
	out, err := graph.Format(path, text)
	if err != nil {
		return err
	}
	same := string(out) == string(text)
	f.changes = f.changes || !same
	stdout := cmd.OutOrStdout()
	switch {
	case path == "-" && !f.check && !f.diff:
		_, err = stdout.Write(out)
	case same:
	case f.diff:
		_, err = io.WriteString(stdout, textdiff.Unified(path, path+" (formatted)", string(text), string(out)))
	default:
		if !f.check {
			err = replace(path, out)
		}
		if err == nil {
			_, err = fmt.Fprintln(stdout, path)
		}
	}
	return err
}

// replace puts a text in the place of what a file holds, as a whole; the file stays whose it was, and who may read it.
func replace(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	w, err := os.CreateTemp(filepath.Dir(path), ".fmt-*")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if is, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = errors.Join(err, w.Chown(int(is.Uid), int(is.Gid)))
	}
	err = errors.Join(err, w.Chmod(info.Mode()&(fs.ModePerm|fs.ModeSetgid)), w.Sync(), w.Close())
	if err == nil {
		err = os.Rename(w.Name(), path)
	}
	if err != nil {
		_ = os.Remove(w.Name()) // the first error counts
	}
	return err
}
