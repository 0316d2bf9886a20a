package inventory

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// printed is what an instance printed, as the controller tells it.
type printed struct {
	Text []byte `json:"text"`
	From uint64 `json:"from"`
	Next uint64 `json:"next"`
}

// lookFor is how many seconds one request waits for what an instance prints.
const lookFor = 20

// instanceLog is the verb that shows what an instance printed.
func instanceLog(sh *shell.Shell) *cobra.Command {
	var follow bool
	cmd := shell.Heeding(shell.Asking, &cobra.Command{
		Use: "log INSTANCE", Short: "Show what an instance printed on its serial line",
		Long: `log shows what an instance printed on its serial line last: up to 64 KiB, also when it
does not run any more. They are kept by the node's agent, and are gone when that is
started again. --follow goes on with what comes.`,
		Args: shell.Exactly(1), ValidArgsFunction: lists.CompleteNames(sh, "instance", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow && sh.Structured() {
				return shell.Usage("--follow goes on for ever, which is no data: leave --output out")
			}
			at, wait := uint64(0), 0
			for {
				var p printed
				if err := sh.Stay(cmd.Context(), "ReadConsole", &p, args[0], at, wait); err != nil {
					return err
				}
				if p.From > at && at > 0 {
					sh.Notef("[%d bytes are not kept any more]\n", p.From-at)
				}
				text := func() error { return sh.Printf("%s", p.Text) }
				if err := sh.Show(map[string]any{"instance": args[0], "text": string(p.Text)}, text); err != nil || !follow {
					return err
				}
				at, wait = p.Next, lookFor
			}
		},
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what the instance prints, until interrupted")
	return cmd
}

// instanceConsole is the verb by which somebody sits down before an instance.
func instanceConsole(sh *shell.Shell) *cobra.Command {
	var show bool
	cmd := shell.Heeding(shell.Asking, &cobra.Command{
		Use: "console INSTANCE", Short: "Sit down before an instance, at its serial line",
		Long: `console shows what an instance prints on its serial line, from the last 64 KiB on, and
sends it what is typed. Ctrl-] leaves. Several people may look at one instance, and one
of them types: whoever pressed a key first, until he leaves. The others are told who that
is, and take over from him with Ctrl-T. The guest has to offer a login there: most images
do on ttyS0. --show asks how clients are told to reach the console, and changes nothing.`,
		Args: shell.Exactly(1), ValidArgsFunction: lists.CompleteNames(sh, "instance", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if show {
				return showConsole(cmd.Context(), sh, args[0])
			}
			in, out, ok := sh.Screen()
			if !ok || sh.Structured() {
				return fault.New(fault.Invalid, "a console needs a terminal").WithHint("what instance %s printed: drover instance log %s", args[0], args[0])
			}
			return sit(cmd.Context(), sh, args[0], in, out)
		},
	})
	cmd.Flags().BoolVar(&show, "show", false, "say how the console is reached, as clients are told")
	return cmd
}

// showConsole shows what clients are told about the console of an instance.
func showConsole(ctx context.Context, sh *shell.Shell, instance string) error {
	op, err := work.NewOp(sh, "instance", "OP_INSTANCE_CONSOLE", map[string]any{"instance_name": instance})
	if err != nil {
		return err
	}
	answers, err := work.Answers(ctx, sh, []*opcode.Opcode{op})
	if err != nil {
		return err
	}
	if answers[0].Refused != nil {
		return answers[0].Refused
	}
	var told struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(answers[0].Result, &told); err != nil {
		return err
	}
	return sh.Show(answers[0].Result, func() error { return sh.Printf("%s\n", told.Message) })
}

// errLeft says that somebody has left a console.
var errLeft = errors.New("left")

// sit has a terminal be that of an instance until its person leaves.
func sit(ctx context.Context, sh *shell.Shell, instance string, in, out *os.File) error {
	s := &seat{id: rand.Text()}
	p, err := s.read(ctx, sh.Ask, instance, 0, 0) // before the screen changes
	if err != nil {
		return err
	}
	sh.Notef("The console of %s; Ctrl-] leaves.\n", instance)
	if p.Turn.taken() {
		sh.Notef("%s\n", s.told(p.Turn))
	}
	s.sees(p.Turn)
	was, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fault.New(fault.Environment, "the terminal cannot be had key by key: %w", err)
	}
	defer func() {
		_ = term.Restore(int(in.Fd()), was)
		sh.Notef("\n")
	}()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(s.sendKeys(ctx, sh, instance, in)) }()
	for {
		if _, err := out.Write(p.Text); err != nil {
			return err
		}
		if p, err = s.read(ctx, sh.Stay, instance, p.Next, lookFor); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			if errors.Is(err, errLeft) {
				return nil
			}
			return err
		}
		if text := s.told(p.Turn); text != "" {
			sh.Rawf("\r\n[%s]\r\n", text)
		}
		s.sees(p.Turn)
	}
}
