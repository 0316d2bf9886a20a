// Package servers is the command "drover server": the servers of the Compute API, as their users see them, and their
// tags.
package servers

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// AsUser are the shared options of commands that speak to the Compute and
// Identity APIs, as any client does.
var AsUser = []string{"output"}

const serverHelp = `Work with the servers of the Compute API, as their users do. The cloud is the one
that OS_CLOUD names in clouds.yaml, else that of OS_AUTH_URL, OS_USERNAME,
OS_PASSWORD and OS_PROJECT_NAME (or an application credential), else the
controller of this machine with its first account. Servers are named by name or
id.`

// Command returns the noun "server".
func Command(sh *shell.Shell) *cobra.Command {
	c := sh.Group("server", "Work with the servers of the Compute API", serverReconcile(sh), serverClusters(sh), shell.Heeding(shell.Changing, serverMatch(sh)))
	c.Long = serverHelp
	c.AddCommand(shell.Heeds(AsUser, serverList(sh), serverShow(sh), serverCreate(sh),
		serverAct(sh, "start", "Start servers", "os-start", nil, "ACTIVE"), serverAct(sh, "stop", "Stop servers", "os-stop", nil, "SHUTOFF"),
		serverUnlock(sh),
		serverReboot(sh), serverRebuild(sh), serverImage(sh), serverResize(sh),
		settleResize(sh, "resize-confirm", "Have servers keep the size that they were given", "confirmResize"),
		settleResize(sh, "resize-revert", "Give servers the size again that they had before", "revertResize"), serverDelete(sh), serverLog(sh), serverTagCommand(sh))...)
	c.AddCommand(shell.Heeding(append([]string{"reason"}, AsUser...), serverLock(sh)))
	words, options := completions(sh)
	shell.CompleteWords(c, words)
	completeOptions(c, options)
	return c
}

func serverList(sh *shell.Shell) *cobra.Command {
	filters := []struct{ name, help string }{
		{"tags", "servers that have all of these tags, separated by commas"}, {"tags-any", "servers that have one of these tags"},
		{"not-tags", "servers that lack one of these tags"}, {"not-tags-any", "servers that have none of these tags"},
		{"name", "servers whose name a regular expression matches"}, {"status", "servers of this status: ACTIVE, SHUTOFF, BUILD, ERROR"},
	}
	cmd := &cobra.Command{Use: "list", Short: "List the servers of the project", Args: shell.Exactly(0)}
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
		cloud, err := Cloud(cmd.Context(), sh)
		if err != nil {
			return err
		}
		servers, err := cloud.Servers(cmd.Context(), query)
		if err != nil {
			return err
		}
		return sh.Show(servers, func() error {
			t := &shell.Table{}
			t.Add("ID", "Name", "Status", "Flavor", "Tags")
			for _, s := range servers {
				t.Add(s.ID, s.Name, s.Status, cmp.Or(s.Flavor.Original, s.Flavor.ID), strings.Join(s.Tags, ", "))
			}
			return sh.Printf("%s", t)
		})
	}
	return cmd
}

// showServer shows one server, with names beside ids.
func showServer(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, s *openstack.Server) error {
	return sh.Show(s, func() error {
		t := &shell.Table{}
		for _, row := range [][2]string{
			{"ID:", s.ID}, {"Name:", s.Name}, {"Status:", s.Status}, {"Flavor:", cmp.Or(s.Flavor.Original, s.Flavor.ID)}, {"Image:", withName(imageName(ctx, cloud, s.Image.ID), s.Image.ID)},
			{"Project:", withName(cloud.ProjectName(ctx, s.Project), s.Project)}, {"User:", withName(cloud.UserName(ctx, s.User), s.User)},
			{"Created:", s.Created}, {"Updated:", s.Updated}, {"Tags:", strings.Join(s.Tags, ", ")},
		} {
			t.Add(row[0], row[1])
		}
		for _, group := range s.Groups {
			t.Add("Group:", group)
		}
		for _, network := range slices.Sorted(maps.Keys(s.Addresses)) {
			for _, a := range s.Addresses[network] {
				t.Add("Address:", a.IP+" ("+network+")")
			}
		}
		if s.KeyName != nil {
			t.Add("Key:", *s.KeyName)
		}
		if s.Task != nil {
			t.Add("Being done:", *s.Task)
		}
		if s.Locked {
			t.Add("Locked:", lockOf(s))
		}
		if s.Fault != nil {
			t.Add("Fault:", s.Fault.Message)
		}
		return sh.Printf("%s", t)
	})
}

