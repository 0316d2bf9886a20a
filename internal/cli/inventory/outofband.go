package inventory

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

const powerHelp = `Switch nodes on or off, reset them, or ask whether they are on: STATE is on, off, cycle
or status. It is done by the programs that ask their management controllers (the node
parameter oob_program; the setting oob-programs of the controllers says which of them
may be run). Nodes that are switched off are marked as offline before, unless
--ignore-status is given. Without names all nodes are switched on, or asked.`

// powerStates are what can be asked of management controllers, with the question that comes before; none for those that end nothing.
var powerStates = map[string]string{"on": "", "off": "Switch %s off", "cycle": "Switch %s off and on", "status": ""}

// oobOptions are the options of commands that ask management controllers.
type oobOptions struct {
	timeout   *int
	delay     *float64
	noHeaders *bool
	separator *string
	classic   bool
}

func oobFlags(sh *shell.Shell, cmd *cobra.Command) oobOptions {
	f := cmd.Flags()
	return oobOptions{
		classic: sh.Classic(), timeout: f.Int("oob-timeout", 60, "seconds that the program of a node may take"),
		noHeaders: f.Bool("no-headers", false, "leave out the header line"),
		separator: f.String("separator", "", "text between columns, which are not aligned then"),
	}
}

// nodePower makes the verb that switches nodes.
func nodePower(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "power STATE [NODE...]", Short: "Switch nodes on or off, or ask whether they are on", Long: powerHelp, Args: shell.AtLeast(1)})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"on", "off", "cycle", "status"}, cobra.ShellCompDirectiveNoFileComp
		}
		return lists.CompleteNames(sh, "node", true)(cmd, args[1:], start)
	}
	o := oobFlags(sh, cmd)
	o.delay = cmd.Flags().Float64("power-delay", 2, "seconds between switching one node on and the next")
	ignore := cmd.Flags().Bool("ignore-status", false, "switch off also what is not marked as offline")
	promote := cmd.Flags().Bool("auto-promote", !sh.Classic(), "make other nodes master candidates in the place of those that are switched off")
	force := cmd.Flags().BoolP("force", "f", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		state, nodes := args[0], args[1:]
		question, known := powerStates[state]
		switch {
		case !known && sh.Classic():
			return fault.New(fault.Failed, "power subcommand %s not supported.", state)
		case !known:
			return shell.Usage("there is no power %s: on, off, cycle or status", state)
		case question != "" && len(nodes) == 0:
			return fault.New(fault.Failed, "Please provide at least one node for this command")
		case question != "" && !*force:
			if err := sh.Sure("node power", fmt.Sprintf(question, shell.Several(nodes, "node"))); err != nil {
				return err
			}
		}
		if state != "off" || *ignore {
			why := "only nodes that are switched off are marked as offline, and without --ignore-status"
			if err := shell.WithoutEffect(cmd, why, "auto-promote"); err != nil && !sh.Classic() {
				return err
			}
		}
		task, err := powerTask(sh, state, nodes, o, *ignore, *promote)
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{task})
	}
	return cmd
}

// powerTask is the job that switches nodes. Those that are switched off are marked as offline before, in the same job.
func powerTask(sh *shell.Shell, state string, nodes []string, o oobOptions, ignore, promote bool) (t work.Task, err error) {
	add := func(id string, params map[string]any) {
		var op *opcode.Opcode
		if err == nil {
			op, err = work.NewOp(sh, "node", id, params)
			t.Ops = append(t.Ops, op)
		}
	}
	if state == "off" && !ignore && !sh.Flags.DryRun {
		for _, node := range nodes {
			add("OP_NODE_SET_PARAMS", map[string]any{"node_name": node, "offline": true, "auto_promote": promote})
		}
	}
	add("OP_OOB_COMMAND", map[string]any{
		"node_names": shell.NonNil(nodes), "command": "power-" + state, "ignore_status": ignore || state == "off" && sh.Flags.DryRun, "timeout": *o.timeout, "power_delay": *o.delay,
	})
	t.Read = func(result json.RawMessage) (string, bool, error) { return o.table(result, powerWords) }
	return t, err
}

