package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// What a task has brought about is on a machine. It counts for a node of an environment as long as the node is there, and that machine is the node's host:
// another host, a node that was removed from the cluster and added again, or one whose agent has joined with another key is a new machine.

// machineOf is what a node of the cluster is; nothing of one that there is not.
func machineOf(in *cluster.Snapshot, host string) (m course.Identity) {
	if host == "" {
		return m
	}
	n, err := in.FindNode(host)
	if err != nil {
		return m
	}
	m.UUID = n.UUID
	if n.Agent != nil && n.Agent.Token != nil {
		m.Key = n.Agent.Token.Key
	}
	return m
}

// stillThere refuses a deployment of which a node is another machine than the one that it was planned for: what was done there counts no more.
func stillThere(in *cluster.Snapshot, d *course.Deployment) error {
	for _, n := range d.Nodes {
		if n.Machine != nil && !n.Machine.Same(machineOf(in, n.Host)) {
			return fault.New(fault.Conflict, "node %s is another machine than the one that deployment %d was planned for (%s)", n.UID, d.ID, n.Host).
				WithHint("plan again: drover deploy run %s", d.Environment)
		}
	}
	return nil
}

// counts tells whether a success on a node was on the machine that is the node's now, with the deployment that it was in.
func counts(in *cluster.Snapshot, s course.Success, d *course.Deployment, n *course.Node) bool {
	if n == nil || n.Host == "" { // the master, which is no machine of its own
		return true
	}
	then := s.Machine
	if before := d.Node(s.Node); then.UUID == "" && before != nil && before.Host != "" {
		if then = machineOf(in, before.Host); then.UUID == "" { // no longer in the cluster
			return before.Host == n.Host
		}
	}
	return then.Same(machineOf(in, n.Host))
}

// replaced says of which nodes nothing counts, for they are other machines than those that were deployed.
func replaced(uids []string) string {
	slices.Sort(uids)
	switch uids = slices.Compact(uids); {
	case len(uids) == 1:
		return "node " + uids[0] + " is another machine than the one that was deployed; nothing counts as done there"
	case len(uids) > mostReplaced:
		return fmt.Sprintf("%d nodes (%s and more) are other machines than those that were deployed; nothing counts as done there", len(uids), strings.Join(uids[:mostReplaced], ", "))
	}
	return "nodes " + strings.Join(uids, ", ") + " are other machines than those that were deployed; nothing counts as done there"
}

// mostReplaced bounds the nodes that are named.
const mostReplaced = 10

// Forgotten says of how many tasks on a node it is no longer known that they succeeded.
type Forgotten struct {
	Environment string `json:"environment"`
	Node        string `json:"node"`
	Tasks       int    `json:"tasks"`
}

// Forget has all tasks on a node of an environment count as never done. Plans that were made before are refused.
func (e *Engine) Forget(ctx context.Context, environment, uid string, by By) (*Forgotten, error) {
	out := &Forgotten{Environment: environment, Node: uid}
	err := e.patiently(ctx, func(ctx context.Context) error {
		old, err := e.environment(ctx, environment)
		if err != nil {
			return err
		}
		if old.Node(uid) == nil {
			return fault.New(fault.NotFound, "the environment %s has no node %q", environment, uid)
		}
		if d := e.known().ActiveIn(environment); d != nil { // its successes would be half forgotten
			return underWay(d)
		}
		keys, err := e.successesOn(ctx, environment, uid)
		if err != nil {
			return err
		}
		if out.Tasks = len(keys); len(keys) == 0 {
			return nil
		}
		if err := e.forget(keys); err != nil {
			return err
		}
		x := *old
		x.Generation++
		x.Modified, x.By, x.Trail = e.cfg.Now().UnixNano(), who(by), by.Trail
		done := audit.New(audit.EnvironmentForget, environment, by)
		done.Name = "node " + uid
		return e.storeEnvironment(&x, e.newParts(), done)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// successesOn are the names of the successes on a node of an environment.
func (e *Engine) successesOn(ctx context.Context, environment, uid string) (keys []store.Key, err error) {
	prefix := course.SuccessOn(environment, uid)
	for o, err := range e.cfg.Store.List(ctx, KindSuccess, store.Options{After: prefix}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		var s course.Success
		if err := json.Unmarshal(o.Value, &s); err != nil {
			return nil, fault.New(fault.Internal, "the stored success %s cannot be read: %w", o.ID, err)
		}
		if s.Node == uid { // a name may go on where another ends
			keys = append(keys, o.Key)
		}
	}
	return keys, nil
}

// forget removes successes, in portions: there may be tens of thousands.
func (e *Engine) forget(keys []store.Key) error {
	for some := range slices.Chunk(keys, deletedAtOnce) {
		if err := e.commit(store.Tx{Delete: some}, &state.Change{}); err != nil {
			return err
		}
	}
	return nil
}

// forgetGone removes the successes on nodes that leave an environment: what comes under their UIDs later is new. It is done before they leave.
func (e *Engine) forgetGone(ctx context.Context, old *course.Environment, stays func(uid string) bool) error {
	var all []store.Key
	for _, n := range old.Nodes {
		if stays(n.UID) {
			continue
		}
		keys, err := e.successesOn(ctx, old.Name, n.UID)
		if err != nil {
			return err
		}
		all = append(all, keys...)
	}
	return e.forget(all)
}