// lockOf tells of the lock of a server, with its reason if there is one.
func lockOf(s *openstack.Server) string {
	if s.LockReason != nil {
		return "yes: " + *s.LockReason
	}
	return "yes"
}

// withName is a name with the id that it stands for; the id alone where there is none.
func withName(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// imageName is the name of an image; empty where the cloud does not tell.
func imageName(ctx context.Context, cloud *openstack.Client, id string) string {
	images, err := cloud.Images(ctx)
	if err != nil {
		return ""
	}
	for _, i := range images {
		if i.ID == id {
			return i.Name
		}
	}
	return ""
}

func serverShow(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{Use: "show SERVER", Short: "Show one server", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		cloud, s, err := findServer(cmd.Context(), sh, args[0])
		if err != nil {
			return err
		}
		return showServer(cmd.Context(), sh, cloud, &s)
	}}
}

func serverLog(sh *shell.Shell) *cobra.Command {
	lines := -1
	cmd := &cobra.Command{Use: "log SERVER", Short: "Show what a server printed on its serial line", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		if cmd.Flag("lines").Changed && lines < 0 {
			return shell.Usage("--lines must not be negative")
		}
		cloud, s, err := findServer(cmd.Context(), sh, args[0])
		if err != nil {
			return err
		}
		text, err := cloud.Printed(cmd.Context(), s.ID, lines)
		if err != nil {
			return err
		}
		return sh.Show(map[string]any{"server": s.ID, "text": text}, func() error { return sh.Printf("%s", text) })
	}}
	cmd.Long = `log shows what a server printed on its serial line last: up to 64 KiB, also when it
does not run any more. Colours and movements of the cursor are left out.`
	cmd.Flags().IntVar(&lines, "lines", -1, "no more than so many lines, the last ones")
	return cmd
}

// findServer logs in and finds a server.
func findServer(ctx context.Context, sh *shell.Shell, key string) (*openstack.Client, openstack.Server, error) {
	cloud, err := Cloud(ctx, sh)
	if err != nil {
		return nil, openstack.Server{}, err
	}
	s, err := cloud.FindServer(ctx, key)
	return cloud, s, err
}

func serverCreate(sh *shell.Shell) *cobra.Command {
	var w openstack.Wish
	var wait bool
	var nics []string
	var userData string
	cmd := &cobra.Command{Use: "create NAME --flavor FLAVOR --image IMAGE", Short: "Make a server", Args: shell.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		w.Name = args[0]
		for _, nic := range nics {
			network, ip, _ := strings.Cut(nic, "=")
			w.NICs = append(w.NICs, openstack.NIC{Network: network, IP: ip})
		}
		if userData != "" {
			text, err := shell.TextOf(sh.In, userData)
			if err != nil {
				return err
			}
			w.UserData = text
		}
		cloud, err := Cloud(cmd.Context(), sh)
		if err != nil {
			return err
		}
		id, err := cloud.Create(cmd.Context(), &w)
		if err != nil {
			return err
		}
		s, err := cloud.Server(cmd.Context(), id)
		if err == nil && wait {
			s, err = AwaitServer(cmd.Context(), cloud, id, "ACTIVE")
		}
		if err != nil {
			return err
		}
		return showServer(cmd.Context(), sh, cloud, &s)
	}}
	f := cmd.Flags()
	f.StringVar(&w.Flavor, "flavor", "", "name or id of its size")
	f.StringVar(&w.Image, "image", "", "name or id of what it is made from")
	f.StringVar(&w.Zone, "availability-zone", "", "where it is made: the name of a cluster")
	f.BoolVar(&w.Network, "network", false, "with a network interface, as the cluster has them")
	f.StringArrayVar(&nics, "nic", nil, "with an interface in this network: NETWORK, at a free address, or NETWORK=ADDRESS; may be repeated")
	f.StringVar(&w.Key, "key-name", "", "name of the key pair whose owner may log in")
	f.StringVar(&userData, "user-data", "", "file with what the machine does at its first start: #cloud-config or a script; - is the standard input")
	cmd.MarkFlagsMutuallyExclusive("network", "nic")
	f.StringArrayVar(&w.Tags, "tag", nil, "a tag; may be repeated")
	f.StringToStringVar(&w.Metadata, "property", nil, "metadata: KEY=VALUE; may be repeated")
	f.BoolVar(&wait, "wait", false, "wait until it runs")
	for _, name := range []string{"flavor", "image"} {
		_ = cmd.MarkFlagRequired(name) // the option exists
	}
	return cmd
}

