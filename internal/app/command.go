package app

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/systemd"
)

// defaultStopGrace lets what is nearly done come to its end.
const defaultStopGrace = 5 * time.Second

// DevCommand returns `drover dev`.
func DevCommand() *cobra.Command {
	from := source{defaults: devDefaults()}
	var demo, verbose, agents bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run a whole cluster in this process, for trying and testing",
		Long: `dev runs a whole cluster in one process: an embedded store, nodes with the fake
hypervisor, RAPI and LUXI. What it did is still there at the next start. It is
the same program as drover serve, with other defaults and without a
configuration file.

With --hypervisor kvm a node runs virtual machines (QEMU). Those of a new cluster
start from a tiny Linux, made of Debian's packages without root, unless they are
told otherwise (-H kvm:kernel_path= has one start from its disk), or --demo=false
has all do so.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from.flags = daemon.Given(cmd.Flags())
			s, err := from.read()
			if err != nil {
				return err
			}
			if verbose {
				s.LogLevel = daemon.Level{Level: slog.LevelDebug}
			}
			if agents && s.Peer != "" {
				return fault.New(fault.Invalid, "--agents: the agents of nodes are run by a controller that is alone").At("agents").WithHint("leave --peer out; agents of nodes elsewhere join with a token: drover node token NODE")
			}
			o := s.options()
			if o.Agents = agents; agents && o.AgentAddress == "" {
				o.AgentAddress = "127.0.0.1:0"
			}
			if s.Settings.Kind() == "kvm" {
				if _, given := from.flags["nodes"]; !given {
					o.Nodes = 1 // they would all be this machine
				}
				if err := o.Driver.Present(cmd.Context()); err != nil {
					return err
				}
				if demo {
					if err := o.bootsTiny(cmd.Context(), cmd.ErrOrStderr()); err != nil {
						return err
					}
				}
				defer o.tellRunning(cmd.ErrOrStderr())
			}
			o.Demo, o.Out, o.TellPasswords, o.Recent = demo, cmd.OutOrStdout(), true, daemon.NewRecent(keptLog)
			o.Log = daemon.NewLog(cmd.ErrOrStderr(), s.LogFormat, s.LogLevel.Level, o.Recent)
			return daemon.Last(o.Log, s.LogFormat, Run(cmd.Context(), o))
		},
	}
	shown := from.defaults
	shown.offer(cmd)
	cmd.Flags().BoolVar(&demo, "demo", true, "fill a new cluster with some data to look at")
	cmd.Flags().BoolVar(&agents, "agents", false, "run each node of a new cluster as a process of its own, over the transport that nodes elsewhere have")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log what happens: jobs, filter rules, requests")
	return cmd
}

// defaultConfig is read where it exists, unless another file is named.
const defaultConfig = "/etc/drover/drover.toml"

// ServeCommand returns `drover serve`.
func ServeCommand() *cobra.Command {
	from := source{defaults: serveDefaults()}
	var checkOnly bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run a controller as a service of this machine",
		Long: `serve runs a controller. Its settings are in one TOML file, whose keys are the
names of the flags below; flags count before the file. A key that does not exist
is refused.

On SIGHUP it reads the file again and takes up the log level, and the
certificate and the accounts of RAPI from their files; of other settings that
changed it says that they need a restart. A file with mistakes changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from.flags = daemon.Given(cmd.Flags())
			if _, err := os.Stat(defaultConfig); err == nil && from.file == "" {
				from.file = defaultConfig
			}
			s, err := from.read()
			switch {
			case err != nil && checkOnly:
				return &configurationError{err}
			case err != nil:
				form := daemon.LogFormat(cmp.Or(from.flags["log-format"], string(s.LogFormat)))
				return daemon.Last(daemon.NewLog(cmd.ErrOrStderr(), form, slog.LevelInfo, nil), form, &configurationError{err})
			case checkOnly:
				return checkConfig(cmd, s, from.file)
			}
			return serve(cmd, from, s)
		},
	}
	shown := from.defaults
	shown.offer(cmd)
	cmd.Flags().StringVar(&from.file, "config", "", "configuration file (default: "+defaultConfig+" where it exists)")
	cmd.Flags().BoolVar(&checkOnly, "check-config", false, "check the configuration, show the settings that follow from it, and end")
	return cmd
}

