package yaqlcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-project/drover/yaql"
)

func newRepl() *cobra.Command {
	s := &settings{}
	cmd := &cobra.Command{
		Use:   "repl [--data FILE]",
		Short: "Try expressions in a console",
		Long: `Read expressions and print their results until the input ends. Tab completes functions and the keys of
the data; an expression that is not complete goes on in the next line. :help lists the console's commands.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			if s.data == "-" {
				return errors.New("the console reads its lines from standard input; give --data a file")
			}
			c, err := newConsole(s, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			if c.data, err = s.load(nil); err != nil {
				return err
			}
			if in, ok := cmd.InOrStdin().(interface{ Terminal() (*os.File, bool) }); ok {
				if input, ok := in.Terminal(); ok {
					return c.interact(cmd.Context(), input)
				}
			}
			return c.run(cmd.Context(), &scanner{bufio.NewScanner(cmd.InOrStdin())})
		},
	}
	s.register(cmd)
	return cmd
}

// console holds what lasts from one expression to the next.
type console struct {
	settings *settings
	engine   *yaql.Engine
	out      io.Writer
	data     any
	last     any // the latest result, which expressions see as $_
	timing   bool
	// typed: somebody types, for whom bare words are commands, too.
	typed bool
}

func newConsole(s *settings, out io.Writer) (*console, error) {
	engine, err := s.engine()
	return &console{settings: s, engine: engine, out: out}, err
}

// The prompts, for a new expression and for one that goes on.
const (
	firstPrompt = "yaql> "
	nextPrompt  = "  ... "
)

// lineReader gives the lines that were typed. It ends with io.EOF.
type lineReader interface {
	readLine(ctx context.Context, prompt string) (string, error)
}

// scanner reads lines that nobody types: from a pipe or a file. It shows no prompt.
type scanner struct{ *bufio.Scanner }

func (s *scanner) readLine(context.Context, string) (string, error) {
	if s.Scan() {
		return s.Text(), nil
	}
	if err := s.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}

// run reads and answers until the input ends or :quit.
func (c *console) run(ctx context.Context, lines lineReader) error {
	for {
		text, err := c.readExpression(ctx, lines)
		if strings.TrimSpace(text) != "" {
			if quit := c.answer(ctx, strings.TrimSpace(text)); quit {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readExpression reads lines until they make a whole expression, a command or nonsense. An empty line ends an
// expression that is not whole.
func (c *console) readExpression(ctx context.Context, lines lineReader) (string, error) {
	text, prompt := "", firstPrompt
	for {
		line, err := lines.readLine(ctx, prompt)
		if err != nil {
			return text, err
		}
		text += line
		if strings.TrimSpace(line) == "" || strings.HasPrefix(text, ":") || !c.goesOn(text) {
			return text, nil
		}
		text += "\n"
		prompt = nextPrompt
	}
}

// goesOn reports whether text is the beginning of an expression: it ends too early, or inside a string.
func (c *console) goesOn(text string) bool {
	_, err := c.engine.Compile(text)
	fault, ok := errors.AsType[*yaql.Error](err)
	if !ok {
		return false
	}
	if fault.Class == yaql.YaqlLexicalException {
		return fault.Offset >= 0 && fault.Offset < len(text) && strings.ContainsRune("'\"`", rune(text[fault.Offset]))
	}
	return fault.Class == yaql.YaqlGrammarException && (fault.Offset < 0 || fault.Offset >= len(strings.TrimSpace(text)))
}

// answer carries out a command or evaluates an expression. It reports whether the console should end.
func (c *console) answer(ctx context.Context, text string) (quit bool) {
	if command, ok := bareWords[text]; ok && c.typed {
		text = command
	}
	if name, isCommand := strings.CutPrefix(text, ":"); isCommand {
		name, argument, _ := strings.Cut(name, " ")
		command, ok := findCommand(name)
		if !ok {
			c.printf("there is no command :%s; :help lists them\n", name)
			return false
		}
		if command.run == nil {
			return true
		}
		if err := command.run(c, strings.TrimSpace(argument)); err != nil {
			c.printf("%s\n", explain(err))
		}
		return false
	}
	if err := c.evaluate(ctx, text); err != nil {
		c.printf("%s\n", explain(err))
		if c.data == nil && strings.Contains(text, "$.") {
			c.printf("There are no data, so $ is null: :load FILE makes a JSON file the data.\n")
		}
	}
	return false
}

// bareWords are what people type who do not know the commands yet. As expressions
// they are mere texts.
var bareWords = map[string]string{"help": ":help", "?": ":help", "quit": ":quit", "exit": ":quit"}

