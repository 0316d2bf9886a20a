// Package inventory holds the commands about what a cluster is made of: cluster, node, group, network, instance, os,
// backup, and the tags of all of them.
package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/jobs"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
)

// ClusterCommand returns the noun "cluster".
func ClusterCommand(sh *shell.Shell) *cobra.Command {
	queue := sh.Group("queue", "The job queue as a whole",
		shell.Heeding(shell.Changing, jobs.Drain(sh, "drain", true)), shell.Heeding(shell.Changing, jobs.Drain(sh, "undrain", false)), jobs.QueueInfo(sh))
	watcher := sh.Group("watcher", "The watcher, which repairs what broke",
		shell.Heeding(shell.Changing, watcherPause(sh)), shell.Heeding(shell.Changing, watcherContinue(sh)), watcherInfo(sh))
	verbs := []*cobra.Command{clusterInfo(sh), clusterMaster(sh), clusterPing(sh), clusterMasters(sh), clusterHealth(sh), clusterFailover(sh), clusterEpo(sh), clusterRenewCrypto(sh), clusterCommand(sh), clusterDestroy(sh), clusterDeactivateAddress(sh), drainController(sh, true), drainController(sh, false), forgetController(sh), clusterVersion(sh), queue, watcher, clusterFormat(sh),
		tagSearch(sh, "cluster", "search-tags"),
		work.Operation{Noun: "cluster", Verb: "modify", Short: "Change the settings of the cluster", ID: "OP_CLUSTER_SET_PARAMS",
			Letters: map[string]string{"beparams": "B", "hvparams": "H", "force": "f", "nicparams": "N", "diskparams": "D", "mac_prefix": "m",
				"candidate_pool_size": "C", "default_iallocator": "I"}}.Command(sh),
		work.Operation{Noun: "cluster", Verb: "rename", Short: "Give the cluster another name", ID: "OP_CLUSTER_RENAME", Places: []string{"name"}}.Command(sh),
		work.Operation{Noun: "cluster", Verb: "verify", Short: "Check the configuration and the nodes", ID: "OP_CLUSTER_VERIFY", Children: &work.Children{Finds: true, Bad: "%d job(s) failed while verifying the cluster."},
			Letters: map[string]string{"verbose": "v", "group_name": "g", "ignore_errors": "I"}}.Command(sh),
		work.Operation{Noun: "cluster", Verb: "redist-conf", Short: "Send the configuration to all nodes again", ID: "OP_CLUSTER_REDIST_CONF"}.Command(sh),
		work.Operation{Noun: "cluster", Verb: "activate-master-ip", Short: "Bring the address of the cluster up where its controller leads", ID: "OP_CLUSTER_ACTIVATE_MASTER_IP"}.Command(sh),
		work.Operation{Noun: "cluster", Verb: "repair-disk-sizes", Short: "Record the sizes of disks as nodes have them", ID: "OP_CLUSTER_REPAIR_DISK_SIZES",
			Rest: "instances", Complete: "instance"}.Command(sh),
	}
	verbs = append(verbs, itemTags(sh, "cluster")...)
	return sh.Group("cluster", "Settings and state of the whole cluster", verbs...)
}

// configValue asks for one of the values that need no job.
func configValue(sh *shell.Shell, cmd *cobra.Command, name string, into any) error {
	var values []json.RawMessage
	if err := sh.Ask(cmd.Context(), "QueryConfigValues", &values, []string{name}); err != nil {
		return err
	}
	if len(values) != 1 {
		return fmt.Errorf("the controller returned %d values instead of 1", len(values))
	}
	return json.Unmarshal(values[0], into)
}

func clusterMaster(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "getmaster", Short: "Show the name of the master node", Args: shell.Exactly(0),
		Long: `getmaster shows the name of the master node. Of a cluster with several
controllers it is the name of the one that leads.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var name string
			var masters []master
			err := sh.Ask(cmd.Context(), "QueryMasters", &masters)
			if fault.Is(err, fault.WrongState) { // it is alone
				err = configValue(sh, cmd, "master_node", &name)
			}
			if err != nil {
				return err
			}
			for _, m := range masters {
				if m.Role == "leader" {
					name = m.Name
				}
			}
			return sh.Show(map[string]string{"master": name}, func() error { return sh.Printf("%s\n", name) })
		},
	}
}

// master is one of the controllers of the cluster.
type master struct {
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	Address  string    `json:"address,omitempty"`
	Revision int64     `json:"revision,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Version  string    `json:"version"`
	// Formats are those of the store that its program knows; nil where a leader of before does not tell.
	Formats *formats `json:"formats,omitempty"`
	// Note says why it cannot lead.
	Note string `json:"note,omitempty"`
}

// formats are those that a program reads and writes.
type formats struct {
	Reads  formatRange `json:"reads"`
	Writes formatRange `json:"writes"`
}

type formatRange struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

func (r formatRange) String() string {
	if r.Oldest == r.Newest {
		return strconv.Itoa(r.Oldest)
	}
	return fmt.Sprintf("%d-%d", r.Oldest, r.Newest)
}

// String is how people read it: what it writes, and what it reads where that is not the same.
func (f *formats) String() string {
	switch {
	case f == nil:
		return "-"
	case f.Reads == f.Writes:
		return f.Writes.String()
	}
	return f.Writes.String() + " (reads " + f.Reads.String() + ")"
}

