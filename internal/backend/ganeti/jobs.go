package ganeti

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
)

// requests are how the opcodes of servers are asked for: method, what follows
// the instance's path, and which parameters go where.
var requests = map[string]struct {
	method, path string
	// inQuery and inBody are parameters of the opcode, by their name in the request.
	inQuery, inBody map[string]string
}{
	"OP_INSTANCE_REMOVE":     {method: http.MethodDelete},
	"OP_INSTANCE_STARTUP":    {method: http.MethodPut, path: "/startup"},
	"OP_INSTANCE_SHUTDOWN":   {method: http.MethodPut, path: "/shutdown", inBody: map[string]string{}},
	"OP_INSTANCE_REBOOT":     {method: http.MethodPost, path: "/reboot", inQuery: map[string]string{"type": "reboot_type"}},
	"OP_INSTANCE_SET_PARAMS": {method: http.MethodPut, path: "/modify", inBody: map[string]string{"beparams": "beparams"}},
	"OP_TAGS_SET":            {method: http.MethodPut, path: "/tags", inQuery: map[string]string{"tag": "tags"}},
	"OP_TAGS_DEL":            {method: http.MethodDelete, path: "/tags", inQuery: map[string]string{"tag": "tags"}},
}

// creationVersion is that of the body that makes an instance.
const creationVersion = 1

// maxReason is how much of a reason trail is told, in bytes: it is part of a URL.
const maxReason = 1500

// inASCII writes what is beyond ASCII as escapes: in many installations Ganeti's
// daemons cannot write anything else to their files, and no job that has it.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// requestOf translates an opcode.
func requestOf(op *opcode.Opcode) (q request, instance string, err error) {
	why := make([]string, len(op.Reason))
	for i, e := range op.Reason {
		why[i] = e.Reason
	}
	q.query = url.Values{"reason": {fault.Clip(inASCII(strings.Join(why, "; ")), maxReason)}}
	instance = op.Str("instance_name")
	if op.Str("kind") == "instance" {
		instance = op.Str("name")
	}
	if op.ID == "OP_INSTANCE_CREATE" {
		q.method, q.path, q.body = http.MethodPost, "/2/instances", maps.Clone(op.Params)
		q.body["__version__"] = creationVersion
		return q, instance, nil
	}
	how, known := requests[op.ID]
	if !known {
		return q, instance, fault.New(fault.Invalid, "no request of a remote cluster is known for %s", op.ID)
	}
	q.method, q.path = how.method, "/2/instances/"+url.PathEscape(instance)+how.path
	for name, param := range how.inQuery {
		if text := op.Str(param); text != "" {
			q.query.Set(name, text)
		}
		for _, text := range op.Strings(param) {
			q.query.Add(name, text)
		}
	}
	if how.inBody != nil {
		q.body = map[string]any{}
		for name, param := range how.inBody {
			q.body[name] = op.Params[param]
		}
	}
	return q, instance, nil
}

// Submit hands a job in.
func (c *Cluster) Submit(ctx context.Context, key string, op *opcode.Opcode) (job.ID, error) {
	q, instance, err := requestOf(op)
	if err != nil {
		return 0, err
	}
	q.key = key
	var id number
	if err := c.do(ctx, q, &id); err != nil {
		return 0, err
	}
	c.expect(job.ID(id), instance)
	return job.ID(id), nil
}

// expect has a job asked for until it has ended.
func (c *Cluster) expect(id job.ID, instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.jobs[id]; !known {
		c.jobs[id] = instance
		close(c.news)
		c.news = make(chan struct{})
	}
}

// remoteJob is what a cluster tells of a job.
type remoteJob struct {
	Status   job.Status        `json:"status"`
	Statuses []job.Status      `json:"opstatus"`
	Results  []json.RawMessage `json:"opresult"`
	Began    *stamp            `json:"start_ts"`
	Ended    *stamp            `json:"end_ts"`
	Ops      []remoteOp        `json:"ops"`
}

// remoteOp is what is looked at of an opcode.
type remoteOp struct {
	ID       string              `json:"OP_ID"`
	Instance string              `json:"instance_name"`
	Reason   [][]json.RawMessage `json:"reason"`
}

// stamp is a time in seconds and microseconds; nil where there is none.
type stamp [2]int64

func (s *stamp) time() job.Time {
	if s == nil {
		return 0
	}
	return job.Time(s[0]*1e6 + s[1])
}

// outcome is how a job ended, or false.
func (j *remoteJob) outcome() (servertag.Outcome, bool) {
	switch {
	case j.Status == job.Success:
		return servertag.Outcome{OK: true}, true
	case j.Status != job.Error && !strings.HasPrefix(string(j.Status), "cancel") || j.Status == job.Canceling:
		return servertag.Outcome{}, false
	}
	for i, s := range j.Statuses {
		if s != job.Success && i < len(j.Results) {
			o := tagsync.ReadOutcome(s, j.Results[i])
			o.Began, o.Ended = j.Began.time(), j.Ended.time()
			return o, true
		}
	}
	return servertag.Outcome{Text: "the job is " + string(j.Status)}, true
}

