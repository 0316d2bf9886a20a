package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/openstack"
)

// completions are what the words of the usage lines of "manage" stand for.
func completions(sh *shell.Shell) map[string]cobra.CompletionFunc {
	offer := func(names func(context.Context, *openstack.Client, []string) ([]string, error)) cobra.CompletionFunc {
		return servers.Offering(func(cmd *cobra.Command) (*openstack.Client, error) { return administering(sh, cmd) }, names)
	}
	return map[string]cobra.CompletionFunc{
		"USER": offer(func(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
			found, err := cloud.Users(ctx)
			var out []string
			for _, u := range found {
				out = append(out, u.Name)
			}
			return out, err
		}),
		"PROJECT": offer(func(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
			found, err := cloud.Projects(ctx)
			var out []string
			for _, p := range found {
				out = append(out, p.Name)
			}
			return out, err
		}),
		"FLAVOR": func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			all, err := flavors(cmd.Context(), sh)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, f := range all {
				names = append(names, f.Name)
			}
			return shell.Offer(names, args, typed)
		},
		"ROLE":   cobra.FixedCompletions([]string{"member", "reader", "admin"}, cobra.ShellCompDirectiveNoFileComp),
		"SERVER": lists.CompleteNames(sh, "server", false),
		"TAG": func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			found, err := tagsOf(cmd.Context(), sh, args[0], cmd.Flag("namespace").Value.String())
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return shell.Offer(found, args, typed)
		},
	}
}

// tagsOf are the tags of a server in a namespace.
func tagsOf(ctx context.Context, sh *shell.Shell, server, namespace string) ([]string, error) {
	id, err := servers.IDOf(ctx, sh, server)
	if err != nil {
		return nil, err
	}
	rows, err := servers.Values(ctx, sh, "server-tag", []string{"tag"}, []any{"&", []any{"=", "server", id}, []any{"=", "namespace", namespace}})
	var out []string
	for _, row := range rows {
		out = append(out, row[0])
	}
	return out, err
}
