package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
)

const manageTagsHelp = `List and change the tags of servers in the name of the operator: those of the
namespace system, which users neither see nor change, or with --namespace user
those of the users. Servers are named by name, id or instance. These commands speak to the
controller itself, not to the Compute API.`

// manageTags is about the tags of servers, as operators see them.
func manageTags(sh *shell.Shell) *cobra.Command {
	var namespace string
	// verb is a command about one server and the tags on its command line.
	verb := func(use, short string, args cobra.PositionalArgs, do func(ctx context.Context, id string, tags []string) error) *cobra.Command {
		cmd := shell.Heeding(shell.Asking, &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			if namespace != "system" && namespace != "user" {
				return shell.Usage("--namespace must be system or user, not %q", namespace)
			}
			id, err := servers.IDOf(cmd.Context(), sh, args[0])
			if err == nil {
				err = tellUnmatched(cmd.Context(), sh, id)
			}
			if err != nil {
				return err
			}
			return do(cmd.Context(), id, args[1:])
		}})
		cmd.Flags().StringVar(&namespace, "namespace", "system", "whose tags: system or user")
		return cmd
	}
	change := func(what string, tell bool) func(context.Context, string, []string) error {
		return func(ctx context.Context, id string, tags []string) error {
			if tell && len(tags) == 0 {
				if err := sh.Sure("manage server-tags replace", id); err != nil {
					return err
				}
			}
			now := []string{}
			err := sh.Ask(ctx, "ChangeServerTags", &now, id, namespace, what, append([]string{}, tags...))
			if err != nil || !tell {
				return err
			}
			return servers.ShowTags(sh, now)
		}
	}
	c := sh.Group("server-tags", "Tags of servers in the name of the operator",
		verb("list SERVER", "List the tags of a server, with their statuses", shell.Exactly(1), func(ctx context.Context, id string, _ []string) error {
			return listOperatorTags(ctx, sh, id, namespace)
		}),
		verb("add SERVER TAG...", "Add tags to a server: all of them or none", shell.AtLeast(2), change("add", false)),
		verb("delete SERVER TAG...", "Remove tags from a server", shell.AtLeast(2), change("delete", false)),
		verb("replace SERVER [TAG...]", "Make tags all that a server has in the namespace", shell.AtLeast(1), change("replace", true)),
		verb("clear SERVER", "Remove all tags of the namespace from a server", shell.Exactly(1), change("replace", false)))
	c.Long = manageTagsHelp
	return c
}

// tellUnmatched says of a server that nothing reaches its instance until somebody says which it is.
func tellUnmatched(ctx context.Context, sh *shell.Shell, id string) error {
	rows, err := servers.Values(ctx, sh, "server", []string{"fault"}, []any{"&", []any{"=", "id", id}, []any{"?", "unmatched"}})
	if err == nil && len(rows) > 0 {
		sh.Notef("%s: %s (drover server match)\n", id, rows[0][0])
	}
	return err
}

func listOperatorTags(ctx context.Context, sh *shell.Shell, id, namespace string) error {
	rows, err := servers.Values(ctx, sh, "server-tag", []string{"tag", "status", "raw"}, []any{"&", []any{"=", "server", id}, []any{"=", "namespace", namespace}})
	if err != nil {
		return err
	}
	type tag struct {
		Tag    string `json:"tag"`
		Status string `json:"status"`
		Raw    string `json:"raw"`
	}
	tags := make([]tag, len(rows))
	t := &shell.Table{}
	t.Add("Tag", "Status", "On the cluster")
	for i, row := range rows {
		tags[i] = tag{row[0], row[1], row[2]}
		t.Add(row...)
	}
	return sh.Show(tags, func() error { return sh.Printf("%s", t) })
}
