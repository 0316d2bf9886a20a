package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
)

// osDefinition is an operating system that nodes can install.
type osDefinition struct {
	Name        string      `json:"name"`
	Valid       bool        `json:"valid"`
	Hidden      bool        `json:"hidden"`
	Blacklisted bool        `json:"blacklisted"`
	APIVersions []int       `json:"api_versions"`
	Variants    []string    `json:"variants"`
	Parameters  [][2]string `json:"parameters"`
	Trusted     bool        `json:"trusted"`
}

var osFields = []string{"name", "valid", "hidden", "blacklisted", "api_versions", "variants", "parameters", "trusted"}

// UnmarshalJSON reads the row in the order of osFields. Of a definition that is
// not valid the nodes agree on little: the rest is null.
func (o *osDefinition) UnmarshalJSON(data []byte) error {
	places := []any{&o.Name, &o.Valid, &o.Hidden, &o.Blacklisted, &o.APIVersions, &o.Variants, &o.Parameters, &o.Trusted}
	if err := json.Unmarshal(data, &places); err != nil {
		return fault.New(fault.Internal, "an operating system has an unexpected form: %w", err)
	}
	slices.Sort(o.APIVersions)
	return nil
}

// installable are the names under which it can be installed.
func (o *osDefinition) installable() []string {
	if len(o.Variants) == 0 {
		return []string{o.Name}
	}
	out := make([]string, len(o.Variants))
	for i, v := range o.Variants {
		out[i] = o.Name + "+" + v
	}
	return out
}

func osCommand(sh *shell) *cobra.Command {
	return sh.group("os", "Operating systems that nodes can install",
		heeds(asking, osList(sh), osInfo(sh), osDiagnose(sh))...)
}

// definitions asks all nodes. No job is made of it: a rule would hold that.
func (sh *shell) definitions(cmd *cobra.Command, names []string) ([]osDefinition, error) {
	found := []osDefinition{}
	return found, sh.ask(cmd.Context(), "QueryOSes", &found, nonNil(names), osFields)
}

func osList(sh *shell) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the names under which they can be installed", Args: exactly(0)}
	noHeaders := cmd.Flags().Bool("no-headers", false, "leave out the header line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := sh.definitions(cmd, nil)
		if err != nil {
			return err
		}
		names := installableNames(found)
		return sh.show(names, func() error {
			lines := names
			if !*noHeaders {
				lines = withTitle("Name", names)
			}
			return sh.printf("%s", strings.Join(append(lines, ""), "\n"))
		})
	}
	return cmd
}

// installableNames are the names that may be chosen of all definitions.
func installableNames(found []osDefinition) []string {
	names := []string{}
	for i := range found {
		if o := &found[i]; o.Valid && !o.Hidden && !o.Blacklisted {
			names = append(names, o.installable()...)
		}
	}
	return names
}

// withTitle puts a title before the names, as wide as the longest of them, as
// the classic tool does.
func withTitle(title string, names []string) []string {
	width := len(title)
	for _, n := range names {
		width = max(width, len(n))
	}
	return append([]string{fmt.Sprintf("%-*s", width, title)}, names...)
}

func osInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about them", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := sh.definitions(cmd, args)
			if err != nil {
				return err
			}
			for _, name := range args {
				known := slices.ContainsFunc(found, func(o osDefinition) bool { return o.Name == name })
				if !known && !sh.persona.classic() {
					return fault.New(fault.NotFound, "there is no operating system %s", name)
				}
			}
			return sh.show(found, func() error {
				for i := range found {
					if err := sh.printf("%s\n", found[i].text()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// text is the definition as the classic tool shows it.
func (o *osDefinition) text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s:", o.Name)
	line("  - valid: %s", pythonText(o.Valid))
	line("  - hidden: %s", pythonText(o.Hidden))
	line("  - blacklisted: %s", pythonText(o.Blacklisted))
	line("  - API versions:")
	for _, v := range o.APIVersions {
		line("    - %d", v)
	}
	line("  - variants:")
	for _, v := range o.Variants {
		line("    - %s", v)
	}
	line("  - parameters:")
	for _, p := range o.Parameters {
		line("    - %s: %s", p[0], p[1])
	}
	line("  - trusted: %s", pythonText(o.Trusted))
	return b.String()
}

func backupCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{listCommand(sh, exportList), fieldsCommand(sh, exportList)}
	for _, o := range []operation{
		{verb: "export", short: "Export instances to a node", id: "OP_BACKUP_EXPORT", target: "instance_name", complete: "instance",
			letters: map[string]string{"target_node": "n"}},
		{verb: "remove", short: "Remove the exports of instances", id: "OP_BACKUP_REMOVE", target: "instance_name",
			question: "Remove the exports of %s?"},
	} {
		o.noun = "backup"
		verbs = append(verbs, o.command(sh))
	}
	return sh.group("backup", "Exports of instances", verbs...)
}
