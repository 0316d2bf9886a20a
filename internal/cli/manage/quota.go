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

const manageQuotaHelp = `Say how much projects may have over the Compute API: servers, their processors and
memory, key pairs of each user, items of metadata of each server, images that are uploaded
and their files. -1 is no limit, which holds for servers, processors, memory and the files
of images until something else is said.

A project is held by its own limits, and where it has none of something by the default,
which --default names in place of a project. What is over a limit stays; nothing more is
made. These commands speak to the controller itself; over the Compute API administrators
have the same by openstack quota set, show and list.`

// byDefault stands in place of a project for those that have no limits of their own.
const byDefault = "default"

// limit is something that is limited.
type limit struct{ key, flag, title, help string }

// limits are those that are held, in the order in which they are shown.
var limits = []limit{
	{"instances", "instances", "Servers", "how many servers; -1 for no limit"},
	{"cores", "cores", "VCPUs", "processors of all servers together; -1 for no limit"},
	{"ram", "ram", "RAM (MiB)", "memory of all servers together, in MiB; -1 for no limit"},
	{"key_pairs", "key-pairs", "Keys", "key pairs of each user"},
	{"metadata_items", "metadata-items", "Metadata", "items of metadata of each server"},
	{"server_groups", "server-groups", "Groups", "groups of servers"},
	{"server_group_members", "server-group-members", "Each", "servers of each group; -1 for no limit"},
	{"images", "images", "Images", "how many images that users uploaded; -1 for no limit"},
	{"image_gigabytes", "image-gigabytes", "Images (GiB)", "their files together, in GiB; -1 for no limit"},
}

// held is how much a project may have, and has.
type held struct {
	Project string           `json:"project"`
	Name    string           `json:"name,omitempty"`
	Own     map[string]int64 `json:"own"`
	Limits  map[string]int64 `json:"limits"`
	Used    map[string]int64 `json:"used,omitempty"`
}

// cell is a limit as tables show it, with what is used of it.
func (h *held) cell(key string) string {
	text := "-"
	if n := h.Limits[key]; n >= 0 {
		text = number(n)
	}
	if used, counted := h.Used[key]; counted {
		text = number(used) + "/" + text
	}
	return text
}

// manageQuota is about how much projects may have.
func manageQuota(sh *shell.Shell) *cobra.Command {
	c := sh.Group("quota", "How much projects may have",
		shell.Heeding(shell.Asking, &cobra.Command{Use: "list", Short: "List the default, and what projects may have and have", Args: shell.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return listQuotas(cmd.Context(), sh)
		}}),
		quotaShow(sh), quotaSet(sh), quotaUnset(sh))
	c.Long = manageQuotaHelp
	return c
}

// quotaCommand is a command about a project, or with --default about those that have no limits of their own.
func quotaCommand(sh *shell.Shell, verb, short string, heeded []string, do func(ctx context.Context, project string) error) *cobra.Command {
	var all bool
	cmd := shell.Heeding(heeded, &cobra.Command{Use: verb + " [PROJECT]", Short: short, Args: cobra.MaximumNArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		if all == (len(args) > 0) {
			return shell.Usage("name a project, or --default for those that have no limits of their own")
		}
		if all {
			return do(cmd.Context(), byDefault)
		}
		id, err := projectID(cmd.Context(), sh, args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), id)
	}})
	cmd.Flags().BoolVar(&all, "default", false, "the projects that have no limits of their own, in place of one")
	return cmd
}

// projectID is the id of a project that is named, where the controller keeps the accounts; else ids are given.
func projectID(ctx context.Context, sh *shell.Shell, named string) (string, error) {
	p, err := openstack.Over(overSocket{sh}).FindProject(ctx, named)
	return p.ID, err
}

