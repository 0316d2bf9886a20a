package shell

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// otherVerbs are words of other tools for verbs, with those of ours that may be
// meant, the likeliest first.
var otherVerbs = map[string][]string{
	"show": lookInFull, "get": lookInFull, "describe": lookInFull, "display": lookInFull, "view": lookInFull, "inspect": lookInFull,
	"details": lookInFull, "cat": lookInFull, "info": lookInFull, "dump": lookInFull,
	"stat": lookAtState, "stats": lookAtState, "status": lookAtState, "state": lookAtState,
	"ls": lookAtAll, "all": lookAtAll, "list": lookAtAll, "find": lookAtAll, "search": lookAtAll, "query": lookAtAll,
	"logs": lookAtLog, "log": lookAtLog, "tail": lookAtLog, "follow": lookAtLog, "attach": lookAtLog,
	"why": {"explain"}, "check": {"verify", "test", "validate", "info"}, "diff": {"test", "plan"}, "preview": {"test", "plan"},
	"create": makeNew, "new": makeNew, "make": makeNew, "add": makeNew, "insert": makeNew, "launch": makeNew, "define": makeNew, "put": makeNew,
	"delete": takeAway, "del": takeAway, "rm": takeAway, "remove": takeAway, "destroy": takeAway, "erase": takeAway, "drop": takeAway, "purge": takeAway, "terminate": takeAway,
	"edit": changeIt, "update": changeIt, "set": changeIt, "change": changeIt, "configure": changeIt, "patch": changeIt, "alter": changeIt, "modify": changeIt,
	"kill": {"cancel", "stop"}, "abort": {"cancel", "stop"}, "interrupt": {"cancel"},
	"boot": {"start"}, "up": {"start"}, "poweron": {"start"}, "resume": {"start", "undrain"}, "shutdown": {"stop"}, "down": {"stop"}, "halt": {"stop"}, "poweroff": {"stop"},
	"restart": {"reboot"}, "reset": {"reboot", "powercycle"}, "mv": {"rename", "move"}, "run": {"submit", "start"},
	"cordon": {"drain", "offline"}, "uncordon": {"undrain", "online"}, "disable": {"offline", "drain"}, "enable": {"online", "undrain"},
	"apply": {"apply", "put", "add", "submit"}, "save": {"export"}, "tag": {"add-tags"}, "untag": {"remove-tags"}, "tags": {"list-tags"},
}

// What the words mean.
var (
	lookInFull  = []string{"info", "show", "explain", "list"}
	lookAtState = []string{"info", "status", "stats", "show", "list"}
	lookAtAll   = []string{"list", "search", "info"}
	lookAtLog   = []string{"watch", "info", "status", "list"}
	makeNew     = []string{"add", "create", "put", "submit", "list"}
	takeAway    = []string{"remove", "delete", "cancel"}
	changeIt    = []string{"modify", "change-priority", "replace", "put"}
)

// otherNouns are words of other tools for nouns, and for whole commands.
var otherNouns = map[string]string{
	"vm": "instance", "vms": "instance", "guest": "instance", "domain": "instance", "machine": "instance", "host": "node", "hosts": "node", "hypervisor": "node",
	"rule": "filter", "rules": "filter", "task": "job", "queue": "cluster queue", "ps": "job list", "logs": "job watch", "log": "job watch",
	"user": "manage user", "users": "manage user", "account": "manage user", "project": "manage project", "projects": "manage project",
	"env": "deploy env", "environment": "deploy env", "graph": "deploy graph", "plan": "deploy plan", "image": "os list", "images": "os list",
	"events": "query event", "event": "query event", "history": "query event", "audit": "query event", "status": "top", "stats": "top", "drain": "job drain",
	"events-list": "query event", "flavor": "server create", "shell": "yaql repl", "login": "server list",
}

// looksOnly reports whether a word of otherVerbs is one for looking, in place of which
// nothing that changes something may be offered.
func looksOnly(word string) bool {
	ours := otherVerbs[word]
	for _, look := range [][]string{lookInFull, lookAtState, lookAtAll, lookAtLog} {
		if len(ours) == len(look) && &ours[0] == &look[0] {
			return true
		}
	}
	return slices.Contains([]string{"why", "check", "diff", "preview"}, word)
}

