package compute

import (
	"cmp"
	"context"
	"net/http"
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
	server.Locking: "lock", server.Unlocking: "unlock",
}

// history finds what was done to the server of the path.
func (r *request) history() (*history, error) {
	s, err := r.server()
	if err == nil {
		h := &history{s.ID, s.Project, s.User, s.Backend == "", s.Acts()}
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

// brief is an act as lists show it.
func (h *history) brief(a *server.Act) object {
	return object{"action": actNames[a.Do], "instance_uuid": h.id, "request_id": requestOf(a), "project_id": h.project,
		"user_id": cmp.Or(a.Asked.ID, h.user), "start_time": moment(a.Asked.Time), "message": orNull(a.Failed)}
}

func listActs(r *request) (result, error) {
	h, err := r.history()
	if err != nil {
		return result{}, err
	}
	out := []any{}
	for i := range h.acts {
		out = append(out, h.brief(&h.acts[i]))
	}
	return result{http.StatusOK, object{"instanceActions": out}}, nil
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
	out := h.brief(a)
	if h.own && a.Ended == 0 {
		out["message"] = orNull(r.waits(r.Context(), a))
	}
	admin := r.account.May(rights.Administer, rights.Of{}) == rights.Allowed
	if admin || r.since(withEvents) {
		out["events"] = eventsOf(a, admin)
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
func eventsOf(a *server.Act, admin bool) []any {
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
	return []any{event}
}