// powerWords are what is shown of the answer to a question of power.
func powerWords(answer json.RawMessage) ([]string, error) {
	var said *struct {
		Powered bool `json:"powered"`
	}
	switch err := json.Unmarshal(answer, &said); {
	case err != nil:
		return nil, err
	case said == nil:
		return []string{"invoked"}, nil
	case said.Powered:
		return []string{"powered"}, nil
	}
	return []string{"unpowered"}, nil
}

// nodeHealth makes the verb that asks how the parts of nodes are.
func nodeHealth(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "health [NODE...]", Short: "Ask management controllers how the parts of nodes are"})
	cmd.Long = "Ask the management controllers of nodes, or of all, how fans, power supplies and the\nlike are: by the programs that node power is about."
	cmd.ValidArgsFunction = lists.CompleteNames(sh, "node", true)
	o := oobFlags(sh, cmd)
	cmd.RunE = func(cmd *cobra.Command, nodes []string) error {
		op, err := work.NewOp(sh, "node", "OP_OOB_COMMAND", map[string]any{"node_names": shell.NonNil(nodes), "command": "health", "timeout": *o.timeout})
		if err != nil {
			return err
		}
		return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}, Read: func(result json.RawMessage) (string, bool, error) { return o.table(result, healthWords) }}})
	}
	return cmd
}

// healthWords are the parts of a node, each with its state.
func healthWords(answer json.RawMessage) (words []string, err error) {
	var parts [][2]string
	err = json.Unmarshal(answer, &parts)
	for _, p := range parts {
		words = append(words, p[0]+"="+p[1])
	}
	if len(words) == 0 {
		words = []string{"(no parts)"}
	}
	return words, err
}

// missing are the words for what was not answered, by the states of rows.
var missing = map[int]string{1: "(unknown)", 2: "(nodata)", 3: "(unavail)", 4: "(offline)"}

// table shows what was answered of each node, and tells whether all was.
func (o oobOptions) table(result json.RawMessage, words func(json.RawMessage) ([]string, error)) (text string, good bool, err error) {
	var rows [][2][2]json.RawMessage
	if err := json.Unmarshal(result, &rows); err != nil {
		return "", false, fault.New(fault.Internal, "what was answered has an unexpected form: %w", err)
	}
	var lines [][]string
	if !*o.noHeaders {
		lines = append(lines, []string{"Node", "Status"})
	}
	good = true
	for _, row := range rows {
		var name string
		var state int
		said := []string{}
		if err = json.Unmarshal(row[0][1], &name); err == nil {
			err = json.Unmarshal(row[1][0], &state)
		}
		if err == nil && state == 0 {
			said, err = words(row[1][1])
		}
		if err != nil {
			return "", false, fault.New(fault.Internal, "what was answered has an unexpected form: %w", err)
		}
		if state != 0 {
			said, good = []string{missing[state]}, false
		}
		for i, word := range said {
			if i > 0 {
				name = ""
			}
			lines = append(lines, []string{name, word})
		}
	}
	separator := *o.separator
	if separator == "" {
		alignColumns(lines, o.classic)
		separator = " "
	}
	for _, line := range lines {
		text += strings.Join(line, separator) + "\n"
	}
	return text, good, nil
}

// alignColumns has cells of a column be as wide as the widest; those of the last one, too, for scripts of the classic tools.
func alignColumns(lines [][]string, last bool) {
	for c := range 2 {
		width := 0
		for _, line := range lines {
			width = max(width, utf8.RuneCountInString(line[c]))
		}
		for _, line := range lines {
			if c == 0 || last {
				line[c] += strings.Repeat(" ", width-utf8.RuneCountInString(line[c]))
			}
		}
	}
}
