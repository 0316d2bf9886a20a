package deployments

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

const consoleHelp = `An expression is evaluated as tasks have theirs evaluated. Besides:
  :use node UID                what $ is
  :use new DEPLOYMENT|present  the state to be reached: that of a deployment, or the present one
  :use old DEPLOYMENT|latest   the state to compare with
  :show                        what is used
  :help, :exit, :q
`

// console is what expressions are evaluated in.
type console struct {
	Expression string   `json:"expression"`
	New        stateAt  `json:"new"`
	Old        *stateAt `json:"old,omitempty"`
	Node       string   `json:"node"`
}

func deployConsole(sh *shell.Shell) *cobra.Command {
	var c console
	var once []string
	var newer, older string
	cmd := &cobra.Command{
		Use: "console ENVIRONMENT", Short: "Evaluate expressions in the context of an environment and node", Args: shell.Exactly(1),
		Long: "Evaluate expressions, line by line, in the context of an environment and node.\n\n" + consoleHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			environment := args[0]
			for _, use := range [][2]string{{"new", cmp.Or(newer, "present")}, {"old", cmp.Or(older, "latest")}} {
				if err := consoleCommand(sh, &c, environment, []string{":use", use[0], use[1]}); err != nil {
					return err
				}
			}
			for _, text := range once {
				if err := evaluate(cmd.Context(), sh, &c, text); err != nil {
					return err
				}
			}
			if len(once) > 0 {
				return nil
			}
			return consoleLines(cmd.Context(), sh, &c, environment)
		},
	}
	cmd.Flags().StringVar(&c.Node, "node", "", "uid of the node that $ is of")
	cmd.Flags().StringVar(&newer, "new", "", "the state to be reached: that of this deployment, in place of the present one")
	cmd.Flags().StringVar(&older, "old", "", "the state to compare with: that of this deployment, in place of the latest one's")
	cmd.Flags().StringArrayVarP(&once, "expression", "e", nil, "evaluate this and end")
	return cmd
}

// consoleLines reads lines and answers them. Errors are told, and the next line is read.
func consoleLines(ctx context.Context, sh *shell.Shell, c *console, environment string) error {
	lines := bufio.NewScanner(sh.In)
	lines.Buffer(nil, 1<<20)
	for {
		if sh.Person {
			sh.Notef("%s> ", environment)
		}
		if !lines.Scan() {
			return lines.Err()
		}
		text := strings.TrimSpace(lines.Text())
		var err error
		switch {
		case text == "":
		case text == ":exit" || text == ":q":
			return nil
		case text[0] == ':':
			err = consoleCommand(sh, c, environment, strings.Fields(text))
		default:
			err = evaluate(ctx, sh, c, text)
		}
		if err != nil {
			sh.Notef("%s\n", err)
		}
	}
}

func consoleCommand(sh *shell.Shell, c *console, environment string, words []string) error {
	switch {
	case words[0] == ":help":
		return sh.Printf("%s", consoleHelp)
	case words[0] == ":show":
		old := "that of the latest deployment"
		if c.Old != nil {
			old = c.Old.String()
		}
		return sh.Printf("node %q, new state: %s, old state: %s\n", c.Node, c.New, old)
	case words[0] == ":use" && len(words) == 3 && words[1] == "node":
		c.Node = words[2]
		return nil
	case words[0] == ":use" && len(words) == 3 && words[1] == "new" && words[2] == "present":
		c.New = stateAt{Environment: environment}
		return nil
	case words[0] == ":use" && len(words) == 3 && words[1] == "old" && words[2] == "latest":
		c.Old = nil
		return nil
	case words[0] == ":use" && len(words) == 3 && (words[1] == "new" || words[1] == "old"):
		id, err := deploymentID(words[2])
		if err != nil {
			return err
		}
		at := stateAt{Environment: environment, Deployment: id}
		if words[1] == "new" {
			c.New = at
		} else {
			c.Old = &at
		}
		return nil
	}
	return shell.Usage("there is no command %s; :help lists them", strings.Join(words, " "))
}

// String names the state for people.
func (a stateAt) String() string {
	if a.Deployment == 0 {
		return "the present one of " + a.Environment
	}
	return "that of deployment " + strconv.FormatInt(a.Deployment, 10)
}

func evaluate(ctx context.Context, sh *shell.Shell, c *console, text string) error {
	var answer struct{ Value json.RawMessage }
	c.Expression = text
	if err := sh.Do(ctx, "EvalExpression", &answer, c); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, answer.Value, "", "    "); err != nil {
		return err
	}
	return sh.Printf("%s\n", b.String())
}
