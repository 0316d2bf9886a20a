package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health is what /readyz answers.
type Health struct {
	// Ready: requests are taken and jobs go on. While it is false, what cannot be
	// told is answered as unavailable, not as absent.
	Ready bool `json:"ready"`
	// Problems keep it from being ready, Notes do not.
	Problems []Problem `json:"problems"`
	Notes    []Problem `json:"notes"`
}

// Problem is one thing that is wrong.
type Problem struct {
	// Part is what has it: "queue", "store", "format", "inventory", "node", "cluster" (of servers), "certificate", "clients" or "group".
	Part string `json:"part"`
	Text string `json:"text"`
	// Since is when it was first seen; absent where that is not known.
	Since time.Time `json:"since,omitzero"`
}

// health asks the parts. A controller that stands by is well while its store
// works: it takes requests for the one that leads.
func (m *member) health() Health {
	h := Health{Problems: []Problem{}, Notes: []Problem{}}
	if t := m.meter.Trouble(); t != nil {
		h.Problems = append(h.Problems, Problem{Part: "store", Text: t.Err.Error(), Since: t.Since})
	}
	if c := m.leads(); c != nil {
		c.health(&h)
	} else if m.group != nil {
		h.Notes = append(h.Notes, Problem{Part: "group", Text: "another controller leads"})
		if unfit := m.group.unfit.Load(); unfit != nil {
			h.Notes = append(h.Notes, *unfit)
		}
	}
	if m.group != nil {
		if d := m.group.drained.Load(); d != nil {
			h.Notes = append(h.Notes, Problem{Part: "group", Text: "this controller is drained: it leads only if no other could", Since: time.Unix(0, d.At).UTC()})
		}
	}
	if cert := m.cert.Load(); cert != nil {
		if text := cert.Trouble(m.now()); text != "" {
			h.Notes = append(h.Notes, Problem{Part: "certificate", Text: text})
		}
	}
	for _, c := range m.crowds() {
		h.Notes = append(h.Notes, Problem{Part: "clients", Text: c.Surface + ": clients are not let in: " + c.Text, Since: c.Since})
	}
	if m.stopping.Load() {
		h.Problems = append(h.Problems, Problem{Part: "queue", Text: "the controller is stopping"})
	}
	h.Ready = len(h.Problems) == 0
	return h
}

// health adds what there is to say of a controller that leads.
func (c *controller) health(h *Health) {
	if err := c.queue.Health(); err != nil {
		h.Problems = append(h.Problems, Problem{Part: "queue", Text: err.Error()})
	}
	for _, u := range c.keeper.Unreadable() {
		h.Notes = append(h.Notes, Problem{Part: "inventory", Text: string(u.Kind) + " " + u.UUID + " cannot be read and is set aside: " + u.Why.Error()})
	}
	if later := c.lead.Overtaken(); len(later) > 0 {
		h.Notes = append(h.Notes, Problem{Part: "node", Text: fmt.Sprintf("nodes follow a controller of epoch %d, and refuse orders of this one, of epoch %d (%d of them, which the log names): "+
			"if the database was restored by its own means, stop all controllers and run drover store advance", slices.Max(slices.Collect(maps.Values(later))), c.lease.Epoch, len(later))})
	}
	if text := c.agentsAway(); text != "" {
		h.Notes = append(h.Notes, Problem{Part: "node", Text: text})
	}
	if away := c.clustersAway(); away != nil {
		h.Notes = append(h.Notes, *away)
	}
	for _, text := range c.queue.Unreadable() {
		h.Notes = append(h.Notes, Problem{Part: "queue", Text: text})
	}
}

// pages are those that are served beside the remote API. They are open to
// everybody who reaches it, like /version, and tell no names.
func (m *member) pages() map[string]http.Handler {
	return map[string]http.Handler{
		"/healthz": http.HandlerFunc(healthz),
		"/readyz":  http.HandlerFunc(m.readyz),
		"/metrics": promhttp.HandlerFor(m.figures.all, promhttp.HandlerOpts{}),
	}
}

// healthz says that the process answers. It is for those who would start it
// anew; a store in trouble is no reason for that.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // to a client that may be gone
}

// readyz says whether requests are taken: status 200 or 503, and what is wrong.
func (m *member) readyz(w http.ResponseWriter, _ *http.Request) {
	tellHealth(w, m.health())
}

func tellHealth(w http.ResponseWriter, h Health) {
	w.Header().Set("Content-Type", "application/json")
	if !h.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(h) //nolint:errchkjson // its times can be written; the client may be gone
}
