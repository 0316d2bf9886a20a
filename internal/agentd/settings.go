package agentd

import (
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
	return settings{Data: "/var/lib/drover-agent", LogLevel: daemon.Level{Level: slog.LevelInfo}, LogFormat: "text", Settings: nodedriver.Defaults()}
}

// register makes a flag of each setting; what the settings are is the default.
func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.Data, "data", s.Data, "directory of everything that lasts: who the agent is, and what the node has")
	f.StringVar(&s.Controllers, "controllers", s.Controllers, "addresses of controllers, HOST:PORT, separated by commas (default: what the leader told last)")
	f.BoolVar(&s.Tasks, "tasks", s.Tasks, "let deployments run tasks on the node: commands with the agent's rights")
	f.StringVar(&s.Metrics, "metrics", s.Metrics, "address of /metrics and /healthz, which tell names of instances to whoever asks; best one of loopback (default: none)")
	s.Settings.Register(f)
	f.Var(&s.LogLevel, "log-level", "what is logged: debug, info, warn or error")
	f.Var(&s.LogFormat, "log-format", "how it is logged: "+strings.Join(daemon.LogFormats, " or "))
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
		Driver: s.Settings, Data: s.Data, Controllers: s.controllers(), Tasks: s.Tasks, Metrics: s.Metrics, Manager: systemd.FromEnvironment(os.Getenv), Log: daemon.NewLog(errors, s.LogFormat, s.LogLevel.Level, nil),
	}
}
