package cli

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

const manageHelp = `Administer the accounts of the Compute API. Whoever does needs the role admin; the
cloud and the account are found as by drover server. Tags of servers are
administered at the controller itself.`

func manageCommand(sh *shell) *cobra.Command {
	c := sh.group("manage", "Administer the accounts of the Compute API, and tags of servers", manageUser(sh), manageProject(sh), manageTags(sh))
	c.Long = manageHelp
	return c
}

// managing is a command of an administrator.
func (sh *shell) managing(use, short string, args cobra.PositionalArgs, do func(context.Context, *openstack.Client, []string) error) *cobra.Command {
	return heeding(asUser, &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		cloud, err := sh.cloud(cmd.Context())
		if err != nil {
			return err
		}
		return do(cmd.Context(), cloud, args)
	}})
}

func manageProject(sh *shell) *cobra.Command {
	var description string
	add := sh.managing("add NAME", "Make a project", exactly(1), func(ctx context.Context, cloud *openstack.Client, args []string) error {
		p, err := cloud.AddProject(ctx, args[0], description)
		if err != nil {
			return err
		}
		return sh.show(p, func() error { return sh.printf("%s\n", p.ID) })
	})
	add.Flags().StringVar(&description, "description", "", "what it is for")
	return sh.group("project", "Projects, which own servers",
		sh.managing("list", "List all projects", exactly(0), func(ctx context.Context, cloud *openstack.Client, _ []string) error {
			all, err := cloud.Projects(ctx)
			if err != nil {
				return err
			}
			return sh.show(all, func() error {
				t := &table{}
				t.add("ID", "Name", "Description")
				for _, p := range all {
					t.add(p.ID, p.Name, p.Description)
				}
				return sh.printf("%s", t)
			})
		}),
		add,
		sh.managing("remove PROJECT", "Remove a project", exactly(1), func(ctx context.Context, cloud *openstack.Client, args []string) error {
			p, err := cloud.FindProject(ctx, args[0])
			if err != nil {
				return err
			}
			return cloud.RemoveProject(ctx, p.ID)
		}))
}

func manageUser(sh *shell) *cobra.Command {
	// one is a command about one user.
	one := func(use, short string, args cobra.PositionalArgs, do func(context.Context, *openstack.Client, openstack.User, []string) error) *cobra.Command {
		return sh.managing(use, short, args, func(ctx context.Context, cloud *openstack.Client, args []string) error {
			u, err := cloud.FindUser(ctx, args[0])
			if err != nil {
				return err
			}
			return do(ctx, cloud, u, args[1:])
		})
	}
	enable := func(yes bool) func(context.Context, *openstack.Client, openstack.User, []string) error {
		return func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			_, err := cloud.EditUser(ctx, u.ID, map[string]any{"enabled": yes})
			return err
		}
	}
	role := func(has bool) func(context.Context, *openstack.Client, openstack.User, []string) error {
		return func(ctx context.Context, cloud *openstack.Client, u openstack.User, args []string) error {
			p, err := cloud.FindProject(ctx, args[0])
			if err != nil {
				return err
			}
			return cloud.SetRole(ctx, u.ID, p.ID, args[1], has)
		}
	}
	var read bool
	password := one("password USER", "Give a user another password, which ends all sessions", exactly(1),
		func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			return sh.setPassword(ctx, cloud, u, read)
		})
	return sh.group("user", "Users, who log in to projects",
		sh.managing("list", "List all users", exactly(0), sh.listUsers),
		one("show USER", "Show a user with roles", exactly(1), sh.showUser),
		userAdd(sh), passwordFlag(password, &read),
		one("remove USER", "Remove a user with all sessions", exactly(1), func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			return cloud.RemoveUser(ctx, u.ID)
		}),
		one("enable USER", "Let a user log in", exactly(1), enable(true)),
		one("disable USER", "Let a user log in no more, and end all sessions", exactly(1), enable(false)),
		one("grant USER PROJECT ROLE", "Give a user a role in a project: member, reader or admin", exactly(3), role(true)),
		one("revoke USER PROJECT ROLE", "Take a role in a project from a user", exactly(3), role(false)))
}

