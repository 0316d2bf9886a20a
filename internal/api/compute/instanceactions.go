package compute

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server"
)

// history is what was done to a server, also one that is no more.
type history struct {
	id, project, user string
	// own: it is on Drover's own cluster, whose jobs can say what they wait for.
	own  bool
	acts []server.Act // the newest first
}

// actNames are Nova's words for what is done to servers.
var actNames = map[server.Do]string{
	server.Create: "create", server.Delete: "delete", server.Start: "start", server.Stop: "stop", server.Reboot: "reboot", server.RebootHard: "reboot",
	server.Resize: "resize", server.Revert: "revertResize", server.Confirm: "confirmResize", server.Rebuild: "rebuild", server.Capture: "createImage", server.Backup: "createBackup",
	server.Locking: "lock", server.Unlocking: "unlock",
}

// history finds what was done to the server of the path.
func (r *request) history() (*history, error) {
	s, err := r.server()
	if err == nil {
		h := &history{s.ID, s.Project, s.User, s.Backend == "", s.Acts()}
		if of := r.captures(s); of != nil {
			h.acts = append(h.acts, server.Act{Task: server.Task{Do: CaptureOf(of), Asked: of.Asked}})
		}
		slices.Reverse(h.acts)
		return h, nil
	}
	if !fault.Is(err, fault.NotFound) || !r.since(withPast) {
		return nil, err
	}
	p, gone := r.api.cfg.Engine.Past(r.Context(), r.path[0])
	switch {
	case fault.Is(gone, fault.NotFound), fault.Is(gone, fault.Invalid): // what is no id is none of a server
		return nil, err
	case gone != nil:
		return nil, gone
	case r.account.May(rights.Look, rights.Of{Project: p.Project}) != rights.Allowed:
		return nil, err
	}
	slices.Reverse(p.Done)
	return &history{p.ID, p.Project, p.User, false, p.Done}, nil
}

// requestOf is the id by which clients ask for an act.
func requestOf(a *server.Act) string {
	return cmp.Or(a.Asked.Request, "task-"+strconv.FormatInt(a.Serial, 10))
}

// moment writes a time as Nova does here: without a zone.
func moment(t job.Time) any {
	if t == 0 {
		return nil
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02T15:04:05.000000")
}

// actBody is an act as lists show it.
func (r *request) actBody(h *history, a *server.Act) object {
	out := object{"action": actNames[a.Do], "instance_uuid": h.id, "request_id": requestOf(a), "project_id": h.project,
		"user_id": cmp.Or(a.Asked.ID, h.user), "start_time": moment(a.Asked.Time), "message": orNull(a.Failed)}
	if r.since(withActPages) {
		out["updated_at"] = moment(changedAt(a))
	}
	return out
}

// changedAt is when something became known of an act last.
func changedAt(a *server.Act) job.Time { return cmp.Or(a.Ended, a.Began, a.Asked.Time) }

// wantedActs are those that a query asks for, behind its marker.
func (r *request) wantedActs(all []server.Act, q url.Values) ([]server.Act, error) {
	if err := r.between(q); err != nil {
		return nil, err
	}
	if text := q.Get("changes-since"); text != "" {
		since, err := readTime("changes-since", text)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(a server.Act) bool { return changedAt(&a) < since })
	}
	if text := q.Get("changes-before"); text != "" && r.since(withChangesBefore) {
		before, err := readTime("changes-before", text)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(a server.Act) bool { return changedAt(&a) > before })
	}
	marker := q.Get("marker")
	if marker == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(a server.Act) bool { return requestOf(&a) == marker })
	if i < 0 {
		return nil, noMarker(marker)
	}
	return all[i+1:], nil
}

func listActs(r *request) (result, error) {
	h, err := r.history()
	if err != nil {
		return result{}, err
	}
	q := url.Values{} // before there were pages nothing was looked at
	if r.since(withActPages) {
		q = r.URL.Query()
	}
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	acts, err := r.wantedActs(h.acts, q)
	if err != nil {
		return result{}, err
	}
	out, body := []any{}, object{}
	for i := range acts[:min(limit, len(acts))] {
		out = append(out, r.actBody(h, &acts[i]))
	}
	if 0 < limit && limit < len(acts) {
		q.Set("marker", requestOf(&acts[limit-1]))
		body["links"] = []any{object{"rel": "next", "href": r.base() + r.URL.EscapedPath() + "?" + q.Encode()}}
	}
	body["instanceActions"] = out
	return result{http.StatusOK, body}, nil
}

func showAct(r *request) (result, error) {
	h, err := r.history()
	if err != nil {
		return result{}, err
	}
	i := slices.IndexFunc(h.acts, func(a server.Act) bool { return requestOf(&a) == r.path[1] })
	if i < 0 {
		return result{}, fault.New(fault.NotFound, "Action for request_id %s on instance %s not found", fault.Clip(r.path[1], 100), h.id)
	}
	a := &h.acts[i]
	out := r.actBody(h, a)
	if h.own && a.Ended == 0 {
		out["message"] = orNull(r.waits(r.Context(), a))
	}
	admin := r.account.May(rights.Administer, rights.Of{}) == rights.Allowed
	if admin || r.since(withEvents) {
		out["events"] = r.eventsOf(a, admin)
	}
	return result{http.StatusOK, object{"instanceAction": out}}, nil
}

// waits says what the job of an act waits for; empty if for nothing.
func (r *request) waits(ctx context.Context, a *server.Act) string {
	if a.Job == 0 {
		return ""
	}
	return r.api.cfg.Waits(ctx, a.Job)
}

// eventsOf are the steps of an act: the job by which its cluster carries it out, if it took one. Why one failed is for
// administrators in Nova; here it is in the message of the act, too.
func (r *request) eventsOf(a *server.Act, admin bool) []any {
	if a.Job == 0 {
		return []any{}
	}
	event := object{"event": server.OpcodeOf(a.Do), "start_time": moment(cmp.Or(a.Began, a.Asked.Time)), "finish_time": moment(a.Ended), "result": nil}
	switch {
	case a.Ended == 0:
	case a.Failed != "":
		event["result"] = "Error"
	default:
		event["result"] = "Success"
	}
	if admin {
		event["traceback"] = orNull(a.Failed)
	}
	if r.since(withHosts) {
		event["hostId"] = "" // hosts are the operator's
	}
	if r.since(withDetails) {
		event["details"] = orNull(a.Failed)
	}
	return []any{event}
}