func (c *console) evaluate(ctx context.Context, text string) error {
	started := time.Now()
	compiled, err := c.engine.Compile(text)
	if err != nil {
		return err
	}
	parsed := time.Now()
	doubt(c.out, compiled)
	result, err := c.value(ctx, compiled)
	if err != nil {
		return err
	}
	finished := time.Now()
	c.last = result
	if err := printJSON(c.out, result); err != nil {
		return err
	}
	if c.timing {
		c.printf("compiled in %s, evaluated in %s\n", parsed.Sub(started), finished.Sub(parsed))
	}
	return nil
}

// value evaluates with the console's data and $_. An interrupt ends the evaluation; a console that somebody types
// at goes on (see interact).
func (c *console) value(ctx context.Context, compiled *yaql.Expression) (any, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	ctx, cancel := c.settings.deadline(ctx)
	defer cancel()
	scope := c.engine.NewContext()
	scope.Set("_", c.last)
	return compiled.EvalIn(ctx, scope, c.data)
}

func (c *console) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format, args...) // what a console cannot print is lost
}

// consoleCommand is a command of the console. The one without a function ends it.
type consoleCommand struct {
	name, argument, doc string
	run                 func(c *console, argument string) error
}

// consoleCommands returns the commands, which refer to one another through :help.
func consoleCommands() []consoleCommand {
	return []consoleCommand{
		{"help", "[FUNC]", "list the commands, or tell about a function, method or operator", (*console).help},
		{"load", "FILE", "make a JSON file the data, which expressions see as $", (*console).load},
		{"data", "", "print the data", (*console).showData},
		{"ast", "EXPR", "print the syntax tree of an expression", (*console).showTree},
		{"time", "", "print how long each evaluation takes, or stop doing so", (*console).toggleTiming},
		{"quit", "", "end the console, as the end of the input does", nil},
	}
}

func findCommand(name string) (consoleCommand, bool) {
	for _, command := range consoleCommands() {
		if command.name == name {
			return command, true
		}
	}
	return consoleCommand{}, false
}

func (c *console) help(name string) error {
	if name != "" {
		return tellFunction(c.out, c.engine, name)
	}
	for _, command := range consoleCommands() {
		c.printf(":%-12s %s\n", strings.TrimSpace(command.name+" "+command.argument), command.doc)
	}
	c.printf("The latest result is $_.\n")
	return nil
}

func (c *console) load(name string) error {
	if name == "" || name == "-" {
		return errors.New("want the name of a file")
	}
	data, err := readDocument(name, nil)
	if err == nil {
		c.data = data
	}
	return err
}

func (c *console) showData(string) error { return printJSON(c.out, c.data) }

func (c *console) showTree(text string) error {
	compiled, err := c.engine.Compile(text)
	if err != nil {
		return err
	}
	tree, err := json.Marshal(compiled.Tree())
	if err == nil {
		c.printf("%s\n", tree)
	}
	return err
}

func (c *console) toggleTiming(string) error {
	c.timing = !c.timing
	c.printf("timing is %s\n", map[bool]string{true: "on", false: "off"}[c.timing])
	return nil
}

// interact runs the console on a terminal, with a history that lasts and completion. It outlives the interrupt of
// an evaluation, which ends the program's own context, and so has one of its own, which ends when the
// program is to end.
func (c *console) interact(ctx context.Context, input *os.File) error {
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	past := loadHistory(historyFile())
	screen := term.NewTerminal(readWriter{input, os.Stdout}, firstPrompt)
	screen.History = past
	screen.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		return c.onTab(screen, line, pos, key)
	}
	c.typed = true
	c.printf("YAQL: type an expression, :help for the commands, :quit to leave.\n")
	err := c.run(ctx, &typist{input: input, screen: screen})
	return errors.Join(err, past.save())
}

type readWriter struct {
	io.Reader
	io.Writer
}

// typist reads lines from a terminal, which is in raw mode only while a line is edited.
type typist struct {
	input  *os.File
	screen *term.Terminal
}

// In that mode the terminal sends no signals, but others may.
func (t *typist) readLine(ctx context.Context, prompt string) (line string, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	before, err := term.MakeRaw(int(t.input.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(int(t.input.Fd()), before)) }()
	if width, height, err := term.GetSize(int(t.input.Fd())); err == nil && width > 0 {
		_ = t.screen.SetSize(width, height) // only a hint where lines wrap
	}
	t.screen.SetPrompt(prompt)
	type typed struct {
		line string
		err  error
	}
	answer := make(chan typed, 1)
	go func() {
		line, err := t.screen.ReadLine()
		answer <- typed{line, err}
	}()
	select {
	case a := <-answer:
		if errors.Is(a.err, term.ErrPasteIndicator) {
			a.err = nil
		}
		return a.line, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// historyFile is where the lines typed are kept, empty if there is no place.
func historyFile() string {
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "drover", "yaql-history")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "drover", "yaql-history")
}
