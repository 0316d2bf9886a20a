package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// asUser are the shared options of commands that speak to the Compute and
// Identity APIs, as any client does; asUserSure those of commands that ask first.
var (
	asUser     = []string{"output"}
	asUserSure = []string{"output", "yes"}
)

const serverHelp = `Work with the servers of the Compute API, as their users do. The cloud is the one
that OS_CLOUD names in clouds.yaml, else that of OS_AUTH_URL, OS_USERNAME,
OS_PASSWORD and OS_PROJECT_NAME (or an application credential), else the
controller of this machine with its first account. Servers are named by name or
id.`

func serverCommand(sh *shell) *cobra.Command {
	c := sh.group("server", "Work with the servers of the Compute API", serverReconcile(sh))
	c.Long = serverHelp
	c.AddCommand(heeds(asUser, serverList(sh), serverShow(sh), serverCreate(sh),
		serverAct(sh, "start", "Start servers", "os-start", nil, "ACTIVE"), serverAct(sh, "stop", "Stop servers", "os-stop", nil, "SHUTOFF"),
		serverReboot(sh), serverTagCommand(sh))...)
	c.AddCommand(heeding(asUserSure, serverDelete(sh)))
	return c
}

// cloud logs in to the cloud that the environment means.
func (sh *shell) cloud(ctx context.Context) (*openstack.Client, error) {
	c, err := openstack.Find(sh.getenv)
	if fault.Is(err, fault.NotFound) && sh.getenv("OS_CLOUD") == "" {
		if local := sh.localCloud(); local != nil {
			c, err = local, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return openstack.LogIn(ctx, c)
}

// localCloud is the controller of this machine, with the account that its ready
// file tells; nil if there is none.
func (sh *shell) localCloud() *openstack.Cloud {
	path := cmp.Or(sh.getenv("DROVER_READY_FILE"), filepath.Join(DevDataDir(sh.getenv), "ready.json"))
	text, err := os.ReadFile(path)
	var ready struct {
		Identity string `json:"identity"`
		User     string `json:"os_username"`
		Password string `json:"os_password"`
		Project  string `json:"os_project"`
	}
	if err != nil || json.Unmarshal(text, &ready) != nil || ready.Identity == "" || ready.User == "" {
		return nil
	}
	local := &openstack.Cloud{AuthURL: ready.Identity, Username: ready.User, Password: ready.Password, Project: ready.Project}
	own := filepath.Join(filepath.Dir(path), "rapi", "rapi.pem")
	if _, err := os.Stat(own); err == nil && strings.HasPrefix(ready.Identity, "https:") {
		local.Certificate = own // it vouches for itself
	}
	return local
}

func serverList(sh *shell) *cobra.Command {
	filters := []struct{ name, help string }{
		{"tags", "servers that have all of these tags, separated by commas"}, {"tags-any", "servers that have one of these tags"},
		{"not-tags", "servers that lack one of these tags"}, {"not-tags-any", "servers that have none of these tags"},
		{"name", "servers whose name a regular expression matches"}, {"status", "servers of this status: ACTIVE, SHUTOFF, BUILD, ERROR"},
	}
	cmd := &cobra.Command{Use: "list", Short: "List the servers of the project", Args: exactly(0)}
	for _, f := range filters {
		cmd.Flags().String(f.name, "", f.help)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		query := url.Values{}
		for _, f := range filters {
			if flag := cmd.Flags().Lookup(f.name); flag.Changed {
				query.Set(f.name, flag.Value.String())
			}
		}
		cloud, err := sh.cloud(cmd.Context())
		if err != nil {
			return err
		}
		servers, err := cloud.Servers(cmd.Context(), query)
		if err != nil {
			return err
		}
		return sh.show(servers, func() error {
			t := &table{}
			t.add("ID", "Name", "Status", "Flavor", "Tags")
			for _, s := range servers {
				t.add(s.ID, s.Name, s.Status, cmp.Or(s.Flavor.Original, s.Flavor.ID), strings.Join(s.Tags, ", "))
			}
			return sh.printf("%s", t)
		})
	}
	return cmd
}

// showServer shows one server.
func (sh *shell) showServer(s *openstack.Server) error {
	return sh.show(s, func() error {
		t := &table{}
		for _, row := range [][2]string{
			{"ID:", s.ID}, {"Name:", s.Name}, {"Status:", s.Status}, {"Flavor:", cmp.Or(s.Flavor.Original, s.Flavor.ID)}, {"Image:", s.Image.ID},
			{"Project:", s.Project}, {"User:", s.User}, {"Created:", s.Created}, {"Updated:", s.Updated}, {"Tags:", strings.Join(s.Tags, ", ")},
		} {
			t.add(row[0], row[1])
		}
		if s.Task != nil {
			t.add("Being done:", *s.Task)
		}
		if s.Fault != nil {
			t.add("Fault:", s.Fault.Message)
		}
		return sh.printf("%s", t)
	})
}

func serverShow(sh *shell) *cobra.Command {
	return &cobra.Command{Use: "show SERVER", Short: "Show one server", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		_, s, err := sh.findServer(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return sh.showServer(&s)
	}}
}

// findServer logs in and finds a server.
func (sh *shell) findServer(ctx context.Context, key string) (*openstack.Client, openstack.Server, error) {
	cloud, err := sh.cloud(ctx)
	if err != nil {
		return nil, openstack.Server{}, err
	}
	s, err := cloud.FindServer(ctx, key)
	return cloud, s, err
}

func serverCreate(sh *shell) *cobra.Command {
	var w openstack.Wish
	var wait bool
	cmd := &cobra.Command{Use: "create NAME --flavor FLAVOR --image IMAGE", Short: "Make a server", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		w.Name = args[0]
		cloud, err := sh.cloud(cmd.Context())
		if err != nil {
			return err
		}
		id, err := cloud.Create(cmd.Context(), &w)
		if err != nil {
			return err
		}
		s, err := cloud.Server(cmd.Context(), id)
		if err == nil && wait {
			s, err = awaitServer(cmd.Context(), cloud, id, "ACTIVE")
		}
		if err != nil {
			return err
		}
		return sh.showServer(&s)
	}}
	f := cmd.Flags()
	f.StringVar(&w.Flavor, "flavor", "", "name or id of its size")
	f.StringVar(&w.Image, "image", "", "name or id of what it is made from")
	f.StringVar(&w.Zone, "availability-zone", "", "where it is made: the name of a cluster")
	f.BoolVar(&w.Network, "network", false, "with a network interface")
	f.StringArrayVar(&w.Tags, "tag", nil, "a tag; may be repeated")
	f.StringToStringVar(&w.Metadata, "property", nil, "metadata: KEY=VALUE; may be repeated")
	f.BoolVar(&wait, "wait", false, "wait until it runs")
	for _, name := range []string{"flavor", "image"} {
		_ = cmd.MarkFlagRequired(name) // the option exists
	}
	return cmd
}

// awaitServer waits until a server has a status, and nothing is being done to
// it. A server that goes into error ends the wait.
func awaitServer(ctx context.Context, cloud *openstack.Client, id, status string) (openstack.Server, error) {
	const first, longest = 50 * time.Millisecond, 2 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		s, err := cloud.Server(ctx, id)
		switch {
		case err != nil:
			return s, err
		case s.Status == status && s.Task == nil:
			return s, nil
		case s.Status == "ERROR" && s.Fault != nil:
			return s, fault.New(fault.Failed, "the server %s is in error: %s", s.Name, s.Fault.Message)
		case s.Task == nil && s.Status != "BUILD":
			return s, fault.New(fault.Failed, "the server %s is %s, and nothing is being done to it", s.Name, s.Status)
		}
		if err := pauseFor(ctx, pause); err != nil {
			return s, err
		}
	}
}

