package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

func clusterCommand(sh *shell) *cobra.Command {
	queue := sh.group("queue", "The job queue as a whole",
		heeding(changing, drainCommand(sh, "drain", true)), heeding(changing, drainCommand(sh, "undrain", false)), queueInfo(sh))
	watcher := sh.group("watcher", "The watcher, which repairs what broke",
		heeding(changing, watcherPause(sh)), heeding(changing, watcherContinue(sh)), watcherInfo(sh))
	verbs := []*cobra.Command{clusterInfo(sh), clusterMaster(sh), clusterPing(sh), clusterMasters(sh), clusterFailover(sh), clusterVersion(sh), queue, watcher,
		tagSearch(sh, "cluster", "search-tags"),
		operation{noun: "cluster", verb: "modify", short: "Change the settings of the cluster", id: "OP_CLUSTER_SET_PARAMS",
			letters: map[string]string{"beparams": "B", "hvparams": "H", "force": "f", "nicparams": "N", "diskparams": "D", "mac_prefix": "m",
				"candidate_pool_size": "C", "default_iallocator": "I"}}.command(sh),
		operation{noun: "cluster", verb: "verify", short: "Check the configuration and the nodes", id: "OP_CLUSTER_VERIFY", children: true,
			letters: map[string]string{"verbose": "v", "group_name": "g", "ignore_errors": "I"}}.command(sh),
		operation{noun: "cluster", verb: "redist-conf", short: "Send the configuration to all nodes again", id: "OP_CLUSTER_REDIST_CONF"}.command(sh),
	}
	verbs = append(verbs, itemTags(sh, "cluster")...)
	return sh.group("cluster", "Settings and state of the whole cluster", verbs...)
}

// configValue asks for one of the values that need no job.
func (sh *shell) configValue(cmd *cobra.Command, name string, into any) error {
	var values []json.RawMessage
	if err := sh.ask(cmd.Context(), "QueryConfigValues", &values, []string{name}); err != nil {
		return err
	}
	if len(values) != 1 {
		return fmt.Errorf("the controller returned %d values instead of 1", len(values))
	}
	return json.Unmarshal(values[0], into)
}

func clusterMaster(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "getmaster", Short: "Show the name of the master node", Args: exactly(0),
		Long: `getmaster shows the name of the master node. Of a cluster with several
controllers it is the name of the one that leads.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var name string
			var masters []master
			err := sh.ask(cmd.Context(), "QueryMasters", &masters)
			if fault.Is(err, fault.WrongState) { // it is alone
				err = sh.configValue(cmd, "master_node", &name)
			}
			if err != nil {
				return err
			}
			for _, m := range masters {
				if m.Role == "leader" {
					name = m.Name
				}
			}
			return sh.show(map[string]string{"master": name}, func() error { return sh.printf("%s\n", name) })
		},
	}
}

// master is one of the controllers of the cluster.
type master struct {
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	Address  string    `json:"address"`
	Revision int64     `json:"revision"`
	Started  time.Time `json:"started"`
	Version  string    `json:"version"`
}

func clusterMasters(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "masters", Short: "List the controllers of the cluster, and which of them leads", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			masters := []master{}
			if err := sh.ask(cmd.Context(), "QueryMasters", &masters); err != nil {
				return err
			}
			return sh.show(masters, func() error {
				if err := sh.printf("%-20s %-12s %-24s %s\n", "Name", "Role", "Address", "Revision"); err != nil {
					return err
				}
				for _, m := range masters {
					if err := sh.printf("%-20s %-12s %-24s %d\n", m.Name, m.Role, m.Address, m.Revision); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func clusterFailover(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "master-failover", Short: "Make the controller that is asked the one that leads", Args: exactly(0),
		Long: `master-failover asks the controller that leads to end its term in good order, and
takes the lead for the controller whose socket is used. To replace a controller
that is dead nothing needs to be done: another takes the lead by itself.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sh.do(cmd.Context(), "MasterFailover", new(any))
		},
	}
}

func clusterPing(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "master-ping", Short: "Tell by the exit status whether the controller answers", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var name *string
			return sh.configValue(cmd, "cluster_name", &name)
		},
	}
}

