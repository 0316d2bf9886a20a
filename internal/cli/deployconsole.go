package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
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

func deployConsole(sh *shell) *cobra.Command {
	var c console
	var once []string
	cmd := &cobra.Command{
		Use: "console ENVIRONMENT", Short: "Evaluate expressions in the context of an environment and node", Args: exactly(1),
		Long: "Evaluate expressions, line by line, in the context of an environment and node.\n\n" + consoleHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.New = stateAt{Environment: args[0]}
			environment := args[0]
			for _, text := range once {
				if err := sh.evaluate(cmd.Context(), &c, text); err != nil {
					return err
				}
			}
			if len(once) > 0 {
				return nil
			}
			return sh.consoleLines(cmd.Context(), &c, environment)
		},
	}
	cmd.Flags().StringVar(&c.Node, "node", "", "uid of the node that $ is of")
	cmd.Flags().StringArrayVarP(&once, "expression", "e", nil, "evaluate this and end")
	return cmd
}

// consoleLines reads lines and answers them. Errors are told, and the next line is read.
func (sh *shell) consoleLines(ctx context.Context, c *console, environment string) error {
	lines := bufio.NewScanner(sh.in)
	lines.Buffer(nil, 1<<20)
	for {
		if sh.person {
			sh.notef("%s> ", environment)
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
			err = sh.consoleCommand(c, environment, strings.Fields(text))
		default:
			err = sh.evaluate(ctx, c, text)
		}
		if err != nil {
			sh.notef("%s\n", err)
		}
	}
}

func (sh *shell) consoleCommand(c *console, environment string, words []string) error {
	switch {
	case words[0] == ":help":
		return sh.printf("%s", consoleHelp)
	case words[0] == ":show":
		old := "that of the latest deployment"
		if c.Old != nil {
			old = c.Old.String()
		}
		return sh.printf("node %q, new state: %s, old state: %s\n", c.Node, c.New, old)
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
	return usage("there is no command %s; :help lists them", strings.Join(words, " "))
}

// String names the state for people.
func (a stateAt) String() string {
	if a.Deployment == 0 {
		return "the present one of " + a.Environment
	}
	return "that of deployment " + strconv.FormatInt(a.Deployment, 10)
}

func (sh *shell) evaluate(ctx context.Context, c *console, text string) error {
	var answer struct{ Value json.RawMessage }
	c.Expression = text
	if err := sh.do(ctx, "EvalExpression", &answer, c); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, answer.Value, "", "    "); err != nil {
		return err
	}
	return sh.printf("%s\n", b.String())
}