func (sh *shell) listUsers(ctx context.Context, cloud *openstack.Client, _ []string) error {
	all, err := cloud.Users(ctx)
	if err != nil {
		return err
	}
	return sh.show(all, func() error {
		t := &table{}
		t.add("ID", "Name", "Enabled")
		for _, u := range all {
			t.add(u.ID, u.Name, strconv.FormatBool(u.Enabled))
		}
		return sh.printf("%s", t)
	})
}

func (sh *shell) showUser(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
	roles, err := cloud.Roles(ctx, u.ID)
	if err != nil {
		return err
	}
	projects, err := cloud.Projects(ctx)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, p := range projects {
		names[p.ID] = p.Name
	}
	type shown struct {
		openstack.User
		Roles map[string][]string `json:"roles"`
	}
	out := shown{u, map[string][]string{}}
	for _, r := range roles {
		name := cmp.Or(names[r.Project], r.Project)
		out.Roles[name] = append(out.Roles[name], r.Role)
	}
	return sh.show(out, func() error {
		t := &table{}
		t.add("ID:", u.ID)
		t.add("Name:", u.Name)
		t.add("Enabled:", strconv.FormatBool(u.Enabled))
		for _, p := range projects {
			if has := out.Roles[p.Name]; has != nil {
				t.add("Roles in "+p.Name+":", strings.Join(has, ", "))
			}
		}
		return sh.printf("%s", t)
	})
}

func passwordFlag(cmd *cobra.Command, read *bool) *cobra.Command {
	cmd.Flags().BoolVar(read, "password-stdin", false, "read the password from standard input; else a random one is made and shown")
	return cmd
}

// newPassword reads a password, or makes one; made tells which.
func (sh *shell) newPassword(read bool) (password string, made bool, err error) {
	if !read {
		return strings.ToLower(rand.Text()), true, nil
	}
	line, err := bufio.NewReader(sh.in).ReadString('\n')
	if password = strings.TrimRight(line, "\r\n"); password == "" {
		return "", false, fault.New(fault.Invalid, "there is no password on standard input: %w", err)
	}
	return password, false, nil
}

// tellPassword shows what a user has to know to log in.
func (sh *shell) tellPassword(u openstack.User, password string, made bool) error {
	out := map[string]string{"id": u.ID, "name": u.Name}
	if made {
		out["password"] = password
	}
	return sh.show(out, func() error {
		if !made {
			return nil
		}
		return sh.printf("%s\n", password)
	})
}

func (sh *shell) setPassword(ctx context.Context, cloud *openstack.Client, u openstack.User, read bool) error {
	password, made, err := sh.newPassword(read)
	if err != nil {
		return err
	}
	if _, err := cloud.EditUser(ctx, u.ID, map[string]any{"password": password}); err != nil {
		return err
	}
	return sh.tellPassword(u, password, made)
}

func userAdd(sh *shell) *cobra.Command {
	var project string
	var roles []string
	var read bool
	cmd := sh.managing("add NAME", "Make a user", exactly(1), func(ctx context.Context, cloud *openstack.Client, args []string) error {
		password, made, err := sh.newPassword(read)
		if err != nil {
			return err
		}
		var home openstack.Project
		if project != "" {
			if home, err = cloud.FindProject(ctx, project); err != nil {
				return err
			}
		}
		u, err := cloud.AddUser(ctx, args[0], password)
		if err != nil {
			return err
		}
		for _, role := range roles {
			if home.ID == "" {
				break
			}
			if err := cloud.SetRole(ctx, u.ID, home.ID, role, true); err != nil {
				return err
			}
		}
		return sh.tellPassword(u, password, made)
	})
	cmd.Flags().StringVar(&project, "project", "", "project to work in")
	cmd.Flags().StringSliceVar(&roles, "role", []string{"member"}, "roles there: member, reader, admin")
	return passwordFlag(cmd, &read)
}