// checkConfig says whether a controller could start with these settings, and shows them.
func checkConfig(cmd *cobra.Command, s settings, file string) error {
	o := s.options()
	if err := o.preflight(); err != nil {
		return &configurationError{err}
	}
	for _, doubt := range o.doubts() {
		cmd.PrintErrln("warning: " + doubt)
	}
	return s.tell(cmd.OutOrStdout(), file)
}

// configurationError is a mistake in the settings. It has an exit status of its own, by which a
// service manager knows that to start again would not help.
type configurationError struct{ error }

// ExitStatus is that of a wrong command line.
func (*configurationError) ExitStatus() int {
	const wrongUsage = 2
	return wrongUsage
}

// Unwrap returns what is wrong.
func (e *configurationError) Unwrap() error { return e.error }

// serve runs a controller with these settings.
func serve(cmd *cobra.Command, from source, s settings) error {
	at := new(slog.LevelVar)
	at.Set(s.LogLevel.Level)
	o := s.options()
	o.Out, o.Recent = cmd.OutOrStdout(), daemon.NewRecent(keptLog)
	o.Log = daemon.NewLog(cmd.ErrOrStderr(), s.LogFormat, at, o.Recent)
	o.TellPasswords = onTerminal(o.Out)
	o.Manager = systemd.FromEnvironment(os.Getenv)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	o.Hangup = hangup
	o.Reread = func() error {
		now, err := from.read()
		if err != nil {
			return err
		}
		at.Set(now.LogLevel.Level)
		later := slices.DeleteFunc(now.differences(s), func(name string) bool { return slices.Contains(reloadable, name) })
		if len(later) > 0 {
			o.Log.Warn("some settings that changed need a restart", "settings", strings.Join(later, " "))
		}
		return nil
	}
	o.Log.Info("the configuration was read", "file", cmp.Or(from.file, "none"), "log_level", s.LogLevel.Level)
	return daemon.Last(o.Log, s.LogFormat, Run(cmd.Context(), o))
}

// tell shows the settings in the form of a configuration file, without the
// passwords in it.
func (s settings) tell(w io.Writer, file string) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "# from %s\n", cmp.Or(file, "defaults and flags alone"))
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.register(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "bool", "int":
			fmt.Fprintf(text, "%s = %s\n", f.Name, f.Value)
		default:
			fmt.Fprintf(text, "%s = %q\n", f.Name, withoutPassword(f.Value.String()))
		}
	})
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fault.New(fault.Environment, "cannot write the settings: %w", err)
	}
	return nil
}

// parameterOfPassword begins what nobody is shown of the parameters of a connection. Where its value ends depends on quotes, so all behind it is left out.
var parameterOfPassword = regexp.MustCompile(`(?i)password\s*=\s*`)

// withoutPassword is a setting with xxxxx in place of the password, if it is a
// URL with one: before the host, or in a parameter as PostgreSQL takes it. Of
// what looks like a URL and is none, the scheme alone is shown, and of the parameters of a connection, as libpq takes them, nothing
// behind the password.
func withoutPassword(text string) string {
	scheme, _, isURL := strings.Cut(text, "://")
	if !isURL {
		if at := parameterOfPassword.FindStringIndex(text); at != nil {
			return text[:at[1]] + "xxxxx"
		}
		return text
	}
	u, err := url.Parse(text)
	if err != nil {
		return scheme + "://xxxxx"
	}
	parameters, changed := u.Query(), false
	for name := range parameters {
		if strings.Contains(strings.ToLower(name), "password") {
			parameters.Set(name, "xxxxx")
			changed = true
		}
	}
	if changed {
		u.RawQuery = parameters.Encode()
	}
	if _, secret := u.User.Password(); secret || changed {
		return u.Redacted()
	}
	return text
}

// onTerminal tells whether what is written there is read by a person, and kept
// by nobody.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
