package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
)

// What operators' scripts write to the classic tools and drover spells in
// another way, or does without.

// ClassicNouns are the nouns that have a classic tool.
var ClassicNouns = []string{"backup", "cluster", "debug", "filter", "group", "instance", "job", "network", "node", "os", "storage"}

// ClassicNames are further names of the options of parameters.
var ClassicNames = map[string][]string{
	"beparams": {"backend-parameters"}, "hvparams": {"hypervisor-parameters"}, "osparams": {"os-parameters"},
	"osparams_private": {"os-parameters-private"}, "osparams_secret": {"os-parameters-secret"}, "ndparams": {"node-parameters"},
	"nicparams": {"nic-parameters"}, "diskparams": {"disk-parameters"}, "hv_state": {"hypervisor-state"}, "group_name": {"node-group"},
	"group": {"node-group"}, "powered": {"node-powered"}, "drbd_helper": {"drbd-usermode-helper"}, "enabled_user_shutdown": {"user-shutdown"},
	"runtime_mem": {"runtime-memory"}, "pnode": {"new-primary"}, "instance_communication": {"communication"}, "target_groups": {"to"},
	"verify_clutter": {"verify-ssh-clutter"},
}

// RegisterClassic adds the options that all classic tools have.
func (f *Flags) RegisterClassic(set *pflag.FlagSet) {
	set.CountVarP(&f.Debug, "debug", "d", "accepted for scripts: it raises debug_level, which jobs carry to their executor")
	set.BoolVar(&f.PrintJobID, "print-jobid", false, "print the ids of jobs when they are submitted")
}

// classicShared are the shared options that the classic tools take everywhere.
func classicShared(name string) bool {
	return name == "reason" || name == "debug" || name == "print-jobid"
}

// FieldsOf reads --output FIELDS, which is how the classic lists call -o. The
// names of our formats keep their meaning.
func FieldsOf(args []string) []string {
	if len(args) == 0 || args[0] != "list" {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		text, joined := strings.CutPrefix(arg, "--output=")
		if arg == "--output" && i+1 < len(out) {
			text = out[i+1]
		} else if !joined {
			continue
		}
		switch {
		case slices.Contains(FormatNames(), text):
		case joined:
			out[i] = "--fields=" + text
		default:
			out[i] = "--fields"
		}
	}
	return out
}

// WithoutHelp drops what follows a command that there is not: asking for help
// about it is a mistake too.
func (p Persona) WithoutHelp(root *cobra.Command, args []string) []string {
	if len(args) < 2 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "_") {
		return args
	}
	for _, noun := range root.Commands() {
		if noun.Name() == p.Noun && !slices.ContainsFunc(noun.Commands(), func(c *cobra.Command) bool {
			return c.Name() == args[0] || c.HasAlias(args[0])
		}) {
			return args[:1]
		}
	}
	return args
}

// AddClassicAliases gives commands the other names that the classic tools know
// them by.
func AddClassicAliases(root *cobra.Command) {
	for _, noun := range root.Commands() {
		for _, verb := range noun.Commands() {
			switch name := verb.Name(); {
			case name == "info" && slices.Contains([]string{"cluster", "instance", "job", "node", "os"}, noun.Name()):
				verb.Aliases = append(verb.Aliases, "show")
			case name == "master-failover":
				verb.Aliases = append(verb.Aliases, "masterfailover")
			}
		}
	}
}

// Selection is how the classic tools choose the instances for a command: by
// their names, or by something else that they have in common.
type Selection struct {
	all, tags, byName         *bool
	node, primary, secondary  *bool
	nodeTags, priTags, secTag *bool
	force                     *bool
}

// Register adds the options.
func (s *Selection) Register(cmd *cobra.Command) {
	flag := func(name, letter, doc string) *bool { return cmd.Flags().BoolP(name, letter, false, doc) }
	s.all = flag("all", "", "all instances of the cluster")
	s.byName = flag("instance", "", "the arguments are names of instances, which is the default")
	s.tags = flag("tags", "", "the arguments are tags: instances with any of them")
	s.node = flag("node", "n", "the arguments are nodes: instances that are on any of them")
	s.primary = flag("primary", "", "the arguments are nodes: instances that have one as their primary")
	s.secondary = flag("secondary", "", "the arguments are nodes: instances that have one as a secondary")
	s.nodeTags = flag("node-tags", "", "the arguments are tags of nodes, which then are selected as by --node")
	s.priTags = flag("pri-node-tags", "", "the arguments are tags of nodes, which then are selected as by --primary")
	s.secTag = flag("sec-node-tags", "", "the arguments are tags of nodes, which then are selected as by --secondary")
	s.force = flag("force-multiple", "", "do not ask although several instances are meant")
	cmd.MarkFlagsMutuallyExclusive("all", "instance", "tags", "node", "primary", "secondary", "node-tags", "pri-node-tags", "sec-node-tags")
}

