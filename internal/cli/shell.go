package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// shell is what the commands of one run share.
type shell struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time
	persona  persona
	verb     string // the name of the command that runs
	colour   bool   // standard output is a terminal that wants colours
	person   bool   // a person watches standard error
	width    int    // columns of the terminal that standard output goes to, 0 for none
	line     int    // columns of the line that shows progress
	flags    flags
	client   *luxiwire.Client
	// raw is standard error without the escaping of what a terminal would obey.
	raw io.Writer
	// awaited are jobs that were sent, or are waited for, and go on when the command
	// is interrupted.
	awaited []job.ID
}

func newShell(env Env) *shell {
	sh := &shell{
		raw: env.Stderr, line: usualWidth,
		in: env.Stdin, out: env.Stdout, err: env.Stderr, getenv: env.Getenv, now: env.Now,
		persona: personaOf(env.Args[0]),
		colour:  env.StdoutTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb",
		person:  env.StderrTerminal,
	}
	if env.Columns > 0 {
		sh.line = env.Columns
	}
	if env.StdoutTerminal {
		sh.out, sh.width = listing.Terminal{To: env.Stdout}, sh.line
	}
	if env.StderrTerminal {
		sh.err = listing.Terminal{To: env.Stderr}
	}
	return sh
}

// usualWidth is the width of a terminal that does not tell.
const usualWidth = 80

// flags are the options that all commands take.
type flags struct {
	luxi, output, reason, priority string
	submit, dryRun, yes, stale     bool
	// Of the classic tools only.
	printJobID bool
	debug      int
}

func (f *flags) register(set *pflag.FlagSet) {
	set.StringVar(&f.luxi, "luxi", "", "the controller's socket (default: $DROVER_LUXI, else that of the local controller)")
	set.StringVar(&f.output, "output", "table", "how to show results: table, json, yaml, or csv for lists")
	set.StringVar(&f.reason, "reason", "", "why; it travels with the job and is remembered")
	set.StringVar(&f.priority, "priority", "", "urgency of jobs: low, normal or high")
	set.BoolVar(&f.submit, "submit", false, "print the job's id and do not wait for its end")
	set.BoolVar(&f.dryRun, "dry-run", false, "check everything and change nothing")
	set.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	set.BoolVar(&f.stale, "stale", false, "take the answer of a controller that stands by, which may not be the newest")
}

func (f *flags) check() error {
	if !slices.Contains(formats, f.output) {
		return usage("--output must be table, json, yaml or csv, got %q", f.output)
	}
	return nil
}

// priorities are the names of the three priorities that a job may be given.
var priorities = map[string]int{"low": 10, "normal": 0, "high": -10}

// priorityOf reads the name of a priority, or the number itself.
func priorityOf(text string) (int, error) {
	if n, ok := priorities[text]; ok {
		return n, nil
	}
	for _, n := range priorities {
		if strconv.Itoa(n) == text {
			return n, nil
		}
	}
	return 0, usage("--priority must be low, normal or high, got %q", text)
}

// connect returns the client, and dials when it is first needed.
func (sh *shell) connect(ctx context.Context) (*luxiwire.Client, error) {
	if sh.client != nil {
		return sh.client, nil
	}
	path, err := sh.socket()
	if err != nil {
		return nil, err
	}
	if sh.client, err = luxiwire.Dial(ctx, path); err != nil {
		return nil, &exitError{status: ExitUnreachable, err: err}
	}
	sh.client.Stale = sh.flags.stale
	return sh.client, nil
}

func (sh *shell) close() error {
	if sh.client == nil {
		return nil
	}
	if revision := sh.client.Revision(); sh.flags.stale && revision > 0 {
		sh.notef("not older than revision %d\n", revision)
	}
	return sh.client.Close()
}

// socket finds the controller: by the option, by the environment (the socket,
// or the file that a running controller wrote when it was ready), or at the usual places.
func (sh *shell) socket() (string, error) {
	if sh.flags.luxi != "" {
		return sh.flags.luxi, nil
	}
	if path := sh.getenv("DROVER_LUXI"); path != "" {
		return path, nil
	}
	if file := sh.getenv("DROVER_READY_FILE"); file != "" {
		// Whoever names a controller means that one: another would do what was meant for it.
		if path := luxiAt(file); path != "" {
			return path, nil
		}
		return "", fault.New(fault.Unavailable, "DROVER_READY_FILE names %s, which does not lead to a controller", file).At("DROVER_READY_FILE").
			WithHint("the file is there while its controller runs; unset the variable to use the controller of this machine")
	}
	places := sh.places()
	for _, place := range places {
		if path := luxiAt(place); path != "" {
			return path, nil
		}
	}
	return "", fault.New(fault.Unavailable, "no controller was found; looked at %s", strings.Join(places, ", ")).
		WithHint("give --luxi PATH or set DROVER_LUXI, or start a cluster with: drover dev")
}

// places are the files that may lead to a controller: a ready file, which names
// the socket, and a socket.
func (sh *shell) places() []string {
	return []string{filepath.Join(DevDataDir(sh.getenv), "ready.json"), "/run/drover/luxi.sock"}
}

// DevDataDir is where `drover dev` keeps its cluster when it is not told
// otherwise, and where commands look for it.
func DevDataDir(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "drover", "dev")
	}
	return filepath.Join(getenv("HOME"), ".local", "state", "drover", "dev")
}

// luxiAt returns the socket that a place leads to, or nothing.
func luxiAt(place string) string {
	info, err := os.Stat(place)
	if err != nil {
		return ""
	}
	if info.Mode().Type() == os.ModeSocket {
		return place
	}
	text, err := os.ReadFile(place)
	var ready struct {
		Luxi string `json:"luxi"`
	}
	if err != nil || json.Unmarshal(text, &ready) != nil {
		return ""
	}
	return ready.Luxi
}

// tries is how often a request that may be repeated is sent before a lost
// controller is given up. Whoever waits for what goes on there waits for about a
// minute until the controller is back.
const (
	tries        = 4
	patientTries = 18
)

// ask sends a request that only asks, or that may be carried out twice.
func (sh *shell) ask(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Resend(ctx, tries, method, args, result)
}

// stay is ask for a request that waits for news: it outlives a restart of the
// controller.
func (sh *shell) stay(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Resend(ctx, patientTries, method, args, result)
}

// do sends a request that is never repeated.
func (sh *shell) do(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Call(ctx, method, args, result)
}

// confirm asks a question on the terminal. Without --yes, and without a person
// to ask, the answer is no.
func (sh *shell) confirm(question string) error {
	if sh.flags.yes {
		return nil
	}
	if !sh.person {
		return notConfirmed("not confirmed: %s Give --yes to go on.", question)
	}
	sh.notef("%s [y/N] ", question)
	line, err := bufio.NewReader(sh.in).ReadString('\n')
	switch {
	case err == nil || line != "":
	case errors.Is(err, io.EOF):
		return notConfirmed("not confirmed")
	default:
		sh.notef("\n") // the question stands there without an answer
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	default:
		return notConfirmed("not confirmed")
	}
}

// notef writes to standard error.
func (sh *shell) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(sh.err, format, args...) // nowhere else to say it
}

// rawf writes to standard error what a terminal is to obey.
func (sh *shell) rawf(format string, args ...any) {
	_, _ = fmt.Fprintf(sh.raw, format, args...) // nowhere else to say it
}

// printf writes data to standard output.
func (sh *shell) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(sh.out, format, args...)
	return err
}
