// Package mond serves the monitoring agent's HTTP interface of one node, in the
// form of the reference's ganeti-mond: what the node's instances should do, what
// they do, and why each last changed its state.
//
// Invariants:
//   - It only reads, and tells what monitoring may know: no parameters, no
//     secrets.
//   - A node that cannot tell its state is reported as bad, not as empty.
package mond

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// Node is what the interface reads of one node.
type Node struct {
	// Name is the node's name.
	Name string
	// Hypervisor names the driver that runs its instances, as the cluster has it at the moment.
	Hypervisor func() string
	// Inventory returns what the cluster knows at the moment.
	Inventory func() *cluster.Snapshot
	// Instances returns what the node's hypervisor sees, and when it looked.
	Instances func(context.Context) ([]hypervisor.Instance, time.Time, error)
	// Reason returns why an instance last changed its state, nil if that is not
	// known.
	Reason func(instance string) reason.Trail
	Log    *slog.Logger
}

// collector is one source of reports.
type collector struct {
	name, category string
	report         func(context.Context, *Node) Report
}

// The collector's category, and the name under which the reference's only
// collector of instances is asked for; it serves whatever the hypervisor is.
const (
	categoryInstance = "instance"
	referenceName    = "inst-status-xen"
)

func (n *Node) collectors() []collector {
	return []collector{{"inst-status-" + n.Hypervisor(), categoryInstance, instanceReport}}
}

// Handler answers the requests of version 1.
func (n *Node) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { n.answer(w, []int{1}) })
	mux.HandleFunc("GET /1/{$}", func(w http.ResponseWriter, _ *http.Request) { n.answer(w, nil) })
	mux.HandleFunc("GET /1/list/collectors", n.list)
	mux.HandleFunc("GET /1/report/all", n.all)
	mux.HandleFunc("GET /1/report/{category}/{collector}", n.one)
	mux.HandleFunc("GET /1/report/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unable to produce a report for the requested resource", http.StatusNotFound)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Resource not found", http.StatusNotFound) })
	return mux
}

func (n *Node) list(w http.ResponseWriter, _ *http.Request) {
	out := [][3]any{}
	for _, c := range n.collectors() {
		out = append(out, [3]any{c.name, c.category, kindStatus})
	}
	n.answer(w, out)
}

func (n *Node) all(w http.ResponseWriter, r *http.Request) {
	out := []Report{}
	for _, c := range n.collectors() {
		out = append(out, c.report(r.Context(), n))
	}
	n.answer(w, out)
}

func (n *Node) one(w http.ResponseWriter, r *http.Request) {
	for _, c := range n.collectors() {
		asked := r.PathValue("collector")
		if r.PathValue("category") == c.category && (asked == c.name || asked == referenceName) {
			n.answer(w, c.report(r.Context(), n))
			return
		}
	}
	http.Error(w, "Unable to find the requested collector", http.StatusNotFound)
}

func (n *Node) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		n.Log.Debug("a monitoring client left", "node", n.Name, "error", err)
	}
}

// instanceReport tells of the instances whose primary node this is.
func instanceReport(ctx context.Context, n *Node) Report {
	category := categoryInstance
	out := Report{
		Name: n.collectors()[0].name, Version: builtin, FormatVersion: 1, Category: &category, Kind: kindStatus,
	}
	seen, at, err := n.Instances(ctx)
	if at.IsZero() { // nobody looked: it is the report's own time
		at = time.Now()
	}
	out.Timestamp = at.UnixNano()
	data := instanceData{Instances: []InstanceStatus{}}
	if err != nil {
		data.Status = Status{Bad, "Unable to receive the list of instances: " + err.Error()}
		out.Data = data
		return out
	}
	byUUID := make(map[string]*hypervisor.Instance, len(seen))
	for i := range seen {
		byUUID[seen[i].UUID] = &seen[i]
	}
	snap := n.Inventory()
	if node := snap.NodeNamed(n.Name); node != nil {
		for i := range snap.PrimariesOn(node.UUID) {
			data.Instances = append(data.Instances, judgeInstance(i, byUUID[i.UUID], n.Reason(i.Name)))
		}
	}
	data.Status = summarize(data.Instances)
	out.Data = data
	return out
}

// Serve answers on a listener until ctx ends.
func (n *Node) Serve(ctx context.Context, l *gate.Listener) error {
	server := gate.Monitors.Server(n.Handler(), n.Log)
	l.Refuse(gate.RefusalHTTP(nil, "text/plain; charset=utf-8", func(why string) []byte { return []byte(why + "\n") }))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // readers lose nothing
	defer stop()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
