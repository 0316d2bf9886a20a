package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/opcode"
)

// tagKinds are the kinds of things with tags, as opcodes name them, by what
// people call them.
var tagKinds = map[string]string{
	"cluster": "cluster", "group": "nodegroup", "nodegroup": "nodegroup", "node": "node", "instance": "instance", "network": "network",
}

// TagCommand returns the noun "tag".
func TagCommand(sh *shell.Shell) *cobra.Command {
	list := shell.Heeding(shell.ReadingStored, &cobra.Command{
		Use: "list KIND [NAME]", Short: "Show the tags of a thing", Args: tagArgs(0), ValidArgsFunction: completeTagged(sh),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, _ := splitTagArgs(args)
			return listTags(sh, cmd, kind, name)
		},
	})
	change := func(verb, short, id string) *cobra.Command {
		return shell.Heeding(shell.Making, &cobra.Command{
			Use: verb + " KIND [NAME] TAG...", Short: short, Args: tagArgs(1), ValidArgsFunction: completeTagged(sh),
			RunE: func(cmd *cobra.Command, args []string) error {
				kind, name, tags := splitTagArgs(args)
				return changeTags(sh, cmd, "tag", id, kind, name, tags)
			},
		})
	}
	return sh.Group("tag", "Tags of the cluster, groups, nodes, instances and networks", list,
		change("add", "Add tags", "OP_TAGS_SET"), change("remove", "Remove tags", "OP_TAGS_DEL"), tagSearch(sh, "tag", "search"))
}

// tagArgs checks KIND [NAME] and at least so many tags.
func tagArgs(tags int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || tagKinds[args[0]] == "" {
			return shell.Usage("%s: KIND must be cluster, group, node, instance or network", cmd.UseLine())
		}
		_, name, rest := splitTagArgs(args)
		if args[0] != "cluster" && name == "" || len(rest) < tags || tags == 0 && len(rest) > 0 {
			return shell.Usage("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

func splitTagArgs(args []string) (kind, name string, tags []string) {
	kind, rest := tagKinds[args[0]], args[1:]
	if kind != "cluster" && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	return kind, name, rest
}

func completeTagged(sh *shell.Shell) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return []cobra.Completion{"cluster", "group", "node", "instance", "network"}, cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && args[0] != "cluster":
			return lists.CompleteNames(sh, args[0], true)(cmd, nil, typed)
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

func listTags(sh *shell.Shell, cmd *cobra.Command, kind, name string) error {
	tags := []string{}
	if err := sh.Ask(cmd.Context(), "QueryTags", &tags, kind, name); err != nil {
		return err
	}
	slices.Sort(tags)
	return sh.Show(tags, func() error {
		if len(tags) == 0 {
			return nil
		}
		return sh.Printf("%s\n", strings.Join(tags, "\n"))
	})
}

func changeTags(sh *shell.Shell, cmd *cobra.Command, noun, id, kind, name string, tags []string) error {
	params := map[string]any{"kind": kind, "tags": tags}
	if kind != "cluster" {
		params["name"] = name
	}
	op, err := work.NewOp(sh, noun, id, params)
	if err != nil {
		return err
	}
	return work.Run(cmd.Context(), sh, []work.Task{{Ops: []*opcode.Opcode{op}}})
}

// tagChosen changes the tags of the items that are chosen, by a job for each.
func tagChosen(sh *shell.Shell, cmd *cobra.Command, c *lists.Choice, id string, patterns, tags []string) error {
	names, err := lists.Choose(cmd.Context(), sh, c, cmd.Name()+" "+strings.Join(tags, " ")+" of", patterns, false)
	if err != nil || len(names) == 0 {
		return err
	}
	tasks := make([]work.Task, len(names))
	for i, name := range names {
		op, err := work.NewOp(sh, c.Kind, id, map[string]any{"kind": tagKinds[c.Kind], "name": name, "tags": tags})
		if err != nil {
			return err
		}
		tasks[i] = work.Task{Target: name, Ops: []*opcode.Opcode{op}}
	}
	return work.Run(cmd.Context(), sh, tasks)
}

// tagSearch finds tags in the whole cluster.
func tagSearch(sh *shell.Shell, noun, verb string) *cobra.Command {
	heeds := shell.Asking
	if sh.Classic() {
		heeds = shell.ReadingByJob
	}
	return shell.Heeding(heeds, &cobra.Command{
		Use: verb + " PATTERN", Short: "Find tags in the whole cluster by a regular expression", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := work.NewOp(sh, noun, "OP_TAGS_SEARCH", map[string]any{"pattern": args[0]})
			if err != nil {
				return err
			}
			var pairs [][2]string
			if err := work.Result(cmd.Context(), sh, op, &pairs); err != nil {
				return err
			}
			return sh.Show(pairs, func() error {
				for _, p := range pairs {
					if err := sh.Printf("%s %s\n", p[0], p[1]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

// itemTags are the tag commands under the noun of a thing.
func itemTags(sh *shell.Shell, noun string) []*cobra.Command {
	kind, needs := tagKinds[noun], 1
	if kind == "cluster" {
		needs = 0
	}
	name := func(args []string) (string, []string) {
		if needs == 0 {
			return "", args
		}
		return args[0], args[1:]
	}
	use := strings.Repeat(strings.ToUpper(noun)+" ", needs)
	thing := map[string]string{"cluster": "the cluster", "instance": "an instance"}[noun]
	thing = cmp.Or(thing, "a "+noun)
	change := func(verb, short, id string) *cobra.Command {
		c := shell.Heeding(shell.Making, &cobra.Command{Use: verb + " " + use + "TAG...", Short: short, Args: shell.AtLeast(needs + 1)})
		chosen := lists.Choice{Kind: noun}
		choosable := slices.Contains([]string{"instance", "node"}, noun) && !sh.Classic()
		if choosable {
			chosen.Register(c)
			c.Args = shell.AtLeast(1)
		}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if choosable && chosen.Given() {
				return tagChosen(sh, cmd, &chosen, id, nil, args)
			}
			if err := shell.AtLeast(needs+1)(cmd, args); err != nil {
				return err
			}
			item, tags := name(args)
			if choosable && lists.Wild(item) {
				return tagChosen(sh, cmd, &chosen, id, []string{item}, tags)
			}
			return changeTags(sh, cmd, noun, id, kind, item, tags)
		}
		if needs > 0 {
			c.ValidArgsFunction = lists.CompleteNames(sh, noun, false)
		}
		return c
	}
	list := &cobra.Command{
		Use: strings.TrimSpace("list-tags " + use), Short: "Show the tags of " + thing, Args: shell.Exactly(needs),
		RunE: func(cmd *cobra.Command, args []string) error {
			item, _ := name(args)
			return listTags(sh, cmd, kind, item)
		},
	}
	if needs > 0 {
		list.ValidArgsFunction = lists.CompleteNames(sh, noun, false)
	}
	return []*cobra.Command{list, change("add-tags", "Add tags to "+thing, "OP_TAGS_SET"), change("remove-tags", "Remove tags from "+thing, "OP_TAGS_DEL")}
}