// betweenLooks is how long it is waited before it is looked again what became of a server.
var betweenLooks = backoff.Pauses{First: 50 * time.Millisecond, Longest: 2 * time.Second}

// AwaitServer waits until a server has a status, and nothing is being done to
// it. A server that goes into error ends the wait.
func AwaitServer(ctx context.Context, cloud *openstack.Client, id, status string) (openstack.Server, error) {
	return lookUntil(ctx, cloud, id, func(s *openstack.Server) (bool, error) {
		switch {
		case s.Status == status && s.Task == nil:
			return true, nil
		case s.Status == "ERROR" && s.Fault != nil:
			return false, fault.New(fault.Failed, "the server %s is in error: %s", s.Name, s.Fault.Message)
		case s.Task == nil && s.Status != "BUILD":
			return false, fault.New(fault.Failed, "the server %s is %s, and nothing is being done to it", s.Name, s.Status)
		}
		return false, nil
	})
}

// lookUntil looks at a server until it is as is waited for, or never will be.
func lookUntil(ctx context.Context, cloud *openstack.Client, id string, over func(*openstack.Server) (bool, error)) (openstack.Server, error) {
	for looked := 1; ; looked++ {
		s, err := cloud.Server(ctx, id)
		if err != nil {
			return s, err
		}
		if is, err := over(&s); is || err != nil {
			return s, err
		}
		if err := PauseFor(ctx, betweenLooks.After(looked)); err != nil {
			return s, err
		}
	}
}

// PauseFor waits, unless ctx ends before.
func PauseFor(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

// eachServer does something to servers, one after the other, and goes on behind
// one that fails.
func eachServer(ctx context.Context, sh *shell.Shell, keys []string, do func(*openstack.Client, openstack.Server) error) error {
	cloud, err := Cloud(ctx, sh)
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
				sh.Notef("%s\n", sh.ErrorText(last))
			}
			last = err
		}
	}
	return last
}

// serverAct is a command that has something done to servers.
func serverAct(sh *shell.Shell, verb, short, action string, argument any, then string) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: verb + " SERVER...", Short: short, Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return actOn(cmd.Context(), sh, args, action, argument, then, wait)
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is done")
	return cmd
}

func actOn(ctx context.Context, sh *shell.Shell, keys []string, action string, argument any, then string, wait bool) error {
	return eachServer(ctx, sh, keys, func(cloud *openstack.Client, s openstack.Server) error {
		err := cloud.Act(ctx, s.ID, action, argument)
		if err == nil && wait {
			_, err = AwaitServer(ctx, cloud, s.ID, then)
		}
		return err
	})
}

const lockHelp = `A locked server is neither started, stopped, rebooted nor deleted, and keeps its
metadata. Who may change it may take the lock away, but for an operator's.`

// serverLock is a command that locks servers.
func serverLock(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{Use: "lock SERVER...", Short: "Keep servers from being changed, until they are unlocked", Long: lockHelp, Args: shell.AtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var why any
			if sh.Flags.Reason != "" {
				why = map[string]string{"locked_reason": sh.Flags.Reason}
			}
			return actOn(cmd.Context(), sh, args, "lock", why, "", false)
		}}
}

// serverUnlock is a command that takes locks of servers away.
func serverUnlock(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{Use: "unlock SERVER...", Short: "Take the locks of servers away", Long: lockHelp, Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return actOn(cmd.Context(), sh, args, "unlock", nil, "", false)
	}}
}

func serverReboot(sh *shell.Shell) *cobra.Command {
	var hard, wait bool
	cmd := &cobra.Command{Use: "reboot SERVER...", Short: "Reboot servers", Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		how := map[bool]string{false: "SOFT", true: "HARD"}[hard]
		return actOn(cmd.Context(), sh, args, "reboot", map[string]string{"type": how}, "ACTIVE", wait)
	}}
	cmd.Flags().BoolVar(&hard, "hard", false, "switch them off and on")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is done")
	return cmd
}

// sizesHelp is what all commands about sizes say.
const sizesHelp = `A server that gets another size has the new memory and processors at once, and begins anew
with them; then resize-confirm keeps that size, and has the disk grow to it, or resize-revert
gives the one of before again. A disk never becomes smaller.`

