// Package shell is the frame of the command line: what the commands of one run share. It finds the controller and speaks
// to it, asks a person, shows results in the form that --output names, words errors and settles the exit status, and knows
// which of the shared options a command heeds.
//
// Invariants:
//   - It knows no noun.
//   - Standard output carries data alone; progress, questions and errors go to standard error.
package shell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// Shell is what the commands of one run share.
type Shell struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Now      func() time.Time
	Persona  Persona
	Verb     string // the name of the command that runs
	Colour   bool   // standard output is a terminal that wants colours
	Person   bool   // a person watches standard error
	Width    int    // columns of the terminal that standard output goes to, 0 for none
	Line     int    // columns of the line that shows progress
	Flags    Flags
	Verbs    []Verb // what is known of each verb
	// Wrong is what was wrong with a question for help, which ends otherwise well.
	Wrong  error
	args   []string // the command line behind the name of the program
	client *luxiwire.Client
	// raw and rawOut are standard error and standard output without the escaping of
	// what a terminal would obey.
	raw, rawOut io.Writer
	// Awaited are jobs that were sent, or are waited for, and go on when the command
	// is interrupted.
	Awaited []job.ID
}

// New returns the shell of one run.
func New(env Env) *Shell {
	sh := &Shell{
		raw: env.Stderr, rawOut: env.Stdout, Line: UsualWidth,
		In: env.Stdin, Out: env.Stdout, Err: env.Stderr, Getenv: env.Getenv, Now: env.Now,
		Persona: PersonaOf(env.Args[0]), args: env.Args[1:],
		Colour: env.StdoutTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb",
		Person: env.StderrTerminal,
	}
	if env.Columns > 0 {
		sh.Line = env.Columns
	}
	if env.StdoutTerminal {
		sh.Out, sh.Width = listing.Terminal{To: env.Stdout}, sh.Line
	}
	if env.StderrTerminal {
		sh.Err = listing.Terminal{To: env.Stderr}
	}
	return sh
}

// Classic reports whether the caller expects the words of the tools that the
// name of the program comes from.
func (sh *Shell) Classic() bool { return sh.Persona.classic() }

// UsualWidth is the width of a terminal that does not tell.
const UsualWidth = 80

// connect returns the client, and dials when it is first needed.
func (sh *Shell) connect(ctx context.Context) (*luxiwire.Client, error) {
	if sh.client != nil {
		return sh.client, nil
	}
	path, err := sh.Socket()
	if err != nil {
		return nil, err
	}
	if sh.client, err = luxiwire.Dial(ctx, path); err != nil {
		return nil, &ExitError{Status: ExitUnreachable, Err: err}
	}
	sh.client.Stale = sh.Flags.Stale
	return sh.client, nil
}

// Another returns a client of its own, for requests beside one that waits. It is the caller's to close.
func (sh *Shell) Another(ctx context.Context) (*luxiwire.Client, error) {
	path, err := sh.Socket()
	if err != nil {
		return nil, err
	}
	client, err := luxiwire.Dial(ctx, path)
	if err != nil {
		return nil, &ExitError{Status: ExitUnreachable, Err: err}
	}
	return client, nil
}

// Close ends the connection, and tells of stale answers how old they may be.
func (sh *Shell) Close() error {
	if sh.client == nil {
		return nil
	}
	if revision := sh.client.Revision(); sh.Flags.Stale && revision > 0 {
		sh.Notef("not older than revision %d\n", revision)
	}
	return sh.client.Close()
}

// Socket finds the controller: by the option, by the environment (the socket,
// or the file that a running controller wrote when it was ready), or at the usual places.
func (sh *Shell) Socket() (string, error) {
	if sh.Flags.luxi != "" {
		return sh.Flags.luxi, nil
	}
	if path := sh.Getenv("DROVER_LUXI"); path != "" {
		return path, nil
	}
	if file := sh.Getenv("DROVER_READY_FILE"); file != "" {
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
func (sh *Shell) places() []string {
	return []string{filepath.Join(DevDataDir(sh.Getenv), "ready.json"), "/run/drover/luxi.sock"}
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

// Ask sends a request that only asks, or that may be carried out twice.
func (sh *Shell) Ask(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Resend(ctx, tries, method, args, result)
}

// Stay is ask for a request that waits for news: it outlives a restart of the
// controller.
func (sh *Shell) Stay(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Resend(ctx, patientTries, method, args, result)
}

// Do sends a request that is never repeated.
func (sh *Shell) Do(ctx context.Context, method string, result any, args ...any) error {
	client, err := sh.connect(ctx)
	if err != nil {
		return err
	}
	return client.Call(ctx, method, args, result)
}

// Confirm asks a question on the terminal. Without --yes, and without a person
// to ask, the answer is no.
func (sh *Shell) Confirm(question string) error {
	if sh.Flags.Yes {
		return nil
	}
	if !sh.Person {
		return notConfirmed("not confirmed: %s Give --yes to go on.", question)
	}
	sh.Notef("%s [y/N] ", question)
	line, err := bufio.NewReader(sh.In).ReadString('\n')
	switch {
	case err == nil || line != "":
	case errors.Is(err, io.EOF):
		return notConfirmed("not confirmed")
	default:
		sh.Notef("\n") // the question stands there without an answer
		return err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	default:
		return notConfirmed("not confirmed")
	}
}

// Notef writes to standard error.
func (sh *Shell) Notef(format string, args ...any) {
	_, _ = fmt.Fprintf(sh.Err, format, args...) // nowhere else to say it
}

// Rawf writes to standard error what a terminal is to obey.
func (sh *Shell) Rawf(format string, args ...any) {
	_, _ = fmt.Fprintf(sh.raw, format, args...) // nowhere else to say it
}

// Printf writes data to standard output.
func (sh *Shell) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(sh.Out, format, args...)
	return err
}

// Env is what a command touches outside itself.
type Env struct {
	// Args is the command line; Args[0] is the name of the program, which
	// decides the persona.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// StdoutTerminal and StderrTerminal say whether a person is watching:
	// colours go to the one, progress to the other.
	StdoutTerminal, StderrTerminal bool
	// Columns is the width of the terminal; 0 where that is not known.
	Columns int
	Now     func() time.Time
	// Extra are commands that other packages bring along.
	Extra []*cobra.Command
}