func clusterVersion(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the versions of the controller and its protocols", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.ask(cmd.Context(), "QueryClusterInfo", &text); err != nil {
				return err
			}
			v, _ := parseJSON(string(text))
			info, _ := v.(map[string]any)
			data := map[string]any{}
			for _, key := range []string{"software_version", "protocol_version", "config_version", "os_api_version", "export_version", "vcs_version"} {
				data[key] = info[key]
			}
			return sh.show(data, func() error { return sh.printf("%s", classic.Outline(classic.Version(info))) })
		},
	}
}

func queueInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Tell whether the queue takes new jobs", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var drained bool
			if err := sh.configValue(cmd, "drain_flag", &drained); err != nil {
				return err
			}
			return sh.show(map[string]bool{"drained": drained}, func() error {
				return sh.printf("The drain flag is %s\n", map[bool]string{true: "set", false: "unset"}[drained])
			})
		},
	}
}

func watcherPause(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "pause DURATION", Short: "Ask the watcher to do nothing for a while", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := ageOf(args[0])
			if err != nil || seconds < 0 {
				return usage("the duration is a number with an optional s, m, h, d or w, got %q", args[0])
			}
			until := float64(sh.now().Unix() + seconds)
			if sh.flags.dryRun {
				return sh.show(map[string]any{"would_pause_until": until}, func() error {
					return sh.printf("The watcher would be paused until %s.\n", time.Unix(int64(until), 0).Format(time.ANSIC))
				})
			}
			if err := sh.ask(cmd.Context(), "SetWatcherPause", nil, until, sh.userTrail()); err != nil {
				return err
			}
			return sh.showPause(&until)
		},
	}
}

func watcherContinue(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "continue", Short: "Let the watcher work again", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sh.flags.dryRun {
				return sh.show(map[string]any{"would_pause_until": nil}, func() error { return sh.printf("The watcher would work again.\n") })
			}
			if err := sh.ask(cmd.Context(), "SetWatcherPause", nil, nil, sh.userTrail()); err != nil {
				return err
			}
			return sh.show(map[string]any{"paused_until": nil}, func() error {
				return sh.printf("The watcher is no longer paused.\n")
			})
		},
	}
}

func watcherInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Tell whether the watcher is paused", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var until *float64
			if err := sh.configValue(cmd, "watcher_pause", &until); err != nil {
				return err
			}
			return sh.showPause(until)
		},
	}
}

func (sh *shell) showPause(until *float64) error {
	return sh.show(map[string]any{"paused_until": until}, func() error {
		if until == nil {
			return sh.printf("The watcher is not paused.\n")
		}
		return sh.printf("The watcher is paused until %s.\n", time.Unix(int64(*until), 0).Format(time.ANSIC))
	})
}

func nodeCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{listCommand(sh, nodeList), fieldsCommand(sh, nodeList), infoCommand(sh, classic.NodeForm, always)}
	for _, o := range []operation{
		{verb: "add", short: "Add a node to the cluster", id: "OP_NODE_ADD", target: "node_name",
			letters: map[string]string{"secondary_ip": "s", "group": "g"}},
		{verb: "modify", short: "Change the settings of nodes", id: "OP_NODE_SET_PARAMS", told: modified("node"), target: "node_name", complete: "node",
			letters: map[string]string{"master_candidate": "C", "offline": "O", "drained": "D", "force": "f", "secondary_ip": "s"}},
		{verb: "remove", short: "Remove nodes from the cluster", id: "OP_NODE_REMOVE", target: "node_name", complete: "node",
			question: "Remove %s from the cluster?"},
		{verb: "evacuate", short: "Move the instances off nodes", id: "OP_NODE_EVACUATE", target: "node_name", complete: "node",
			question: "Move all instances off %s?", letters: map[string]string{"remote_node": "n", "iallocator": "I"}},
		{verb: "migrate", short: "Migrate the primary instances of nodes", id: "OP_NODE_MIGRATE", target: "node_name", complete: "node",
			question: "Migrate the instances of %s?", letters: map[string]string{"target_node": "n", "iallocator": "I"}},
		{verb: "powercycle", short: "Switch nodes off and on", id: "OP_NODE_POWERCYCLE", target: "node_name", complete: "node",
			question: "Switch %s off and on, at once?", letters: map[string]string{"force": "f"}},
	} {
		o.noun = "node"
		verbs = append(verbs, o.command(sh))
	}
	return sh.group("node", "Nodes of the cluster", append(verbs, itemTags(sh, "node")...)...)
}

func groupCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{listCommand(sh, groupList), fieldsCommand(sh, groupList), infoCommand(sh, classic.GroupForm, always)}
	for _, o := range []operation{
		{verb: "add", short: "Make a node group", id: "OP_GROUP_ADD", target: "group_name", letters: map[string]string{"diskparams": "D"}},
		{verb: "modify", short: "Change the settings of node groups", id: "OP_GROUP_SET_PARAMS", told: modified("node group"), target: "group_name", complete: "group",
			letters: map[string]string{"diskparams": "D"}},
		{verb: "remove", short: "Remove empty node groups", id: "OP_GROUP_REMOVE", target: "group_name", complete: "group",
			question: "Remove the node group %s?", unasked: true},
		{verb: "rename", short: "Give a node group another name", id: "OP_GROUP_RENAME", target: "group_name",
			places: []string{"new_name"}, complete: "group"},
		{verb: "assign-nodes", short: "Put nodes into a node group", id: "OP_GROUP_ASSIGN_NODES", target: "group_name", complete: "group",
			rest: "nodes", letters: map[string]string{"force": "f"}},
		{verb: "evacuate", short: "Move the instances out of node groups", id: "OP_GROUP_EVACUATE", target: "group_name",
			complete: "group", question: "Move all instances out of %s?"},
	} {
		o.noun = "group"
		verbs = append(verbs, o.command(sh))
	}
	return sh.group("group", "Groups of nodes", append(verbs, itemTags(sh, "group")...)...)
}

func networkCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{listCommand(sh, networkList), fieldsCommand(sh, networkList), networkInfo(sh)}
	for _, o := range []operation{
		{verb: "add", short: "Define a network", id: "OP_NETWORK_ADD", target: "network_name", letters: map[string]string{"mac_prefix": "m"}},
		{verb: "modify", short: "Change the settings of networks", id: "OP_NETWORK_SET_PARAMS", target: "network_name", complete: "network",
			letters: map[string]string{"mac_prefix": "m"}},
		{verb: "remove", short: "Remove networks", id: "OP_NETWORK_REMOVE", target: "network_name", complete: "network",
			question: "Remove the network %s?", unasked: true, letters: map[string]string{"force": "f"}},
		{verb: "connect", short: "Connect a network to a node group", id: "OP_NETWORK_CONNECT", target: "network_name",
			places: []string{"group_name", "network_mode", "network_link"}, complete: "network"},
		{verb: "disconnect", short: "Disconnect a network from a node group", id: "OP_NETWORK_DISCONNECT", target: "network_name",
			places: []string{"group_name"}, complete: "network"},
	} {
		o.noun = "network"
		verbs = append(verbs, o.command(sh))
	}
	return sh.group("network", "Networks of the instances", append(verbs, itemTags(sh, "network")...)...)
}

func lockCommand(sh *shell) *cobra.Command {
	return sh.group("lock", "Locks that jobs hold or wait for", listCommand(sh, lockList), fieldsCommand(sh, lockList))
}

func debugCommand(sh *shell) *cobra.Command {
	locks := listCommand(sh, lockList)
	locks.Use = "locks [NAME...]"
	return sh.group("debug", "Tools for tests and for looking inside", locks, heeding(making, debugDelay(sh)),
		operation{noun: "debug", verb: "allocator", short: "Ask an allocator what it would do", id: "OP_TEST_ALLOCATOR", shown: true}.command(sh))
}

func debugDelay(sh *shell) *cobra.Command {
	cmd := &cobra.Command{Use: "delay SECONDS", Short: "Run a job that only waits", Args: exactly(1)}
	onNodes := cmd.Flags().StringArrayP("node", "n", nil, "wait on this node; may be repeated")
	noMaster := cmd.Flags().Bool("no-master", false, "do not wait on the master")
	noLocks := cmd.Flags().BoolP("no-locks", "l", false, "take no locks")
	repeat := cmd.Flags().IntP("repeat", "r", 0, "wait so often")
	sh.completeItems(cmd, optionKinds)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		duration, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return usage("the duration is a number of seconds, got %q", args[0])
		}
		op, err := sh.newOp("debug", "OP_TEST_DELAY", map[string]any{"duration": duration, "on_master": !*noMaster,
			"on_nodes": nonNil(*onNodes), "no_locks": *noLocks, "repeat": *repeat})
		if err != nil {
			return err
		}
		return sh.run(cmd.Context(), []task{{ops: []*opcode.Opcode{op}}})
	}
	return cmd
}
