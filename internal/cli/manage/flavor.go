package manage

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

const manageFlavorHelp = `Keep the flavors: the sizes that users of the Compute API make servers in. A cluster
begins with a few (m1.tiny, ...), which can be removed like all others.

A flavor never changes in size. Servers keep the size that they were made in, so a
flavor may be removed while servers have it. Flavors are named by name or id. These
commands speak to the controller itself, not to the Compute API; there administrators
have the same by openstack flavor create, set, unset and delete.`

// manageFlavor is about the sizes of servers.
func manageFlavor(sh *shell.Shell) *cobra.Command {
	c := sh.Group("flavor", "The sizes that servers can be made in",
		shell.Heeding(shell.Asking, &cobra.Command{Use: "list", Short: "List all flavors", Args: shell.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return listFlavors(cmd.Context(), sh)
		}}),
		shell.Heeding(shell.Asking, &cobra.Command{Use: "show FLAVOR", Short: "Show one flavor", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			return showFlavor(cmd.Context(), sh, args[0])
		}}),
		flavorAdd(sh), flavorModify(sh), flavorRemove(sh),
		flavorAccess(sh, "grant FLAVOR PROJECT...", "Let the users of projects choose a private flavor", func(e *edit) *[]string { return &e.Grant }),
		flavorAccess(sh, "revoke FLAVOR PROJECT...", "Let the users of projects choose a private flavor no more", func(e *edit) *[]string { return &e.Revoke }))
	c.Long = manageFlavorHelp
	return c
}

// flavor is a size of servers, as the controller has it.
type flavor struct {
	ID          string   `json:"id,omitempty"`
	Name        string   `json:"name"`
	VCPUs       int64    `json:"vcpus"`
	RAM         int64    `json:"ram"`
	Disk        int64    `json:"disk"`
	Description string   `json:"description,omitempty"`
	Private     bool     `json:"private,omitempty"`
	Projects    []string `json:"projects,omitempty"`
}

// edit is what changes of one.
type edit struct {
	Description *string  `json:"description,omitempty"`
	Grant       []string `json:"grant,omitempty"`
	Revoke      []string `json:"revoke,omitempty"`
}

// whose tells who may choose it.
func (f *flavor) whose() string {
	switch n := len(f.Projects); {
	case !f.Private:
		return "all projects"
	case n == 0:
		return "administrators"
	case n == 1:
		return "1 project"
	default:
		return strconv.Itoa(n) + " projects"
	}
}

// flavors asks for all.
func flavors(ctx context.Context, sh *shell.Shell) (all []flavor, err error) {
	err = sh.Ask(ctx, "QueryFlavors", &all)
	return all, err
}

