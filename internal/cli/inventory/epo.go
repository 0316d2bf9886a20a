package inventory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

const epoHelp = `Stop all instances of nodes, or of the nodes of groups, and switch the nodes off by
their management controllers (see node power): before the power goes. It is not
remembered that the instances were stopped. With --on the nodes are switched on again,
and instances are started as soon as all nodes that they are on answer. The master
is among the nodes only with --all, and is not switched off.`

// Times of an emergency.
const (
	epoPatience = 15 * time.Minute // for nodes that were switched on
	epoPause    = 2 * time.Second  // between looks at them
)

// epoNode is a node as an emergency needs to know it.
type epoNode struct {
	name        string
	master      bool
	primaries   []string
	secondaries []string
	powered     *bool // nil if it has no management controller
	offline     bool
}

// UnmarshalJSON reads the row in the order of epoFields.
func (n *epoNode) UnmarshalJSON(data []byte) error {
	places := []any{&n.name, &n.master, &n.primaries, &n.secondaries, &n.powered, &n.offline}
	return json.Unmarshal(data, &places)
}

var epoFields = []string{"name", "master", "pinst_list", "sinst_list", "powered", "offline"}

// epo is what is done in an emergency, or behind it.
type epo struct {
	on bool
	// nodes are all that are meant, switched those that are switched, and awaited those that are to answer behind that: not one that is
	// marked offline, which is asked nothing.
	nodes, switched, awaited []string
	// instances are those that are stopped, or started when the nodes answer that they are on.
	instances map[string][]string
	notes     []string
}

// planEpo decides what is done to nodes. The master is refused unless all are meant.
func planEpo(nodes []epoNode, on, all bool) (*epo, error) {
	e := &epo{on: on, instances: map[string][]string{}}
	for _, n := range nodes {
		e.nodes = append(e.nodes, n.name)
		if !n.offline {
			e.awaited = append(e.awaited, n.name)
		}
		for _, inst := range slices.Concat(n.primaries, n.secondaries) {
			if !n.offline {
				e.instances[inst] = append(e.instances[inst], n.name)
			}
		}
		switch {
		case n.master && on: // whoever asks is there
		case n.master && !all:
			return nil, fault.New(fault.Failed, "%s is the master node, please do a master-failover to another node not affected by the EPO or use --all if you intend to shutdown the whole cluster", n.name)
		case n.powered == nil:
			e.notes = append(e.notes, "Node "+n.name+" does not support out-of-band handling, it can not be handled in a fully automated manner")
		case *n.powered == on:
			e.notes = append(e.notes, "Node "+n.name+" is already in desired power state, skipping")
		case n.master:
			e.notes = append(e.notes, "Node "+n.name+" is the master, switch it off by hand when the others are")
		default:
			e.switched = append(e.switched, n.name)
		}
	}
	return e, nil
}

// ready are the instances all of whose nodes answer, by name; they are not waited for any more.
func (e *epo) ready(answer func(node string) bool) (names []string) {
	for inst, nodes := range e.instances {
		if !slices.ContainsFunc(nodes, func(node string) bool { return !answer(node) }) {
			names = append(names, inst)
			delete(e.instances, inst)
		}
	}
	slices.Sort(names)
	return names
}

// clusterEpo makes the verb for emergencies.
func clusterEpo(sh *shell.Shell) *cobra.Command {
	cmd := shell.Heeding(shell.Making, &cobra.Command{Use: "epo [NODE...|GROUP...]", Short: "Stop instances and switch nodes off in an emergency, or on behind it", Long: epoHelp})
	on := cmd.Flags().Bool("on", false, "switch the nodes on, and start the instances")
	groups := cmd.Flags().Bool("groups", false, "the arguments are node groups")
	all := cmd.Flags().Bool("all", false, "all nodes, the master among them")
	force := cmd.Flags().BoolP("force", "f", false, "do not ask")
	shutdown := cmd.Flags().Int("shutdown-timeout", 120, "seconds that an instance may take to stop")
	o := oobOptions{timeout: cmd.Flags().Int("oob-timeout", 60, "seconds that the program of a node may take"), delay: cmd.Flags().Float64("power-delay", 2, "seconds between switching one node on and the next"), noHeaders: new(bool), separator: new(string)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *groups && *all:
			return fault.New(fault.Failed, "Only one of --groups or --all are allowed")
		case len(args) > 0 && *all:
			return fault.New(fault.Failed, "Arguments in combination with --all are not allowed")
		}
		nodes, err := epoNodes(cmd.Context(), sh, args, *groups)
		if err != nil {
			return err
		}
		e, err := planEpo(nodes, *on, *all)
		if err != nil {
			return err
		}
		if !*on && sh.Flags.Submit && len(e.instances) > 0 && len(e.switched) > 0 {
			return shell.Usage("nodes are switched off when what is on them has stopped, which --submit does not wait for")
		}
		for _, note := range e.notes {
			sh.Notef("%s\n", note)
		}
		if !*force {
			if err := sh.Sure("cluster epo", map[bool]string{false: "Stop what is on", true: "Switch on, and start what is on"}[*on], shell.Several(e.nodes, "node")); err != nil {
				return err
			}
		}
		if *on {
			return e.switchOn(cmd.Context(), sh, o)
		}
		return e.switchOff(cmd.Context(), sh, o, *shutdown)
	}
	return cmd
}