// quotas asks for those of projects; of all that there are something to say about if none is named.
func quotas(ctx context.Context, sh *shell.Shell, projects ...string) (all []held, err error) {
	args := []any{}
	if len(projects) > 0 {
		args = append(args, projects)
	}
	if err := sh.Ask(ctx, "QueryQuotas", &all, args...); err != nil {
		return nil, err
	}
	for i := range all {
		if h := &all[i]; h.Project != byDefault {
			h.Name = openstack.Over(overSocket{sh}).ProjectName(ctx, h.Project)
		}
	}
	return all, nil
}

func listQuotas(ctx context.Context, sh *shell.Shell) error {
	all, err := quotas(ctx, sh)
	if err != nil {
		return err
	}
	return sh.Show(all, func() error {
		t := &shell.Table{}
		titles := []string{"Project"}
		for _, l := range limits {
			titles = append(titles, l.title)
		}
		t.Add(titles...)
		for i := range all {
			h := &all[i]
			row := []string{cmp.Or(h.Name, h.Project)}
			for _, l := range limits {
				row = append(row, h.cell(l.key))
			}
			t.Add(row...)
		}
		return sh.Printf("%s", t)
	})
}

func quotaShow(sh *shell.Shell) *cobra.Command {
	return quotaCommand(sh, "show", "Show what a project may have and has, and whose limits those are", shell.Asking, func(ctx context.Context, project string) error {
		all, err := quotas(ctx, sh, project)
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fault.New(fault.Internal, "the controller tells of %d projects", len(all))
		}
		h := &all[0]
		return sh.Show(h, func() error {
			t := &shell.Table{}
			t.Add("Of", "Used/Limit", "Said by")
			for _, l := range limits {
				whose := "the default"
				if _, own := h.Own[l.key]; own {
					whose = cmp.Or(h.Name, h.Project)
				}
				t.Add(l.title, h.cell(l.key), whose)
			}
			return sh.Printf("%s", t)
		})
	})
}

// changeQuota has the controller change limits, and shows what holds then: words are what is said of it, done or not.
func changeQuota(ctx context.Context, sh *shell.Shell, project, words, method string, args ...any) error {
	var text json.RawMessage
	if err := sh.Do(ctx, method, &text, append(args, sh.Flags.DryRun, sh.UserTrail())...); err != nil {
		return err
	}
	h := held{Project: project}
	if err := json.Unmarshal(text, &h.Limits); err != nil {
		return err
	}
	return sh.Show(text, func() error {
		if sh.Flags.DryRun {
			words = "would be " + words
		}
		var now []string
		for _, l := range limits {
			now = append(now, l.flag+" "+h.cell(l.key))
		}
		return sh.Printf("limits %s: %s\n", words, strings.Join(now, ", "))
	})
}

func quotaSet(sh *shell.Shell) *cobra.Command {
	var force bool
	values := map[string]*string{}
	cmd := quotaCommand(sh, "set", "Say how much a project may have; what is not said stays", shell.Changing, func(ctx context.Context, project string) error {
		wish := map[string]int64{}
		for _, l := range limits {
			if *values[l.key] == "" {
				continue
			}
			n, err := strconv.ParseInt(*values[l.key], 10, 64)
			if err != nil {
				return shell.Usage("--%s must be a number, not %q", l.flag, *values[l.key])
			}
			wish[l.key] = n
		}
		if len(wish) == 0 {
			return shell.Usage("say at least one limit, such as --instances 10")
		}
		return changeQuota(ctx, sh, project, "set", "SetQuota", project, wish, force)
	})
	for _, l := range limits {
		values[l.key] = cmd.Flags().String(l.flag, "", l.help)
	}
	cmd.Flags().BoolVar(&force, "force", false, "also below what the project has: that stays, and nothing more is made")
	return cmd
}

func quotaUnset(sh *shell.Shell) *cobra.Command {
	return quotaCommand(sh, "unset", "Take the limits of a project away: the default holds for it again", shell.Changing, func(ctx context.Context, project string) error {
		return changeQuota(ctx, sh, project, "taken away", "UnsetQuota", project)
	})
}