// ended asks for a job.
func (c *Cluster) ended(ctx context.Context, id job.ID) (servertag.Outcome, bool, error) {
	j, known, err := c.job(ctx, id)
	if err != nil {
		return servertag.Outcome{}, false, err
	}
	if !known {
		return servertag.Outcome{Text: "the job is not known any more"}, true, nil
	}
	if j.repeated() {
		return c.first(ctx, id, j)
	}
	o, over := j.outcome()
	return o, over, nil
}

// job asks for a job; false for one that the cluster does not know any more.
func (c *Cluster) job(ctx context.Context, id job.ID) (j *remoteJob, known bool, err error) {
	j = &remoteJob{}
	err = c.do(ctx, request{method: http.MethodGet, path: "/2/jobs/" + id.String()}, j)
	if fault.Is(err, fault.NotFound) {
		return nil, false, nil
	}
	return j, err == nil, err
}

// repeated reports whether the job failed to make an instance because it is there,
// as the second of two does that were handed in for one creation: a stock Ganeti
// knows no submission keys, so it takes both when the first answer was lost.
func (j *remoteJob) repeated() bool {
	return j.Status == job.Error && len(j.Ops) == 1 && j.Ops[0].ID == "OP_INSTANCE_CREATE" && len(j.Results) == 1 && job.ErrorCode(j.Results[0]) == "already_exists"
}

// first finds out what became of the job before another one that was handed in for
// the same creation; of that one itself if there was none before. The reason trail
// names the request, so the two share an entry, which no others do.
func (c *Cluster) first(ctx context.Context, id job.ID, second *remoteJob) (servertag.Outcome, bool, error) {
	var all []struct {
		ID  number     `json:"id"`
		Ops []remoteOp `json:"ops"`
	}
	if err := c.do(ctx, request{method: http.MethodGet, path: "/2/jobs", query: url.Values{"bulk": {"1"}}}, &all); err != nil {
		return servertag.Outcome{}, false, err
	}
	for _, other := range all {
		if job.ID(other.ID) < id && len(other.Ops) == 1 && other.Ops[0].same(&second.Ops[0]) {
			first, known, err := c.job(ctx, job.ID(other.ID))
			if err != nil {
				return servertag.Outcome{}, false, err
			}
			if known && !first.repeated() {
				o, over := first.outcome()
				return o, over, nil
			}
		}
	}
	o, over := second.outcome()
	return o, over, nil
}

// same reports whether two opcodes make the same instance for the same reason.
func (o *remoteOp) same(other *remoteOp) bool {
	if o.ID != other.ID || o.Instance != other.Instance {
		return false
	}
	reasons := map[string]bool{}
	for _, text := range o.reasons() {
		reasons[text] = true
	}
	return slices.ContainsFunc(other.reasons(), func(text string) bool { return reasons[text] })
}

// reasons are the texts of the reason trail.
func (o *remoteOp) reasons() []string {
	var out []string
	for _, entry := range o.Reason {
		const parts = 3 // source, text, time
		var text string
		if len(entry) == parts && json.Unmarshal(entry[1], &text) == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// remoteInstance is what a cluster tells of an instance.
type remoteInstance struct {
	Name  string   `json:"name"`
	UUID  string   `json:"uuid"`
	Tags  []string `json:"tags"`
	Admin any      `json:"admin_state"` // "up" and others, or whether it is
	Made  float64  `json:"ctime"`       // seconds since the epoch
}

func (i *remoteInstance) stopped() bool { return i.Admin != "up" && i.Admin != true }

// same reports whether an instance looks as before, as far as servers show it.
func (i *remoteInstance) same(o *remoteInstance) bool {
	return i.UUID == o.UUID && i.Admin == o.Admin && slices.Equal(i.Tags, o.Tags)
}

// Look asks for the jobs, and then for the instance.
func (c *Cluster) Look(ctx context.Context, instance string, jobs []job.ID) (server.Sight, error) {
	sight := server.Sight{Sight: servertag.Sight{Ended: map[job.ID]servertag.Outcome{}}}
	for _, id := range jobs {
		outcome, over, err := c.ended(ctx, id)
		if err != nil {
			return sight, err
		}
		if over {
			sight.Ended[id] = outcome
			continue
		}
		c.expect(id, instance)
	}
	var i remoteInstance
	err := c.do(ctx, request{method: http.MethodGet, path: "/2/instances/" + url.PathEscape(instance)}, &i)
	if fault.Is(err, fault.NotFound) {
		return sight, nil
	}
	if err != nil {
		return sight, err
	}
	if strings.HasPrefix(i.Name, instance+".") { // for which a Ganeti takes the short name, too
		return sight, nil
	}
	if i.Name != instance {
		return sight, fault.New(fault.Unavailable, "cluster %s was asked for instance %s and tells of %q", c.cfg.URL, instance, fault.Clip(i.Name, 100))
	}
	sight.Instance, sight.Tags, sight.UUID, sight.Made, sight.Stopped = true, i.Tags, i.UUID, job.Time(math.Round(i.Made*1e6)), i.stopped()
	return sight, nil
}

// Has looks into what the cluster listed last.
func (c *Cluster) Has(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[instance] != nil
}