// onlyMaster is the list of the controllers of a cluster that has one.
func onlyMaster(sh *shell.Shell, cmd *cobra.Command) ([]master, error) {
	m := master{Role: "leader"}
	var info struct {
		Version string `json:"software_version"`
	}
	if err := sh.Ask(cmd.Context(), "QueryClusterInfo", &info); err != nil {
		return nil, err
	}
	m.Version = info.Version
	if f, err := askFormat(sh, cmd); err == nil { // a controller of before does not know the question
		m.Formats = f.Program
	}
	err := configValue(sh, cmd, "master_node", &m.Name)
	return []master{m}, err
}

func clusterMasters(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "masters", Short: "List the controllers of the cluster, and which of them leads", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters := []master{}
			err := sh.Ask(cmd.Context(), "QueryMasters", &masters)
			if fault.Is(err, fault.WrongState) { // it is alone, and so it leads
				masters, err = onlyMaster(sh, cmd)
			}
			if err != nil {
				return err
			}
			return sh.Show(masters, func() error {
				t := &shell.Table{}
				t.Add("Name", "Role", "Address", "Revision", "Formats")
				for _, m := range masters {
					revision := "-"
					if m.Revision > 0 {
						revision = strconv.FormatInt(m.Revision, 10)
					}
					t.Add(m.Name, m.Role, cmp.Or(m.Address, "-"), revision, m.Formats.String())
				}
				return sh.Printf("%s%s", t, notes(masters))
			})
		},
	}
}

// notes are lines of what is to be known of controllers.
func notes(masters []master) string {
	var text strings.Builder
	for _, m := range masters {
		if m.Note != "" {
			text.WriteString(m.Name + ": " + m.Note + "\n")
		}
	}
	return text.String()
}

func clusterFailover(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "master-failover", Short: "Make the controller that is asked the one that leads", Args: shell.Exactly(0),
		Long: `master-failover asks the controller that leads to end its term in good order, and
takes the lead for the controller whose socket is used. To replace a controller
that is dead nothing needs to be done: another takes the lead by itself.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sh.Do(cmd.Context(), "MasterFailover", new(any))
		},
	}
}

func clusterPing(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "master-ping", Short: "Tell by the exit status whether the controller answers", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var name *string
			return configValue(sh, cmd, "cluster_name", &name)
		},
	}
}

func clusterVersion(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the versions of the controller and its protocols", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.Ask(cmd.Context(), "QueryClusterInfo", &text); err != nil {
				return err
			}
			v, _ := shell.ParseJSON(string(text))
			info, _ := v.(map[string]any)
			data := map[string]any{}
			for _, key := range []string{"software_version", "protocol_version", "config_version", "os_api_version", "export_version", "vcs_version"} {
				data[key] = info[key]
			}
			return sh.Show(data, func() error { return sh.Printf("%s", classic.Outline(classic.Version(info))) })
		},
	}
}

func watcherPause(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "pause DURATION", Short: "Ask the watcher to do nothing for a while", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := shell.AgeOf(args[0])
			if err != nil || seconds < 0 {
				return shell.Usage("the duration is a number with an optional s, m, h, d or w, got %q", args[0])
			}
			until := float64(sh.Now().Unix() + seconds)
			if sh.Flags.DryRun {
				return sh.ShowTimes(map[string]any{"would_pause_until": until}, []string{"would_pause_until"}, func() error {
					return sh.Printf("The watcher would be paused until %s.\n", time.Unix(int64(until), 0).Format(time.ANSIC))
				})
			}
			if err := sh.Ask(cmd.Context(), "SetWatcherPause", nil, until, sh.UserTrail()); err != nil {
				return err
			}
			return showPause(sh, &until)
		},
	}
}

func watcherContinue(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "continue", Short: "Let the watcher work again", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sh.Flags.DryRun {
				return sh.Show(map[string]any{"would_pause_until": nil}, func() error { return sh.Printf("The watcher would work again.\n") })
			}
			if err := sh.Ask(cmd.Context(), "SetWatcherPause", nil, nil, sh.UserTrail()); err != nil {
				return err
			}
			return sh.Show(map[string]any{"paused_until": nil}, func() error {
				return sh.Printf("The watcher is no longer paused.\n")
			})
		},
	}
}

func watcherInfo(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Tell whether the watcher is paused", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var until *float64
			if err := configValue(sh, cmd, "watcher_pause", &until); err != nil {
				return err
			}
			return showPause(sh, until)
		},
	}
}

func showPause(sh *shell.Shell, until *float64) error {
	return sh.ShowTimes(map[string]any{"paused_until": until}, []string{"paused_until"}, func() error {
		if until == nil {
			return sh.Printf("The watcher is not paused.\n")
		}
		return sh.Printf("The watcher is paused until %s.\n", time.Unix(int64(*until), 0).Format(time.ANSIC))
	})
}

func clusterInfo(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Show the settings of the cluster", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.Ask(cmd.Context(), "QueryClusterInfo", &text); err != nil {
				return err
			}
			return sh.ShowTimes(text, []string{"ctime", "mtime"}, func() error {
				v, _ := shell.ParseJSON(string(text))
				info, _ := v.(map[string]any)
				return sh.Printf("%s", classic.Outline(classic.Cluster(info)))
			})
		},
	}
}
