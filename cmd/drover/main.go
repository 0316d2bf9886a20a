// Command drover is the whole of Drover in one binary: the controller with its
// nodes, and the command line, which also answers to the names gnt-job,
// gnt-instance and so on.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-project/drover/internal/agentd"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/bench"
	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/yaqlcmd"
)

func main() { os.Exit(run()) }

// run carries out the command line and returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks the command to end in an orderly way. The next ends the process, as
	// it would end one that does not listen to signals.
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, cli.Env{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now,
		StdoutTerminal: isTerminal(os.Stdout),
		StderrTerminal: isTerminal(os.Stderr) && isTerminal(os.Stdin),
		Columns:        columns(),
		Extra:          extraCommands(),
	})
}

// extraCommands are those that do more than talk to a controller.
func extraCommands() []*cobra.Command {
	return []*cobra.Command{app.DevCommand(), app.ServeCommand(), app.StoreCommand(), app.BackupCommand(), app.ImageCommand(), agentd.Command(), bench.Command(), yaqlcmd.New()}
}

// columns is the width of the terminal that a person looks at, 0 for none.
func columns() int {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
