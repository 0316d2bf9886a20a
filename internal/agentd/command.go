package agentd

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/systemd"
)

// settings are what an operator can say to an agent, in its configuration file and in flags of the same names.
type settings struct {
	Data string `toml:"data"`
	// Controllers are separated by commas.
	Controllers string           `toml:"controllers"`
	Tasks       bool             `toml:"tasks"`
	Metrics     string           `toml:"metrics"`
	LogLevel    daemon.Level     `toml:"log-level"`
	LogFormat   daemon.LogFormat `toml:"log-format"`

	nodedriver.Settings
}

func defaults() settings {
	return settings{Data: "/var/lib/drover-agent", LogLevel: daemon.Level(slog.LevelInfo), LogFormat: "text", Settings: nodedriver.Defaults()}
}

// register makes a flag of each setting; what the settings are is the default.
func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.Data, "data", s.Data, "directory of everything that lasts: who the agent is, and what the node has")
	f.StringVar(&s.Controllers, "controllers", s.Controllers, "addresses of controllers, HOST:PORT, separated by commas (default: what the leader told last)")
	f.BoolVar(&s.Tasks, "tasks", s.Tasks, "let deployments run tasks on the node: commands with the agent's rights")
	f.StringVar(&s.Metrics, "metrics", s.Metrics, "address of /metrics and /healthz, which tell names of instances to whoever asks; best one of loopback (default: none)")
	s.Settings.Register(f)
	f.Var(&s.LogLevel, "log-level", "what is logged: debug, info, warn or error")
	f.Var(&s.LogFormat, "log-format", "how it is logged: text or json")
}

// defaultConfig is read where it exists, unless another file is named.
const defaultConfig = "/etc/drover/agent.toml"

// configured are the settings of a command: the defaults, a file, and flags, which count before the file.
func configured(cmd *cobra.Command, file string) (settings, error) {
	s := defaults()
	if file == "" {
		if _, err := os.Stat(defaultConfig); err == nil {
			file = defaultConfig
		}
	}
	if file != "" {
		if err := daemon.Decode(file, &s, "drover agent --help lists them"); err != nil {
			return s, &configurationError{err}
		}
	}
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	s.register(flags)
	for name, value := range daemon.Given(cmd.Flags()) {
		if flags.Lookup(name) == nil {
			continue // it is no setting
		}
		if err := flags.Set(name, value); err != nil {
			return s, &configurationError{fault.New(fault.Invalid, "%s: %w", name, err).At(name)}
		}
	}
	if s.Data == "" {
		return s, &configurationError{fault.New(fault.Invalid, "data: there is no directory for what lasts").At("data")}
	}
	if err := new(daemon.LogFormat).Set(string(s.LogFormat)); err != nil { // the decoder of the file does not ask it
		return s, &configurationError{fault.New(fault.Invalid, "log-format: %w", err).At("log-format")}
	}
	for _, address := range s.controllers() {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return s, &configurationError{fault.New(fault.Invalid, "controllers: %q is no address of a controller", address).At("controllers").WithHint("write it as HOST:PORT, several separated by commas")}
		}
	}
	if s.Metrics != "" {
		if _, _, err := net.SplitHostPort(s.Metrics); err != nil {
			return s, &configurationError{fault.New(fault.Invalid, "metrics: %q is no address to listen at", s.Metrics).At("metrics").WithHint("write it as 127.0.0.1:9120")}
		}
	}
	if err := s.Settings.Check(); err != nil {
		return s, &configurationError{err}
	}
	var err error
	if s.Data, err = filepath.Abs(s.Data); err != nil {
		return s, fault.New(fault.Environment, "cannot tell where the directory %s is: %w", s.Data, err)
	}
	return s, nil
}

// controllers are the addresses that were given.
func (s *settings) controllers() (all []string) {
	for address := range strings.SplitSeq(s.Controllers, ",") {
		if address = strings.TrimSpace(address); address != "" {
			all = append(all, address)
		}
	}
	return all
}

// configurationError is a mistake in the settings. It has an exit status of its own, by which a service manager knows that to start again would not help.
type configurationError struct{ error }

// ExitStatus is that of a wrong command line.
func (*configurationError) ExitStatus() int {
	const wrongUsage = 2
	return wrongUsage
}

// Unwrap returns what is wrong.
func (e *configurationError) Unwrap() error { return e.error }

func (s *settings) options(errors io.Writer) Options {
	return Options{
		Driver: s.Settings, Data: s.Data, Controllers: s.controllers(), Tasks: s.Tasks, Metrics: s.Metrics, Manager: systemd.FromEnvironment(os.Getenv), Log: daemon.NewLog(errors, s.LogFormat, slog.Level(s.LogLevel)),
	}
}

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
			return Run(cmd.Context(), s.options(cmd.ErrOrStderr()))
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
			return Run(cmd.Context(), o)
		},
	}
	offer(cmd, &file)
	cmd.Flags().BoolVar(&only, "no-run", false, "join, and end: the agent is started otherwise, as by systemd")
	return cmd
}