// serverResize is a command that gives servers another size.
func serverResize(sh *shell.Shell) *cobra.Command {
	var wait bool
	var size string
	cmd := &cobra.Command{Use: "resize SERVER... --flavor FLAVOR", Short: "Give servers another size, to be confirmed", Long: sizesHelp, Args: shell.AtLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cloud, err := Cloud(cmd.Context(), sh)
			if err != nil {
				return err
			}
			to, err := cloud.FindFlavor(cmd.Context(), size)
			if err != nil {
				return err
			}
			return actOn(cmd.Context(), sh, args, "resize", map[string]string{"flavorRef": to.ID}, "VERIFY_RESIZE", wait)
		}}
	cmd.Flags().StringVar(&size, "flavor", "", "name or id of its new size")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until they have it")
	_ = cmd.MarkFlagRequired("flavor") // the option exists
	return cmd
}

// settleResize is a command that ends that servers have two sizes.
func settleResize(sh *shell.Shell, verb, short, action string) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: verb + " SERVER...", Short: short, Long: sizesHelp, Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return eachServer(cmd.Context(), sh, args, func(cloud *openstack.Client, s openstack.Server) error {
			err := cloud.Act(cmd.Context(), s.ID, action, nil)
			if err == nil && wait {
				err = awaitRest(cmd.Context(), cloud, s.ID)
			}
			return err
		})
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until that is done")
	return cmd
}

const rebuildHelp = `rebuild installs an image on the disk of a server, which keeps its id, name and
addresses. What was on the disk is lost. It runs behind it if it ran before, and is in error
where that came to nothing; then it may be rebuilt again.`

// serverRebuild is a command that installs servers anew.
func serverRebuild(sh *shell.Shell) *cobra.Command {
	var wait bool
	var image string
	cmd := &cobra.Command{Use: "rebuild SERVER... --image IMAGE", Short: "Install an image on the disks of servers", Long: rebuildHelp, Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return eachServer(cmd.Context(), sh, args, func(cloud *openstack.Client, s openstack.Server) error {
			of, err := cloud.FindImage(cmd.Context(), image)
			if err == nil {
				err = cloud.Act(cmd.Context(), s.ID, "rebuild", map[string]string{"imageRef": of.ID})
			}
			if err == nil && wait {
				err = awaitRest(cmd.Context(), cloud, s.ID)
			}
			return err
		})
	}}
	cmd.Flags().StringVar(&image, "image", "", "name or id of what they are installed from")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until they are rebuilt")
	_ = cmd.MarkFlagRequired("image") // the option exists
	return cmd
}

// awaitRest waits until nothing is being done to a server: it runs or does not, as before.
func awaitRest(ctx context.Context, cloud *openstack.Client, id string) error {
	_, err := lookUntil(ctx, cloud, id, func(s *openstack.Server) (bool, error) {
		switch {
		case s.Task != nil:
			return false, nil
		case slices.Contains([]string{"ACTIVE", "SHUTOFF"}, s.Status):
			return true, nil
		case s.Status == "ERROR" && s.Fault != nil:
			return false, fault.New(fault.Failed, "the server %s is in error: %s", s.Name, s.Fault.Message)
		}
		return false, fault.New(fault.Failed, "the server %s is %s, and nothing is being done to it", s.Name, s.Status).WithHint("why: openstack server event list %s", s.ID)
	})
	return err
}

func serverDelete(sh *shell.Shell) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: "delete SERVER...", Short: "Delete servers", Args: shell.AtLeast(1), RunE: func(cmd *cobra.Command, args []string) error {
		return eachServer(cmd.Context(), sh, args, func(cloud *openstack.Client, s openstack.Server) error {
			err := cloud.Delete(cmd.Context(), s.ID)
			if err == nil && wait {
				err = AwaitGone(cmd.Context(), cloud, s.ID)
			}
			return err
		})
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until they are gone")
	return cmd
}

// AwaitGone waits until there is no such server any more.
func AwaitGone(ctx context.Context, cloud *openstack.Client, id string) error {
	_, err := lookUntil(ctx, cloud, id, func(s *openstack.Server) (bool, error) {
		if s.Task == nil && slices.Contains([]string{"ACTIVE", "SHUTOFF", "ERROR"}, s.Status) {
			return false, fault.New(fault.Failed, "the server %s is still there, and %s", s.Name, s.Status)
		}
		return false, nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