func listFlavors(ctx context.Context, sh *shell.Shell) error {
	all, err := flavors(ctx, sh)
	if err != nil {
		return err
	}
	return sh.Show(all, func() error {
		t := &shell.Table{}
		t.Add("ID", "Name", "VCPUs", "RAM (MiB)", "Disk (GiB)", "For")
		for _, f := range all {
			t.Add(f.ID, f.Name, number(f.VCPUs), number(f.RAM), number(f.Disk), f.whose())
		}
		return sh.Printf("%s", t)
	})
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func showFlavor(ctx context.Context, sh *shell.Shell, key string) error {
	all, err := flavors(ctx, sh)
	if err != nil {
		return err
	}
	var found *flavor
	for i := range all { // ids come first
		if f := &all[i]; f.ID == key || f.Name == key && found == nil {
			if found = f; f.ID == key {
				break
			}
		}
	}
	if found == nil {
		return fault.New(fault.NotFound, "there is no flavor %q", fault.Clip(key, 100)).WithHint("drover manage flavor list")
	}
	return tellFlavor(ctx, sh, found)
}

// tellFlavor shows one, with the names of projects where the controller keeps those.
func tellFlavor(ctx context.Context, sh *shell.Shell, f *flavor) error {
	return sh.Show(f, func() error {
		t := &shell.Table{}
		for _, row := range [][2]string{{"ID:", f.ID}, {"Name:", f.Name}, {"VCPUs:", number(f.VCPUs)}, {"RAM:", number(f.RAM) + " MiB"}, {"Disk:", number(f.Disk) + " GiB"},
			{"Description:", cmp.Or(f.Description, "-")}, {"For:", f.whose()}} {
			t.Add(row[0], row[1])
		}
		for _, id := range f.Projects {
			t.Add("Project:", cmp.Or(openstack.Over(overSocket{sh}).ProjectName(ctx, id), id))
		}
		return sh.Printf("%s", t)
	})
}

// changeFlavors has the controller change one, and shows what became of it: words are what is said of it, done or not.
func changeFlavors(ctx context.Context, sh *shell.Shell, words, method string, args ...any) error {
	var text json.RawMessage
	if err := sh.Do(ctx, method, &text, append(args, sh.Flags.DryRun, sh.UserTrail())...); err != nil {
		return err
	}
	var f flavor
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	return sh.Show(text, func() error {
		if sh.Flags.DryRun {
			words = "would be " + words
		}
		if f.ID == "" { // it is made with the flavor
			return sh.Printf("flavor %s %s\n", f.Name, words)
		}
		return sh.Printf("flavor %s (%s) %s\n", f.Name, f.ID, words)
	})
}

// projects are the ids of projects that are named, where the controller keeps the accounts; else the ids are given.
func projects(ctx context.Context, sh *shell.Shell, named []string) ([]string, error) {
	ids := []string{}
	for _, key := range named {
		p, err := openstack.Over(overSocket{sh}).FindProject(ctx, key)
		if err != nil {
			return nil, err
		}
		ids = append(ids, p.ID)
	}
	return ids, nil
}

func flavorAdd(sh *shell.Shell) *cobra.Command {
	var f flavor
	var named []string
	cmd := &cobra.Command{Use: "add NAME --vcpus N --ram MIB --disk GIB", Short: "Make a flavor", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		f.Name = args[0]
		ids, err := projects(cmd.Context(), sh, named)
		if err != nil {
			return err
		}
		f.Projects, f.Private = ids, f.Private || len(ids) > 0
		return changeFlavors(cmd.Context(), sh, "added", "AddFlavor", &f)
	}}
	flags := cmd.Flags()
	flags.Int64Var(&f.VCPUs, "vcpus", 0, "how many processors")
	flags.Int64Var(&f.RAM, "ram", 0, "memory, in MiB")
	flags.Int64Var(&f.Disk, "disk", 0, "its disk, in GiB; 0 for none")
	flags.StringVar(&f.ID, "id", "", "its id; else one is made")
	flags.StringVar(&f.Description, "description", "", "what it is for")
	flags.BoolVar(&f.Private, "private", false, "chosen by administrators alone, and by the projects that are granted it")
	flags.StringArrayVar(&named, "project", nil, "a project that may choose it, which makes it private; may be repeated")
	for _, name := range []string{"vcpus", "ram", "disk"} {
		_ = cmd.MarkFlagRequired(name) // the option exists
	}
	return shell.Heeding(shell.Changing, cmd)
}

func flavorModify(sh *shell.Shell) *cobra.Command {
	var text string
	cmd := &cobra.Command{Use: "modify FLAVOR --description TEXT", Short: "Change what a flavor is described by", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return changeFlavors(cmd.Context(), sh, "modified", "ModifyFlavor", args[0], edit{Description: &text})
	}}
	cmd.Flags().StringVar(&text, "description", "", "what it is for; empty for nothing")
	_ = cmd.MarkFlagRequired("description") // the option exists
	return shell.Heeding(shell.Changing, cmd)
}

func flavorRemove(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(shell.Changing, &cobra.Command{Use: "remove FLAVOR", Short: "Remove a flavor; servers that have it keep their size", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeFlavors(cmd.Context(), sh, "removed", "RemoveFlavor", args[0])
		}})
}

// flavorAccess is a command that says which projects may choose a private flavor.
func flavorAccess(sh *shell.Shell, use, short string, of func(*edit) *[]string) *cobra.Command {
	verb, _, _ := strings.Cut(use, " ")
	words := map[string]string{"grant": "granted", "revoke": "revoked"}[verb]
	return shell.Heeding(shell.Changing, &cobra.Command{Use: use, Short: short, Args: shell.AtLeast(2), RunE: func(cmd *cobra.Command, args []string) error {
		ids, err := projects(cmd.Context(), sh, args[1:])
		if err != nil {
			return err
		}
		var e edit
		*of(&e) = ids
		return changeFlavors(cmd.Context(), sh, words, "ModifyFlavor", args[0], e)
	}})
}
