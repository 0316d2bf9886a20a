package history

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/drover-project/drover/internal/fault"
)

// A controller that stands by answers those who take it from a picture that may be old,
// and says how old: a weaker promise than that of the model. Each such answer shows every
// change that its revision covers, or what followed on it; it is not older than was asked
// for, and shows nothing that nobody asked for.

// staleRead is such an answer.
type staleRead struct {
	object   string
	is       string
	value    int
	revision int64
	back     int64
}

// reads are how an object is read over RAPI.
var reads = map[string]func(ctx context.Context, h *history, a *asker, object string) (output, error){
	"rule": func(ctx context.Context, h *history, a *asker, object string) (output, error) {
		rows, err := a.query(ctx, "filter?fields=uuid,priority")
		for _, row := range rows {
			if string(row[0]) == `"`+h.uuid(object)+`"` {
				out := output{is: "there"}
				return out, json.Unmarshal(row[1], &out.value)
			}
		}
		return output{is: absent}, err
	},
	"job": func(ctx context.Context, _ *history, a *asker, object string) (output, error) {
		rows, err := a.query(ctx, "job?fields=status,ops")
		for _, row := range rows {
			if strings.Contains(string(row[1]), `"`+object+`"`) {
				return output{is: strings.Trim(string(row[0]), `"`)}, err
			}
		}
		return output{is: absent}, err
	},
	"tag": func(ctx context.Context, _ *history, a *asker, object string) (output, error) {
		path := "/2/tags"
		if ofInstance(object) {
			path = "/2/instances/" + taggedInstance + "/tags"
		}
		var list []string
		err := a.get(ctx, path, &list)
		if slices.Contains(list, tagOf(object)) {
			return output{is: "there"}, err
		}
		return output{is: absent}, err
	},
}

// query asks for rows of items.
func (a *asker) query(ctx context.Context, what string) (rows [][]json.RawMessage, err error) {
	var answer struct {
		Data [][][2]json.RawMessage
	}
	err = a.get(ctx, "/2/query/"+what, &answer)
	for _, row := range answer.Data {
		var values []json.RawMessage
		for _, cell := range row {
			values = append(values, cell[1])
		}
		rows = append(rows, values)
	}
	return rows, err
}

// askStale reads an object from a controller that may stand by, not older than a
// revision, and returns the newest revision that is known then.
func (h *history) askStale(m *member, object string, notOlder int64) int64 {
	ctx, cancel := context.WithTimeout(h.g.Context(), askTime)
	defer cancel()
	a := &asker{member: m, header: http.Header{"Drover-Stale": {"1"}, "Drover-Revision": {strconv.FormatInt(notOlder, 10)}}}
	out, err := reads[kindOf(object)](ctx, h, a, object)
	if err != nil {
		if !fault.Is(err, fault.Unavailable) && h.g.Context().Err() == nil {
			h.g.Errorf("stale read of %s: %v", object, err)
		}
		return notOlder
	}
	if a.revision < notOlder {
		h.g.Errorf("%s was read as of revision %d, and not older than %d was asked for", object, a.revision, notOlder)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale = append(h.stale, staleRead{object, out.is, out.value, a.revision, int64(time.Since(h.begun))})
	return max(notOlder, a.revision)
}

// makes is what a change makes of an object.
func makes(in input) (is string, value int) {
	switch in.do {
	case "put":
		return "there", in.value
	case "add":
		return "there", 0
	case "submit":
		return "queued", 0
	case "cancel":
		return "canceled", 0
	default:
		return absent, 0
	}
}

// jobStates are what becomes of a job, in this order.
var jobStates = []string{absent, "queued", "canceled"}

// checkStale holds what was read of controllers that may have stood by against what was
// changed.
func (h *history) checkStale() {
	changes := map[string][]porcupine.Operation{}
	for _, op := range h.ops {
		if in := op.Input.(input); in.do != "read" {
			changes[in.object] = append(changes[in.object], op)
		}
	}
	for _, r := range h.stale {
		if why := r.wrong(changes[r.object]); why != "" {
			h.g.Errorf("%s was read as %s %d, as of revision %d: %s", r.object, r.is, r.value, r.revision, why)
		}
	}
}

// wrong tells what is wrong with an answer, beside the changes of its object.
func (r staleRead) wrong(changes []porcupine.Operation) string {
	// after tells whether what was read may have followed on a change.
	after := func(change porcupine.Operation) bool {
		if is, _ := makes(change.Input.(input)); kindOf(r.object) == "job" {
			return slices.Index(jobStates, r.is) >= slices.Index(jobStates, is)
		}
		return slices.ContainsFunc(changes, func(op porcupine.Operation) bool {
			is, value := makes(op.Input.(input))
			return is == r.is && value == r.value && op.Call < r.back && op.Return >= change.Call
		})
	}
	asked := r.is == absent
	for _, op := range changes {
		is, value := makes(op.Input.(input))
		asked = asked || is == r.is && value == r.value && op.Call < r.back
		if out := op.Output.(output); !out.unknown && out.revision > 0 && out.revision <= r.revision && !after(op) {
			return fmt.Sprintf("revision %d shows %s", out.revision, model.DescribeOperation(op.Input, op.Output))
		}
	}
	if !asked {
		return "nobody asked for that"
	}
	return ""
}
