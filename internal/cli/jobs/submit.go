package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

const submitHelp = `Submit a job.

With an opcode: the name (OP_TEST_DELAY, or test-delay) and its parameters as
KEY=VALUE; values are read by the parameter's type, lists as a,b,c and objects
as k=v,k=v or as JSON. Without parameters, --describe shows what there is.

  drover job submit test-delay duration=5 on_nodes=node1,node2
  drover job submit --describe OP_INSTANCE_CREATE

With a file, or - for standard input: JSON. One opcode, a list of opcodes (one
job), or a list of lists (several jobs), as drover job info --output json shows
them.

With --like ID: what that job did, once more.`

func jobSubmit(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "submit OPCODE [KEY=VALUE...] | FILE | - | --like ID", Short: "Submit a job of any opcodes", Long: submitHelp,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: completeOpcode(sh),
	}
	describe := cmd.Flags().Bool("describe", false, "show the parameters of the opcode instead")
	key := cmd.Flags().String("key", "", "submission key: a second submission with the same key makes no second job")
	depends := cmd.Flags().StringArray("depend", nil, "wait for job ID, or ID:STATUS,...; may be repeated")
	like := cmd.Flags().String("like", "", "submit the opcodes of this job once more")
	_ = cmd.RegisterFlagCompletionFunc("like", lists.CompleteNames(sh, "job", true))                 // the option exists
	_ = cmd.RegisterFlagCompletionFunc("depend", lists.CompleteWhere(sh, "job", true, unfinished())) // the option exists
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *like != "" {
			args = append(args, *like)
		}
		if err := shell.AtLeast(1)(cmd, args); err != nil {
			return err
		}
		if *like != "" && (len(args) > 1 || *describe) {
			return shell.Usage("%s: --like stands for itself", cmd.CommandPath())
		}
		if *describe {
			if err := shell.Exactly(1)(cmd, args); err != nil {
				return err
			}
			if err := shell.WithoutEffect(cmd, "--describe submits nothing", "key", "depend", "submit", "priority", "reason"); err != nil {
				return err
			}
		}
		id := opcodeID(args[0])
		def, known := opcode.Lookup(id)
		switch {
		case *describe && known:
			return describeOpcode(sh, def)
		case *describe:
			return unknownOpcode(id)
		}
		jobs, err := submitted(cmd.Context(), sh, args, def, *like)
		if err != nil {
			return err
		}
		if err := addDependencies(jobs, *depends); err != nil {
			return err
		}
		if len(jobs) == 0 || slices.ContainsFunc(jobs, func(ops []*opcode.Opcode) bool { return len(ops) == 0 }) {
			return shell.Usage("a job without opcodes does nothing")
		}
		tasks := make([]work.Task, len(jobs))
		for i, ops := range jobs {
			for n, op := range ops {
				if ops[n], err = work.FinishOp(sh, op, sh.Trail("job")); err != nil {
					return err
				}
			}
			tasks[i] = work.Task{Ops: ops, Key: *key, Shown: true, AsIs: true}
		}
		if *key != "" && len(tasks) != 1 {
			return shell.Usage("--key is for one job; there are %d", len(tasks))
		}
		return work.Run(cmd.Context(), sh, tasks)
	}
	return cmd
}

// submitted are the jobs that a command line describes.
func submitted(ctx context.Context, sh *shell.Shell, args []string, def *opcode.Definition, like string) ([][]*opcode.Opcode, error) {
	if like == "" {
		return jobsFrom(sh, args, def)
	}
	id, err := shell.JobID(like)
	if err != nil {
		return nil, err
	}
	sh.ChosenBy("--like", like)
	return opsLike(ctx, sh, id)
}

// opcodeID turns instance-shutdown into OP_INSTANCE_SHUTDOWN.
func opcodeID(text string) string {
	id := strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
	if !strings.HasPrefix(id, "OP_") {
		id = "OP_" + id
	}
	return id
}

func unknownOpcode(id string) error {
	names := func(yield func(string) bool) {
		for _, d := range opcode.All() {
			if !yield(d.ID) {
				return
			}
		}
	}
	if near := qlang.Suggest(id, names); near != "" {
		return shell.Usage("there is no opcode %s; did you mean %s?", id, near)
	}
	return &shell.ExitError{Status: shell.ExitUsage, Err: fault.New(fault.Invalid, "there is no opcode %s", id).
		WithHint("docs/opcodes.md lists them, and completion offers them")}
}

