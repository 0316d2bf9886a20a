package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/opcode"
)

// tagKinds are the kinds of things with tags, as opcodes name them, by what
// people call them.
var tagKinds = map[string]string{
	"cluster": "cluster", "group": "nodegroup", "nodegroup": "nodegroup", "node": "node", "instance": "instance", "network": "network",
}

func tagCommand(sh *shell) *cobra.Command {
	list := heeding(readingStored, &cobra.Command{
		Use: "list KIND [NAME]", Short: "Show the tags of a thing", Args: tagArgs(0), ValidArgsFunction: sh.completeTagged,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, _ := splitTagArgs(args)
			return sh.listTags(cmd, kind, name)
		},
	})
	change := func(verb, short, id string) *cobra.Command {
		return heeding(making, &cobra.Command{
			Use: verb + " KIND [NAME] TAG...", Short: short, Args: tagArgs(1), ValidArgsFunction: sh.completeTagged,
			RunE: func(cmd *cobra.Command, args []string) error {
				kind, name, tags := splitTagArgs(args)
				return sh.changeTags(cmd, "tag", id, kind, name, tags)
			},
		})
	}
	return sh.group("tag", "Tags of the cluster, groups, nodes, instances and networks", list,
		change("add", "Add tags", "OP_TAGS_SET"), change("remove", "Remove tags", "OP_TAGS_DEL"), tagSearch(sh, "tag", "search"))
}

// tagArgs checks KIND [NAME] and at least so many tags.
func tagArgs(tags int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || tagKinds[args[0]] == "" {
			return usage("%s: KIND must be cluster, group, node, instance or network", cmd.UseLine())
		}
		_, name, rest := splitTagArgs(args)
		if args[0] != "cluster" && name == "" || len(rest) < tags || tags == 0 && len(rest) > 0 {
			return usage("usage: %s", cmd.UseLine())
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

func (sh *shell) completeTagged(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []cobra.Completion{"cluster", "group", "node", "instance", "network"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] != "cluster":
		return sh.completeNames(args[0], true)(cmd, nil, typed)
	default:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func (sh *shell) listTags(cmd *cobra.Command, kind, name string) error {
	tags := []string{}
	if err := sh.ask(cmd.Context(), "QueryTags", &tags, kind, name); err != nil {
		return err
	}
	slices.Sort(tags)
	return sh.show(tags, func() error {
		if len(tags) == 0 {
			return nil
		}
		return sh.printf("%s\n", strings.Join(tags, "\n"))
	})
}

func (sh *shell) changeTags(cmd *cobra.Command, noun, id, kind, name string, tags []string) error {
	params := map[string]any{"kind": kind, "tags": tags}
	if kind != "cluster" {
		params["name"] = name
	}
	op, err := sh.newOp(noun, id, params)
	if err != nil {
		return err
	}
	return sh.run(cmd.Context(), []task{{ops: []*opcode.Opcode{op}}})
}

// tagChosen changes the tags of the items that are chosen, by a job for each.
func (sh *shell) tagChosen(cmd *cobra.Command, c *choice, id string, patterns, tags []string) error {
	names, err := sh.choose(cmd.Context(), c, cmd.Name()+" "+strings.Join(tags, " ")+" of", patterns, false)
	if err != nil || len(names) == 0 {
		return err
	}
	tasks := make([]task, len(names))
	for i, name := range names {
		op, err := sh.newOp(c.kind, id, map[string]any{"kind": tagKinds[c.kind], "name": name, "tags": tags})
		if err != nil {
			return err
		}
		tasks[i] = task{target: name, ops: []*opcode.Opcode{op}}
	}
	return sh.run(cmd.Context(), tasks)
}

// tagSearch finds tags in the whole cluster.
func tagSearch(sh *shell, noun, verb string) *cobra.Command {
	return heeding(readingByJob, &cobra.Command{
		Use: verb + " PATTERN", Short: "Find tags in the whole cluster by a regular expression", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := sh.newOp(noun, "OP_TAGS_SEARCH", map[string]any{"pattern": args[0]})
			if err != nil {
				return err
			}
			var pairs [][2]string
			if err := sh.result(cmd.Context(), op, &pairs); err != nil {
				return err
			}
			return sh.show(pairs, func() error {
				for _, p := range pairs {
					if err := sh.printf("%s %s\n", p[0], p[1]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	})
}

// itemTags are the tag commands under the noun of a thing.
func itemTags(sh *shell, noun string) []*cobra.Command {
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
	change := func(verb, short, id string) *cobra.Command {
		c := heeding(making, &cobra.Command{Use: verb + " " + use + "TAG...", Short: short, Args: atLeast(needs + 1)})
		chosen := choice{kind: noun}
		choosable := slices.Contains([]string{"instance", "node"}, noun) && !sh.persona.classic()
		if choosable {
			chosen.register(c)
			c.Args = atLeast(1)
		}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if choosable && chosen.given() {
				return sh.tagChosen(cmd, &chosen, id, nil, args)
			}
			if err := atLeast(needs+1)(cmd, args); err != nil {
				return err
			}
			item, tags := name(args)
			if choosable && wild(item) {
				return sh.tagChosen(cmd, &chosen, id, []string{item}, tags)
			}
			return sh.changeTags(cmd, noun, id, kind, item, tags)
		}
		if needs > 0 {
			c.ValidArgsFunction = sh.completeNames(noun, false)
		}
		return c
	}
	list := &cobra.Command{
		Use: strings.TrimSpace("list-tags " + use), Short: "Show its tags", Args: exactly(needs),
		RunE: func(cmd *cobra.Command, args []string) error {
			item, _ := name(args)
			return sh.listTags(cmd, kind, item)
		},
	}
	if needs > 0 {
		list.ValidArgsFunction = sh.completeNames(noun, false)
	}
	return []*cobra.Command{list, change("add-tags", "Add tags", "OP_TAGS_SET"), change("remove-tags", "Remove tags", "OP_TAGS_DEL")}
}
