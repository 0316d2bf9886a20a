package manage

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// workOn is what a command about one user does, with the arguments that follow.
type workOn func(ctx context.Context, cloud *openstack.Client, u openstack.User, args []string) error

// aboutUser is a command of an administrator about the user that its first
// argument names.
func aboutUser(sh *shell.Shell, use, short string, args int, do workOn) *cobra.Command {
	return managing(sh, use, short, shell.Exactly(args), func(ctx context.Context, cloud *openstack.Client, args []string) error {
		u, err := cloud.FindUser(ctx, args[0])
		if err != nil {
			return err
		}
		return do(ctx, cloud, u, args[1:])
	})
}

func manageUser(sh *shell.Shell) *cobra.Command {
	c := sh.Group("user", "Users, who log in to projects",
		managing(sh, "list", "List all users", shell.Exactly(0), func(ctx context.Context, cloud *openstack.Client, _ []string) error {
			return listUsers(ctx, sh, cloud)
		}),
		aboutUser(sh, "show USER", "Show a user with roles", 1, func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			return showUser(ctx, sh, cloud, u)
		}),
		userAdd(sh), userPassword(sh),
		aboutUser(sh, "enable USER", "Let a user log in", 1, enable(true)),
		aboutUser(sh, "grant USER PROJECT ROLE", "Give a user a role in a project: member, reader or admin", 3, setRole(true)))
	c.AddCommand(
		aboutUser(sh, "remove USER", "Remove a user with all sessions", 1, func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			if err := sh.Sure("manage user remove", u.Name); err != nil {
				return err
			}
			return cloud.RemoveUser(ctx, u.ID)
		}),
		aboutUser(sh, "disable USER", "Let a user log in no more, and end all sessions", 1, func(ctx context.Context, cloud *openstack.Client, u openstack.User, args []string) error {
			if err := sh.Sure("manage user disable", u.Name); err != nil {
				return err
			}
			return enable(false)(ctx, cloud, u, args)
		}),
		aboutUser(sh, "revoke USER PROJECT ROLE", "Take a role in a project from a user", 3, func(ctx context.Context, cloud *openstack.Client, u openstack.User, args []string) error {
			if err := sh.Sure("manage user revoke", args[1], args[0], u.Name); err != nil {
				return err
			}
			return setRole(false)(ctx, cloud, u, args)
		}))
	return c
}

func enable(yes bool) workOn {
	return func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
		_, err := cloud.EditUser(ctx, u.ID, map[string]any{"enabled": yes})
		return err
	}
}

func setRole(has bool) workOn {
	return func(ctx context.Context, cloud *openstack.Client, u openstack.User, args []string) error {
		p, err := cloud.FindProject(ctx, args[0])
		if err != nil {
			return err
		}
		return cloud.SetRole(ctx, u.ID, p.ID, args[1], has)
	}
}

func userPassword(sh *shell.Shell) *cobra.Command {
	var read bool
	return passwordFlag(aboutUser(sh, "password USER", "Give a user another password, which ends all sessions", 1,
		func(ctx context.Context, cloud *openstack.Client, u openstack.User, _ []string) error {
			return setPassword(ctx, sh, cloud, u, read)
		}), &read)
}

func listUsers(ctx context.Context, sh *shell.Shell, cloud *openstack.Client) error {
	all, err := cloud.Users(ctx)
	if err != nil {
		return err
	}
	return sh.Show(all, func() error {
		t := &shell.Table{}
		t.Add("ID", "Name", "Enabled")
		for _, u := range all {
			t.Add(u.ID, u.Name, strconv.FormatBool(u.Enabled))
		}
		return sh.Printf("%s", t)
	})
}

func showUser(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, u openstack.User) error {
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
	return sh.Show(out, func() error {
		t := &shell.Table{}
		t.Add("ID:", u.ID)
		t.Add("Name:", u.Name)
		t.Add("Enabled:", strconv.FormatBool(u.Enabled))
		for _, p := range projects {
			if has := out.Roles[p.Name]; has != nil {
				t.Add("Roles in "+p.Name+":", strings.Join(has, ", "))
			}
		}
		return sh.Printf("%s", t)
	})
}

func passwordFlag(cmd *cobra.Command, read *bool) *cobra.Command {
	cmd.Flags().BoolVar(read, "password-stdin", false, "read the password from standard input; else a random one is made and shown")
	return cmd
}

// newPassword reads a password, or makes one; made tells which.
func newPassword(sh *shell.Shell, read bool) (password string, made bool, err error) {
	if !read {
		return strings.ToLower(rand.Text()), true, nil
	}
	line, err := bufio.NewReader(sh.In).ReadString('\n')
	if password = strings.TrimRight(line, "\r\n"); password == "" {
		return "", false, fault.New(fault.Invalid, "there is no password on standard input: %w", err)
	}
	return password, false, nil
}

// tellPassword shows what a user has to know to log in.
func tellPassword(sh *shell.Shell, u openstack.User, password string, made bool) error {
	out := map[string]string{"id": u.ID, "name": u.Name}
	if made {
		out["password"] = password
	}
	return sh.Show(out, func() error {
		if !made {
			return nil
		}
		return sh.Printf("%s\n", password)
	})
}

func setPassword(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, u openstack.User, read bool) error {
	password, made, err := newPassword(sh, read)
	if err != nil {
		return err
	}
	if _, err := cloud.EditUser(ctx, u.ID, map[string]any{"password": password}); err != nil {
		return err
	}
	return tellPassword(sh, u, password, made)
}

func userAdd(sh *shell.Shell) *cobra.Command {
	var project string
	var roles []string
	var read bool
	cmd := managing(sh, "add NAME", "Make a user", shell.Exactly(1), func(ctx context.Context, cloud *openstack.Client, args []string) error {
		password, made, err := newPassword(sh, read)
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
		return tellPassword(sh, u, password, made)
	})
	cmd.Flags().StringVar(&project, "project", "", "project to work in")
	cmd.Flags().StringSliceVar(&roles, "role", []string{"member"}, "roles there: member, reader, admin")
	return passwordFlag(cmd, &read)
}
