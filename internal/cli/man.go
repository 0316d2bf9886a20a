package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/manual"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/version"
)

// The sections of the manual.
const (
	usersCommands  = 1
	administrators = 8
)

// manCommand writes the manual of this program, under all its names.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages of all commands, those of the gnt-* names too",
		Long: `Write the manual pages of all commands below a directory, as man looks for them:
  drover man ~/.local/share/man
  man drover-job
  man gnt-job`,
		Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, p := range pages(cmd.Root()) {
				if err := keepPage(args[0], p); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pages are those of a program: itself, each of its commands, and the names of classic tools.
func pages(root *cobra.Command) []manual.Page {
	number := version.Current().Version
	all := []manual.Page{{Name: "drover", Section: usersCommands, Version: number, Command: root}}
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		name := "drover-" + c.Name()
		all = append(all, manual.Page{Name: name, Section: usersCommands, Version: number, Command: c, Further: []string{"drover(1)"}})
		all[0].Further = append(all[0].Further, name+"(1)")
	}
	for _, noun := range shell.ClassicNouns {
		name := "gnt-" + noun
		classic := newRoot(shell.New(Env{Args: []string{name}, Getenv: func(string) string { return "" }}), nil, nil)
		all = append(all, manual.Page{Name: name, Section: administrators, Version: number, Command: commandAt(classic, noun), Called: name,
			Further: []string{"drover-" + noun + "(1)"}})
	}
	return all
}

func keepPage(dir string, p manual.Page) error {
	dir = filepath.Join(dir, fmt.Sprintf("man%d", p.Section))
	err := os.MkdirAll(dir, 0o755) //nolint:gosec // manuals are for everybody
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s.%d", p.Name, p.Section)), []byte(p.Text()), 0o644)
	}
	if err != nil {
		return fault.New(fault.Environment, "the manual cannot be written: %w", err)
	}
	return nil
}