// Given reports whether instances are selected by anything but their names.
func (s *Selection) Given() bool {
	for _, mode := range []*bool{s.all, s.tags, s.node, s.primary, s.secondary, s.nodeTags, s.priTags, s.secTag} {
		if *mode {
			return true
		}
	}
	return false
}

// Names returns the instances that are meant.
func (s *Selection) Names(ctx context.Context, sh *Shell, args []string) ([]string, error) {
	switch {
	case *s.all && len(args) > 0:
		return nil, fault.New(fault.Invalid, "Cluster filter mode takes no arguments")
	case *s.all:
		return sh.Column(ctx, "instance", "name", &qlang.All{})
	case len(args) == 0:
		return nil, Usage("missing argument: what to select by")
	case *s.tags:
		return s.found(sh.Column(ctx, "instance", "name", anyMember("tags", args)))
	}
	nodes := qlang.AnyOf("name", args...)
	if *s.nodeTags || *s.priTags || *s.secTag {
		nodes = anyMember("tags", args)
	}
	var out []string
	for _, side := range []struct {
		field string
		wants bool
	}{{"pinst_list", !*s.secondary && !*s.secTag}, {"sinst_list", !*s.primary && !*s.priTags}} {
		if !side.wants {
			continue
		}
		names, err := sh.Column(ctx, "node", side.field, nodes)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return s.found(out, nil)
}

func (s *Selection) found(names []string, err error) ([]string, error) {
	if err == nil && len(names) == 0 {
		return nil, fault.New(fault.Invalid, "Selection filter does not match any instances")
	}
	return names, err
}

// anyMember is met by items whose list holds any of the texts.
func anyMember(field string, texts []string) qlang.Node {
	or := &qlang.Or{}
	for _, t := range texts {
		or.Args = append(or.Args, &qlang.Contains{Field: field, Value: qlang.TextValue(t)})
	}
	return or
}

// Column returns the texts of one field of items; those of a list one by one.
func (sh *Shell) Column(ctx context.Context, kind, field string, filter qlang.Node) ([]string, error) {
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, kind, []string{field}, qlang.JSON(filter)); err != nil {
		return nil, err
	}
	var out []string
	for _, row := range found.Data {
		v, _ := ParseJSON(string(row[0].Value))
		if list, isList := v.([]any); isList {
			for _, item := range list {
				out = append(out, fmt.Sprint(item))
			}
			continue
		}
		out = append(out, fmt.Sprint(v))
	}
	return out, nil
}

// Modified tells what a modification of a kind of item changed.
func Modified(kind string) func(name string, result json.RawMessage) string {
	return func(name string, result json.RawMessage) string { return classic.Modified(kind, name, result) }
}

// ConfirmMany asks before something is done to instances that were not named
// one by one.
func (sh *Shell) ConfirmMany(s *Selection, verb string, names []string) error {
	if *s.force || !s.Given() || sh.Flags.DryRun {
		return nil
	}
	return sh.Confirm(fmt.Sprintf("The %s will operate on %d instances: %s. Go on?", verb, len(names), strings.Join(names, ", ")))
}

// NothingToChange is the answer of the classic tools to a modification without
// any; force and its like change nothing.
func NothingToChange(def *opcode.Definition, params map[string]any) bool {
	if !strings.HasSuffix(def.ID, "_SET_PARAMS") {
		return false
	}
	for name := range params {
		if p, ok := def.Param(name); ok && !p.Required && !slices.Contains([]string{"force", "ignore_ipolicy", "force_variant", "auto_promote",
			"hotplug", "hotplug_if_possible", "wait_for_sync", "conflicts_check"}, name) {
			return false
		}
	}
	return true
}
