package manage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/openstack"
)

func manageProject(sh *shell.Shell) *cobra.Command {
	return sh.Group("project", "Projects, which own servers",
		managing(sh, "list", "List all projects", shell.Exactly(0), func(ctx context.Context, cloud *openstack.Client, _ []string) error {
			return listProjects(ctx, sh, cloud)
		}),
		projectAdd(sh),
		managing(sh, "remove PROJECT", "Remove a project that owns no servers", shell.Exactly(1),
			func(ctx context.Context, cloud *openstack.Client, args []string) error {
				p, err := cloud.FindProject(ctx, args[0])
				if err == nil {
					err = sh.Sure("manage project remove", p.Name)
				}
				if err != nil {
					return err
				}
				return cloud.RemoveProject(ctx, p.ID)
			}))
}

func listProjects(ctx context.Context, sh *shell.Shell, cloud *openstack.Client) error {
	all, err := cloud.Projects(ctx)
	if err != nil {
		return err
	}
	return sh.Show(all, func() error {
		t := &shell.Table{}
		t.Add("ID", "Name", "Description")
		for _, p := range all {
			t.Add(p.ID, p.Name, p.Description)
		}
		return sh.Printf("%s", t)
	})
}

func projectAdd(sh *shell.Shell) *cobra.Command {
	var description string
	cmd := managing(sh, "add NAME", "Make a project", shell.Exactly(1), func(ctx context.Context, cloud *openstack.Client, args []string) error {
		p, err := cloud.AddProject(ctx, args[0], description)
		if err != nil {
			return err
		}
		return sh.Show(p, func() error { return sh.Printf("%s\n", p.ID) })
	})
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	return cmd
}