// meant returns the command that was probably meant by words below another one, as
// it is called; empty if none is near.
func (sh *Shell) meant(cmd *cobra.Command, words []string) string {
	word := strings.ToLower(words[0])
	if !cmd.HasParent() {
		if path := sh.meantAtRoot(cmd, word, words[1:]); path != "" {
			return path
		}
	}
	for _, verb := range otherVerbs[word] {
		if c := below(cmd, verb); c != nil {
			return c.CommandPath()
		}
	}
	names := func(yield func(string) bool) {
		for _, c := range cmd.Commands() {
			if c.Hidden || looksOnly(word) && sh.verb(PathOf(c)).Does != Looks && !c.HasSubCommands() {
				continue
			}
			for _, name := range append([]string{c.Name()}, c.Aliases...) {
				if !yield(name) {
					return
				}
			}
		}
	}
	if near := qlang.Suggest(word, names); near != "" {
		return cmd.CommandPath() + " " + near
	}
	return ""
}

// meantAtRoot is meant for words that begin a command line: verbs stand behind their
// noun here, and some nouns have other names.
func (sh *Shell) meantAtRoot(root *cobra.Command, word string, more []string) string {
	verbs := otherVerbs[word]
	if len(verbs) > 0 && len(more) > 0 {
		if noun := nounMeant(root, more[0]); noun != nil {
			if looksOnly(word) && len(more) == 1 {
				verbs = lookAtAll
			}
			for _, verb := range verbs {
				if v := below(noun, verb); v != nil {
					return v.CommandPath()
				}
			}
			return noun.CommandPath()
		}
	}
	if c := below(root, otherNouns[word]); c != nil {
		return c.CommandPath()
	}
	return ""
}

// nounMeant is the noun that a word names: ours, its plural, or another tool's; nil for
// none.
func nounMeant(root *cobra.Command, word string) *cobra.Command {
	word = strings.ToLower(word)
	for _, name := range []string{word, strings.TrimSuffix(word, "s"), otherNouns[word]} {
		if c := below(root, name); c != nil && c.HasSubCommands() {
			return c
		}
	}
	return nil
}

// below is the command that a path leads to from another one, nil if there is none.
func below(cmd *cobra.Command, path string) *cobra.Command {
	if path == "" {
		return nil
	}
	for word := range strings.FieldsSeq(path) {
		at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
		if at < 0 {
			return nil
		}
		cmd = cmd.Commands()[at]
	}
	return cmd
}

// otherOptions are words of other tools for options.
var otherOptions = map[string]string{
	"json": "--output json", "yaml": "--output yaml", "csv": "--output csv", "format": "--output", "o": "--output", "force": "--yes", "y": "--yes", "assume-yes": "--yes",
	"selector": "--filter", "where": "--filter", "query": "--filter", "l": "--filter", "order-by": "--sort", "sort-by": "--sort", "columns": "--fields", "field": "--fields",
	"w": "--watch", "follow": "--watch", "quiet": "--no-headers", "q": "--no-headers", "no-header": "--no-headers", "async": "--submit", "no-wait": "--submit", "nowait": "--submit",
	"n": "--dry-run", "what-if": "--dry-run", "socket": "--luxi", "message": "--reason", "m": "--reason", "comment": "--reason", "predicate": "--when", "condition": "--when",
	"host": "--node", "disks": "--disk", "nic": "--net", "memory": "--beparams memory=SIZE", "mem": "--beparams memory=SIZE", "cpus": "--beparams vcpus=N", "vcpus": "--beparams vcpus=N",
}

