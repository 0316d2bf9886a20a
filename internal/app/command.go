package app

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// defaultStopGrace lets what is nearly done come to its end.
const defaultStopGrace = 5 * time.Second

// Command returns `drover dev`.
func Command() *cobra.Command {
	o := Options{}
	var verbose bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run a whole cluster in this process, for trying and testing",
		Long: `dev runs a whole cluster in one process: an embedded store, nodes with the fake
hypervisor, RAPI and LUXI. What it did is still there at the next start.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Out, o.Log = cmd.OutOrStdout(), logger(cmd.ErrOrStderr(), verbose)
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", DefaultData(), "directory of everything that lasts")
	f.StringVar(&o.RAPI, "rapi", "127.0.0.1:5080", "address of RAPI; port 0 picks a free one")
	f.BoolVar(&o.RequireAuthentication, "require-authentication", false, "let nobody read over RAPI without an account")
	f.StringVar(&o.LUXI, "luxi", "", "path of the LUXI socket (default: luxi.sock in the data directory)")
	f.StringVar(&o.Store, "store", "", "URL of a PostgreSQL database to keep the state in (default: in the data directory)")
	f.StringVar(&o.Mond, "mond", "127.0.0.1:0", "address of the nodes' monitoring agents; port 0 picks a free one for each, \"\" has none")
	f.IntVar(&o.Nodes, "nodes", 3, "how many nodes a new cluster gets")
	f.BoolVar(&o.Demo, "demo", true, "fill a new cluster with some data to look at")
	f.StringVar(&o.ReadyFile, "ready-file", "", "file to write, as JSON, when everything listens")
	f.DurationVar(&o.StopGrace, "stop-grace", defaultStopGrace, "how long running opcodes may go on after the first signal; a second one ends all at once")
	f.DurationVar(&o.ArchiveAfter, "archive-after", DefaultArchiveAfter, "how long ended jobs stay before they move to the archive")
	f.BoolVarP(&verbose, "verbose", "v", false, "log what happens: jobs, filter rules, requests")
	return cmd
}

// DefaultData is where `drover dev` keeps its state unless it is told
// otherwise: in the user's own state directory.
func DefaultData() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "drover", "dev")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "drover-dev"
	}
	return filepath.Join(home, ".local", "state", "drover", "dev")
}

func logger(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