// epoNodes asks for the nodes that are meant.
func epoNodes(ctx context.Context, sh *shell.Shell, args []string, groups bool) (nodes []epoNode, err error) {
	names := args
	if groups {
		var lists [][][]string
		if err := sh.Ask(ctx, "QueryGroups", &lists, args, []string{"node_list"}, false); err != nil {
			return nil, err
		}
		names = nil
		for _, row := range lists {
			names = append(names, row[0]...)
		}
		if len(names) == 0 {
			return nil, fault.New(fault.NotFound, "There are no nodes in these groups")
		}
	}
	return nodes, sh.Ask(ctx, "QueryNodes", &nodes, shell.NonNil(names), epoFields, false)
}

// instanceTasks are jobs for instances.
func instanceTasks(sh *shell.Shell, id string, names []string, params map[string]any) (tasks []work.Task, err error) {
	for _, name := range names {
		params["instance_name"] = name
		op, err := work.NewOp(sh, "instance", id, params)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, work.Task{Target: name, Ops: []*opcode.Opcode{op}})
	}
	return tasks, nil
}

// power switches the nodes.
func (e *epo) power(ctx context.Context, sh *shell.Shell, o oobOptions) error {
	if len(e.switched) == 0 {
		return nil
	}
	task, err := powerTask(sh, map[bool]string{false: "off", true: "on"}[e.on], e.switched, o, true, false)
	if err != nil {
		return err
	}
	return work.Run(ctx, sh, []work.Task{task})
}

// switchOff stops the instances, and switches the nodes off when all are stopped.
func (e *epo) switchOff(ctx context.Context, sh *shell.Shell, o oobOptions, shutdown int) error {
	tasks, err := instanceTasks(sh, "OP_INSTANCE_SHUTDOWN", e.ready(func(string) bool { return true }), map[string]any{"no_remember": true, "timeout": shutdown})
	if err != nil {
		return err
	}
	if len(tasks) > 0 {
		if err := work.Run(ctx, sh, tasks); err != nil {
			sh.Notef("Please investigate and stop instances manually before continuing\n")
			return err
		}
	}
	return e.power(ctx, sh, o)
}

// switchOn switches the nodes on, and starts instances as soon as all nodes that they are on answer.
func (e *epo) switchOn(ctx context.Context, sh *shell.Shell, o oobOptions) error {
	bad := e.power(ctx, sh, o)
	if bad != nil {
		sh.Notef("Not all nodes seem to get back up, investigate and start manually if needed\n")
	}
	if sh.Flags.DryRun || sh.Flags.Submit {
		return bad
	}
	limit, cancel := context.WithTimeoutCause(ctx, epoPatience, fault.New(fault.Failed, "Time exceeded while waiting for nodes to become reachable again"))
	defer cancel()
	ticker := time.NewTicker(epoPause)
	defer ticker.Stop()
	for {
		away, err := silentNodes(limit, sh, e.awaited)
		if err != nil {
			return err
		}
		tasks, err := instanceTasks(sh, "OP_INSTANCE_STARTUP", e.ready(func(node string) bool { return !slices.Contains(away, node) }), map[string]any{})
		if err != nil {
			return err
		}
		if len(tasks) > 0 {
			if err := work.Run(ctx, sh, tasks); err != nil {
				bad = err
			}
		}
		if len(away) == 0 {
			return bad
		}
		select {
		case <-ticker.C:
		case <-limit.Done():
			sh.Notef("These nodes do not answer: %s. Start what is on them by hand.\n", strings.Join(away, ", "))
			return context.Cause(limit)
		}
	}
}

// silentNodes are those of nodes that do not answer.
func silentNodes(ctx context.Context, sh *shell.Shell, nodes []string) (silent []string, err error) {
	if len(nodes) == 0 { // all would be asked for
		return nil, nil
	}
	var rows [][2]json.RawMessage
	if err := sh.Ask(ctx, "QueryNodes", &rows, nodes, []string{"name", "bootid"}, false); err != nil {
		return nil, err
	}
	for _, row := range rows {
		var name string
		if err := json.Unmarshal(row[0], &name); err != nil {
			return nil, err
		}
		if string(row[1]) == "null" {
			silent = append(silent, name)
		}
	}
	return silent, nil
}
