package history

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/history"
)

// reads are how an object is read over RAPI.
var reads = map[string]func(ctx context.Context, h *clients, a *asker, object string) (history.Output, error){
	"rule": func(ctx context.Context, h *clients, a *asker, object string) (history.Output, error) {
		rows, err := a.query(ctx, "filter?fields=uuid,priority")
		for _, row := range rows {
			if string(row[0]) == `"`+h.uuid(object)+`"` {
				out := history.Output{Is: history.There}
				return out, json.Unmarshal(row[1], &out.Value)
			}
		}
		return history.Output{Is: history.Absent}, err
	},
	"job": func(ctx context.Context, _ *clients, a *asker, object string) (history.Output, error) {
		rows, err := a.query(ctx, "job?fields=status,ops")
		for _, row := range rows {
			if strings.Contains(string(row[1]), `"`+object+`"`) {
				return history.Output{Is: strings.Trim(string(row[0]), `"`)}, err
			}
		}
		return history.Output{Is: history.Absent}, err
	},
	"tag": func(ctx context.Context, _ *clients, a *asker, object string) (history.Output, error) {
		path := "/2/tags"
		if ofInstance(object) {
			path = "/2/instances/" + taggedInstance + "/tags"
		}
		var list []string
		err := a.get(ctx, path, &list)
		if slices.Contains(list, tagOf(object)) {
			return history.Output{Is: history.There}, err
		}
		return history.Output{Is: history.Absent}, err
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
func (h *clients) askStale(m *member, object string, notOlder int64) int64 {
	ctx, cancel := context.WithTimeout(h.g.Context(), askTime)
	defer cancel()
	a := &asker{member: m, header: http.Header{"Drover-Stale": {"1"}, "Drover-Revision": {strconv.FormatInt(notOlder, 10)}}}
	out, err := reads[history.KindOf(object)](ctx, h, a, object)
	if err != nil {
		if !fault.Is(err, fault.Unavailable) && h.g.Context().Err() == nil {
			h.g.Errorf("stale read of %s: %v", object, err)
		}
		return notOlder
	}
	if a.revision < notOlder {
		h.g.Errorf("%s was read as of revision %d, and not older than %d was asked for", object, a.revision, notOlder)
	}
	out.Revision = a.revision
	h.ToldOld(object, time.Since(h.begun), out)
	return max(notOlder, a.revision)
}