func completeOpcode(sh *shell.Shell) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		if len(args) == 0 {
			for _, d := range opcode.All() {
				if !d.Unsupported {
					out = append(out, cobra.CompletionWithDesc(d.ID, d.Doc))
				}
			}
			return out, cobra.ShellCompDirectiveDefault // files too
		}
		if def, ok := opcode.Lookup(opcodeID(args[0])); ok {
			if key, value, given := strings.Cut(typed, "="); given {
				if p, known := def.Param(key); known {
					return lists.CompleteValue(sh, cmd, p, value)
				}
			}
			for i := range def.Params {
				out = append(out, cobra.CompletionWithDesc(def.Params[i].Name+"=", def.Params[i].Doc))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// jobsFrom reads the jobs: an opcode with parameters, or JSON from a file.
func jobsFrom(sh *shell.Shell, args []string, def *opcode.Definition) ([][]*opcode.Opcode, error) {
	if def != nil {
		params, err := keyValues(def, args[1:])
		if err != nil {
			return nil, err
		}
		op, err := opcode.FromMap(def.ID, params)
		if err != nil {
			return nil, &shell.ExitError{Status: shell.ExitUsage, Err: work.WithChoices(def.ID, err, func(param string) string {
				return "give " + param + "=VALUE; drover job submit --describe " + def.ID + " tells of all of them"
			})}
		}
		return [][]*opcode.Opcode{{op}}, nil
	}
	if len(args) > 1 {
		return nil, unknownOpcode(opcodeID(args[0]))
	}
	text, err := sh.Read(args[0])
	if err != nil {
		if args[0] != "-" && !strings.ContainsAny(args[0], "./") {
			return nil, unknownOpcode(opcodeID(args[0]))
		}
		return nil, err
	}
	return parseJobs(text)
}

// keyValues reads KEY=VALUE arguments by the definition of the opcode.
func keyValues(def *opcode.Definition, args []string) (map[string]any, error) {
	params := map[string]any{}
	for _, arg := range args {
		key, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, shell.Usage("%s: a parameter is given as KEY=VALUE, got %q", def.ID, arg)
		}
		p, known := def.Param(key)
		if !known {
			p = commonParam(key)
		}
		if p == nil {
			params[key] = text // refused by the opcode's own check, with a hint
			continue
		}
		params[key] = shell.ParamValue(p, text)
	}
	return params, nil
}

func commonParam(name string) *opcode.Param {
	for _, p := range opcode.CommonParams() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// parseJobs reads one opcode, the opcodes of one job, or several jobs.
func parseJobs(text []byte) ([][]*opcode.Opcode, error) {
	v, ok := shell.ParseJSON(string(text))
	if !ok {
		var probe any
		return nil, fault.New(fault.Invalid, "the jobs are not JSON: %v", json.Unmarshal(text, &probe))
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	if len(list) > 0 {
		if _, nested := list[0].([]any); !nested {
			list = []any{list}
		}
	}
	jobs := make([][]*opcode.Opcode, len(list))
	for i, item := range list {
		ops, ok := item.([]any)
		if !ok {
			return nil, fault.New(fault.Invalid, "job %d must be a list of opcodes, like the first", i)
		}
		for n, op := range ops {
			raw, err := json.Marshal(op)
			if err != nil {
				return nil, err
			}
			parsed, err := opcode.Parse(raw, opcode.Options{})
			if err != nil {
				return nil, fault.New(fault.CodeOf(err), "job %d, opcode %d: %w", i, n, err)
			}
			jobs[i] = append(jobs[i], renewed(parsed))
		}
	}
	return jobs, nil
}

// addDependencies makes the first opcode of each job wait for others.
func addDependencies(jobs [][]*opcode.Opcode, texts []string) error {
	for _, text := range texts {
		id, statuses, _ := strings.Cut(text, ":")
		target, ok := shell.NumberValue(id).(int64)
		if !ok {
			return shell.Usage("--depend is ID or ID:STATUS,..., got %q", text)
		}
		d := opcode.Dependency{Job: target, Statuses: []string{}}
		if statuses != "" {
			d.Statuses = strings.Split(statuses, ",")
		}
		for _, ops := range jobs {
			if len(ops) == 0 {
				continue
			}
			c := *ops[0]
			c.Depends = append(append([]opcode.Dependency{}, c.Depends...), d)
			ops[0] = &c
		}
	}
	return nil
}

// describeOpcode shows an opcode's entry in the catalogue.
func describeOpcode(sh *shell.Shell, def *opcode.Definition) error {
	type param struct {
		Name     string   `json:"name"`
		Type     string   `json:"type"`
		Required bool     `json:"required,omitempty"`
		Default  any      `json:"default,omitempty"`
		Allowed  []string `json:"allowed,omitempty"`
		Doc      string   `json:"doc"`
	}
	params := []param{}
	for _, p := range append(def.Params, opcode.CommonParams()...) {
		params = append(params, param{p.Name, p.Type.String(), p.Required, p.Default, p.Type.Allowed(), p.Doc})
	}
	value := map[string]any{"opcode": def.ID, "doc": def.Doc, "result": def.Result, "parameters": params, "supported": !def.Unsupported}
	return sh.Show(value, func() error {
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s.\nReturns %s.\n", def.ID, strings.TrimSuffix(def.Doc, "."), def.Result)
		if def.Unsupported {
			b.WriteString("No executor in this version: a job with it is refused.\n")
		}
		for _, p := range params {
			about := p.Type
			switch {
			case p.Required && p.Name != "reason":
				about += ", required"
			case p.Default != nil:
				text, err := json.Marshal(p.Default)
				if err != nil {
					return err
				}
				about += ", default " + string(text)
			}
			fmt.Fprintf(&b, "\n%s (%s)\n", sh.Paint(shell.Bold, p.Name), about)
			text := p.Doc
			if len(p.Allowed) > 0 {
				text += ": " + strings.Join(p.Allowed, ", ")
			}
			for _, line := range listing.Wrap(text, describeWidth) {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
		return sh.Printf("%s", b.String())
	})
}

// describeWidth is the width of descriptions, which fits every terminal.
const describeWidth = shell.UsualWidth - 4