// WrongOption is the error of an option that cannot be read, with the one that was
// probably meant.
func (sh *Shell) WrongOption(cmd *cobra.Command, err error) error {
	if verbs := cmd.Flags().Args(); cmd.HasSubCommands() && len(verbs) > 0 {
		return sh.NeedsCommand(cmd, verbs) // the option belongs to a command that is not there
	}
	text, _, _ := strings.Cut(err.Error(), ": strconv.") // behind it is how the value was read
	wrong := &ExitError{Status: ExitUsage, Err: errors.New(text)}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok && !sh.Classic() {
		wrong.Err = fault.New(fault.Invalid, "--%s needs a value", bare.GetFlag().Name).WithHint("%s", valueOf(bare.GetFlag()))
		return wrong
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok && !sh.Classic() {
		wrong.Err = fault.New(fault.Invalid, "--%s does not take %q", bad.GetFlag().Name, bad.GetValue()).WithHint("%s", valueOf(bad.GetFlag()))
		return wrong
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || sh.Classic() {
		return wrong
	}
	f := fault.New(fault.Invalid, "%s has no option --%s", cmd.CommandPath(), unknown.GetSpecifiedName())
	if unknown.GetSpecifiedShortnames() != "" {
		f = fault.New(fault.Invalid, "%s has no option -%s", cmd.CommandPath(), unknown.GetSpecifiedName())
	}
	wrong.Err = f.WithHint("%s --help lists them", cmd.CommandPath())
	if near := optionMeant(cmd, unknown.GetSpecifiedName()); near != "" {
		wrong.Err = f.WithHint("did you mean %s?", near)
	}
	return wrong
}

// valueOf says which values an option takes.
func valueOf(f *pflag.Flag) string {
	word, usage := pflag.UnquoteUsage(f)
	return fmt.Sprintf("--%s %s: %s", f.Name, cmp.Or(valueWords[f.Value.Type()], word), usage)
}

// valueWords are words for the kinds of values of options.
var valueWords = map[string]string{"string": "TEXT", "int": "NUMBER", "duration": "90s|5m|1h30m", "bool": "yes|no"}

// optionMeant is the option that was probably meant, empty if none is near.
func optionMeant(cmd *cobra.Command, name string) string {
	allowed := heeded(cmd)
	takes := func(f *pflag.Flag) bool {
		return f != nil && !f.Hidden && (cmd.InheritedFlags().Lookup(f.Name) == nil || slices.Contains(allowed, f.Name))
	}
	if other := otherOptions[strings.ToLower(name)]; other != "" {
		option, _, _ := strings.Cut(strings.TrimPrefix(other, "--"), " ")
		if takes(cmd.Flags().Lookup(option)) {
			return other
		}
	}
	if len(name) < 2 {
		return ""
	}
	near := qlang.Suggest(name, func(yield func(string) bool) {
		more := true
		cmd.Flags().VisitAll(func(f *pflag.Flag) { more = more && (!takes(f) || yield(f.Name)) })
	})
	if near == "" {
		return ""
	}
	return "--" + near
}

// CheckOptions refuses a command line that lacks a required option, or that gives a
// truth value behind an option which takes none there: it would be read as an
// argument.
func (sh *Shell) CheckOptions(cmd *cobra.Command) error {
	if err := cmd.ValidateRequiredFlags(); err != nil {
		var missing []string
		for _, m := range quotedWord.FindAllStringSubmatch(err.Error(), -1) {
			missing = append(missing, "--"+m[1])
		}
		return Usage("%s: %s must be given", cmd.CommandPath(), strings.Join(missing, " and "))
	}
	if err := cmd.ValidateFlagGroups(); err != nil {
		return Usage("%s: %w", cmd.CommandPath(), err)
	}
	if sh.Classic() {
		return nil
	}
	for i := 1; i < len(sh.args); i++ {
		name, long := strings.CutPrefix(sh.args[i-1], "--")
		f := cmd.Flags().Lookup(name)
		if sh.args[i-1] == "--" {
			break
		}
		if long && f != nil && f.NoOptDefVal != "" && truthWords[strings.ToLower(sh.args[i])] {
			return &ExitError{Status: ExitUsage, Err: fault.New(fault.Invalid, "--%s takes no value behind a blank: %q would be an argument", name, sh.args[i]).
				WithHint("write --%s=%s", name, sh.args[i])}
		}
	}
	return nil
}

var quotedWord = regexp.MustCompile(`"([^"]+)"`)

// truthWords are the words that nobody means as a name behind an option.
var truthWords = map[string]bool{"yes": true, "no": true, "true": true, "false": true, "on": true, "off": true}

// Help shows the help of the command that words name.
func (sh *Shell) Help(root *cobra.Command, words []string) error {
	cmd := root
	for i, word := range words {
		next := below(cmd, word)
		if next == nil {
			if !cmd.HasSubCommands() { // what follows are its arguments
				break
			}
			return sh.NeedsCommand(cmd, words[i:])
		}
		cmd = next
	}
	return cmd.Help()
}

// noCommand is the error of words that name no command.
func (sh *Shell) noCommand(cmd *cobra.Command, words []string) error {
	f := fault.New(fault.Invalid, "%s has no command %q", cmd.CommandPath(), words[0])
	if near := sh.meant(cmd, words); near != "" {
		return &ExitError{Status: ExitUsage, Err: f.WithHint("did you mean %s?", near)}
	}
	return &ExitError{Status: ExitUsage, Err: f.WithHint("%s --help lists them", cmd.CommandPath())}
}