// pauseFor waits, unless ctx ends before.
func pauseFor(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

// eachServer does something to servers, one after the other, and goes on behind
// one that fails.
func (sh *shell) eachServer(ctx context.Context, keys []string, do func(*openstack.Client, openstack.Server) error) error {
	cloud, err := sh.cloud(ctx)
	if err != nil {
		return err
	}
	var last error
	for _, key := range keys {
		s, err := cloud.FindServer(ctx, key)
		if err == nil {
			err = do(cloud, s)
		}
		if err != nil {
			if last != nil {
				sh.notef("%s\n", sh.errorText(last))
			}
			last = err
		}
	}
	return last
}

// serverAct is a command that has something done to servers.
func serverAct(sh *shell, verb, short, action string, argument any, then string) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: verb + " SERVER...", Short: short, Args: atLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return sh.actOn(cmd.Context(), args, action, argument, then, wait)
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is done")
	return cmd
}

func (sh *shell) actOn(ctx context.Context, keys []string, action string, argument any, then string, wait bool) error {
	return sh.eachServer(ctx, keys, func(cloud *openstack.Client, s openstack.Server) error {
		err := cloud.Act(ctx, s.ID, action, argument)
		if err == nil && wait {
			_, err = awaitServer(ctx, cloud, s.ID, then)
		}
		return err
	})
}

func serverReboot(sh *shell) *cobra.Command {
	var hard, wait bool
	cmd := &cobra.Command{Use: "reboot SERVER...", Short: "Reboot servers", Args: atLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		how := map[bool]string{false: "SOFT", true: "HARD"}[hard]
		return sh.actOn(cmd.Context(), args, "reboot", map[string]string{"type": how}, "ACTIVE", wait)
	}}
	cmd.Flags().BoolVar(&hard, "hard", false, "switch them off and on")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is done")
	return cmd
}

func serverDelete(sh *shell) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: "delete SERVER...", Short: "Delete servers", Args: atLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		if err := sh.confirm("Delete " + strings.Join(args, ", ") + "?"); err != nil {
			return err
		}
		return sh.eachServer(cmd.Context(), args, func(cloud *openstack.Client, s openstack.Server) error {
			err := cloud.Delete(cmd.Context(), s.ID)
			if err == nil && wait {
				err = awaitGone(cmd.Context(), cloud, s.ID)
			}
			return err
		})
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until they are gone")
	return cmd
}

// awaitGone waits until there is no such server any more.
func awaitGone(ctx context.Context, cloud *openstack.Client, id string) error {
	const first, longest = 50 * time.Millisecond, 2 * time.Second
	for pause := first; ; pause = min(2*pause, longest) {
		s, err := cloud.Server(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return nil
		case err != nil:
			return err
		case s.Task == nil && slices.Contains([]string{"ACTIVE", "SHUTOFF", "ERROR"}, s.Status):
			return fault.New(fault.Failed, "the server %s is still there, and %s", s.Name, s.Status)
		}
		if err := pauseFor(ctx, pause); err != nil {
			return err
		}
	}
}
