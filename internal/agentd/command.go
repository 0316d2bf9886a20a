package agentd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/nodedriver"
)

// Command returns `drover agent`.
func Command() *cobra.Command {
	var file string
	var checkOnly bool
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "run the agent of a node that is elsewhere",
		Long: `agent runs the node daemon of a machine that is a node: it connects to the
controllers and carries out what the one that leads decides. It joins a cluster
once, with a token:

  drover node token NODE        at a controller: prints the token
  drover agent join TOKEN       at the node: joins, and runs from then on
  drover agent                  at the node, from the next start on

Its settings are in one TOML file, whose keys are the names of the flags below;
flags count before the file. What it was told to do goes on while no controller
is there, and instances outlive it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := configured(cmd, file)
			if err != nil {
				return err
			}
			if checkOnly {
				id, err := readIdentity(s.Data)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is the agent of node %s\n", s.Data, id.Node)
				return err
			}
			o := s.options(cmd.ErrOrStderr())
			return daemon.Last(o.Log, s.LogFormat, Run(cmd.Context(), o))
		},
	}
	offer(cmd, &file)
	cmd.Flags().BoolVar(&checkOnly, "check-config", false, "check the configuration, say of which node it is, and end")
	cmd.AddCommand(joinCommand())
	return cmd
}

// offer registers the options that both commands have.
func offer(cmd *cobra.Command, file *string) {
	shown := defaults()
	shown.register(cmd.Flags())
	for name, values := range nodedriver.Values() {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	}
	cmd.Flags().StringVar(file, "config", "", "configuration file (default: "+defaultConfig+" where it exists)")
}

func joinCommand() *cobra.Command {
	var file string
	var only bool
	cmd := &cobra.Command{
		Use:   "join TOKEN",
		Short: "join a cluster as the node that a token is for, and run from then on",
		Long: `join has this machine become the node that a token is for, and runs its agent
from then on. The token counts once; interrupted, the same command goes on. "-"
reads the token from standard input, so that it is in no list of processes.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := configured(cmd, file)
			if err != nil {
				return err
			}
			text := args[0]
			if text == "-" {
				const most = 64 << 10
				read, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), most))
				if err != nil {
					return fault.New(fault.Environment, "cannot read the token: %w", err)
				}
				text = string(read)
			}
			t, err := joining.ParseToken(text)
			if err != nil {
				return err
			}
			o := s.options(cmd.ErrOrStderr())
			if err := Join(cmd.Context(), o, t); err != nil {
				return err
			}
			if only {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is the agent of node %s; next: drover agent --data %s\n", s.Data, t.Node, s.Data)
				return err
			}
			return daemon.Last(o.Log, s.LogFormat, Run(cmd.Context(), o))
		},
	}
	offer(cmd, &file)
	cmd.Flags().BoolVar(&only, "no-run", false, "join, and end: the agent is started otherwise, as by systemd")
	return cmd
}
