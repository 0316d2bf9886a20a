package ganeti

import (
	"context"
	"encoding/json"
	"fmt"
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
	"OP_INSTANCE_GROW_DISK":  {method: http.MethodPost, path: "/disk/0/grow", inBody: map[string]string{"amount": "amount", "absolute": "absolute"}}, // servers have one
	"OP_TAGS_SET":            {method: http.MethodPut, path: "/tags", inQuery: map[string]string{"tag": "tags"}},
	"OP_TAGS_DEL":            {method: http.MethodDelete, path: "/tags", inQuery: map[string]string{"tag": "tags"}},
}

// reinstallation are the opcodes of the one request that makes a job of several, the last of which may be left out.
var reinstallation = []string{"OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REINSTALL", "OP_INSTANCE_STARTUP"}

// isReinstallation reports whether opcodes are those.
func isReinstallation[T any](ops []T, id func(T) string) bool {
	return (len(ops) == len(reinstallation) || len(ops) == len(reinstallation)-1) &&
		slices.EqualFunc(ops, reinstallation[:len(ops)], func(op T, want string) bool { return id(op) == want })
}

// requestOfJob translates the opcodes of a job. A stock Ganeti takes a body of a reinstallation without a query, and so without a reason, which it keeps of none; or
// a query, of which it takes what it knows.
func requestOfJob(ops []*opcode.Opcode) (q request, instance server.Ref, err error) {
	if len(ops) == 1 {
		return requestOf(ops[0])
	}
	if !isReinstallation(ops, func(op *opcode.Opcode) string { return op.ID }) {
		return q, instance, fault.New(fault.Invalid, "no request of a remote cluster is known for a job of %d opcodes", len(ops))
	}
	if q, instance, err = requestOf(ops[0]); err != nil {
		return q, instance, err
	}
	q.method, q.path, q.body = http.MethodPost, "/2/instances/"+url.PathEscape(instance.Name)+"/reinstall", nil
	q.query.Set("os", ops[1].Str("os_type"))
	q.query.Set("nostartup", map[bool]string{true: "0", false: "1"}[len(ops) == len(reinstallation)])
	return q, instance, nil
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
func requestOf(op *opcode.Opcode) (q request, instance server.Ref, err error) {
	why := make([]string, len(op.Reason))
	for i, e := range op.Reason {
		why[i] = e.Reason
	}
	q.query = url.Values{"reason": {fault.Clip(inASCII(strings.Join(why, "; ")), maxReason)}}
	instance = server.Ref{UUID: op.Str("instance_uuid"), Name: op.Str("instance_name")}
	if op.Str("kind") == "instance" {
		instance.Name = op.Str("name")
	}
	if instance.UUID != "" { // a stock Ganeti does not look at it
		q.query.Set("instance_uuid", instance.UUID)
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
	q.method, q.path = how.method, "/2/instances/"+url.PathEscape(instance.Name)+how.path
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

// Newest tells the newest job that the cluster knows. Whether it knows keys it does not say.
func (c *Cluster) Newest(ctx context.Context) (id job.ID, keyed bool, err error) {
	err = each(ctx, c, request{method: http.MethodGet, path: "/2/jobs"}, func(listed listedJob) error {
		id = max(id, job.ID(listed.ID))
		return nil
	})
	return id, false, err
}

// Find looks for the job of a reinstallation. A stock Ganeti keeps no reason of one, so it is known by what it does, and that it is behind all jobs that were
// there before.
func (c *Cluster) Find(ctx context.Context, after job.ID, ops ...*opcode.Opcode) (found job.ID, err error) {
	if !isReinstallation(ops, func(op *opcode.Opcode) string { return op.ID }) {
		return 0, fault.New(fault.Invalid, "only jobs of reinstallations are looked for")
	}
	name, system := ops[1].Str("instance_name"), ops[1].Str("os_type")
	err = c.eachJob(ctx, func(listed listedJob) error {
		same := len(listed.Ops) == len(ops) && isReinstallation(listed.Ops, func(op remoteOp) string { return op.ID }) &&
			listed.Ops[1].Instance == name && listed.Ops[1].System == system
		if id := job.ID(listed.ID); same && id > after && (found == 0 || id < found) {
			found = id
		}
		return nil
	})
	if err == nil && found != 0 {
		c.expect(found, server.Ref{UUID: ops[1].Str("instance_uuid"), Name: name})
	}
	return found, err
}

// Submit hands a job in.
func (c *Cluster) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	q, instance, err := requestOfJob(ops)
	if err != nil {
		return 0, err
	}
	if err := c.still(ctx, instance); err != nil {
		return 0, &tagsync.UntakenError{Err: err}
	}
	q.key = key
	var id number
	if err := c.do(ctx, q, &id); err != nil {
		return 0, err
	}
	c.expect(job.ID(id), instance)
	return job.ID(id), nil
}

// still refuses a job about an instance, if it is meant by its UUID, whose name another one has. A stock Ganeti does things by name, so it is
// looked at as late as can be; a Drover looks again when the job's turn comes.
func (c *Cluster) still(ctx context.Context, instance server.Ref) error {
	if instance.UUID == "" {
		return nil
	}
	i, err := c.named(ctx, instance.Name)
	switch {
	case err != nil:
		return err
	case i == nil:
		return fault.New(fault.NotFound, "cluster %s has no instance %s", c.cfg.URL, instance.Name)
	case i.UUID != instance.UUID:
		return fault.New(fault.Exists, "instance %s of cluster %s is another one by now, with the UUID %s", instance.Name, c.cfg.URL, fault.Clip(i.UUID, 100))
	}
	return nil
}

// expect has a job asked for until it has ended.
func (c *Cluster) expect(id job.ID, instance server.Ref) {
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
	System   string              `json:"os_type"`
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
		return servertag.Outcome{OK: true, Began: j.Began.time(), Ended: j.Ended.time()}, true
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
	err = c.do(ctx, request{method: http.MethodGet, path: "/2/jobs/" + id.String(), limit: maxJob}, j)
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
	var same []job.ID
	err := c.eachJob(ctx, func(other listedJob) error {
		if job.ID(other.ID) < id && len(other.Ops) == 1 && other.Ops[0].same(&second.Ops[0]) {
			same = append(same, job.ID(other.ID))
		}
		return nil
	})
	if err != nil {
		return servertag.Outcome{}, false, err
	}
	for _, before := range same {
		first, known, err := c.job(ctx, before)
		if err != nil {
			return servertag.Outcome{}, false, err
		}
		if known && !first.repeated() {
			o, over := first.outcome()
			return o, over, nil
		}
	}
	o, over := second.outcome()
	return o, over, nil
}

// listedJob is a job in the list of all.
type listedJob struct {
	ID  number     `json:"id"`
	Ops []remoteOp `json:"ops"`
}

func (c *Cluster) eachJob(ctx context.Context, do func(listedJob) error) error {
	return each(ctx, c, request{method: http.MethodGet, path: "/2/jobs", query: url.Values{"bulk": {"1"}}, limit: maxJob}, do)
}

// Creation looks for the job that made a server's instance, among those that the cluster still knows: its reason names the
// server. Of several, which a stock Ganeti may have taken for one creation, the one counts that succeeded.
func (c *Cluster) Creation(ctx context.Context, _ string, s *server.Server) (o servertag.Outcome, known bool, err error) {
	var made []job.ID
	err = c.eachJob(ctx, func(listed listedJob) error {
		if len(listed.Ops) == 1 && listed.Ops[0].ID == "OP_INSTANCE_CREATE" &&
			slices.ContainsFunc(listed.Ops[0].reasons(), func(text string) bool { return strings.Contains(text, server.CreationReason(s.ID)) }) {
			made = append(made, job.ID(listed.ID))
		}
		return nil
	})
	if err != nil {
		return o, false, err
	}
	for _, id := range made {
		j, there, err := c.job(ctx, id)
		if err != nil {
			return o, false, err
		}
		if !there {
			continue
		}
		ended, over := j.outcome()
		if over && ended.OK {
			return ended, true, nil
		}
		if over {
			o, known = ended, true
		}
	}
	return o, known, nil
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
	Name string   `json:"name"`
	UUID string   `json:"uuid"`
	Tags []string `json:"tags"`
	Up   upState  `json:"admin_state"`
	Made float64  `json:"ctime"` // seconds since the epoch
}

// weight is about how much memory it takes, in bytes.
func (i *remoteInstance) weight() int {
	const alone, each = 256, 32
	n := alone + len(i.Name) + len(i.UUID)
	for _, tag := range i.Tags {
		n += each + len(tag)
	}
	return n
}

func (i *remoteInstance) stopped() bool { return !bool(i.Up) }

// upState is whether an instance is to run: "up" among other texts, or whether it is. Whatever else a cluster says is no.
type upState bool

// UnmarshalJSON reads either.
func (u *upState) UnmarshalJSON(text []byte) error {
	*u = string(text) == `"up"` || string(text) == "true"
	return nil
}

// same reports whether an instance looks as before, as far as servers show it.
func (i *remoteInstance) same(o *remoteInstance) bool {
	return i.UUID == o.UUID && i.Up == o.Up && slices.Equal(i.Tags, o.Tags)
}

// Look asks for the jobs, and then for the instance.
func (c *Cluster) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
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
	i, err := c.find(ctx, instance)
	if err != nil {
		return sight, err
	}
	if i == nil || instance.UUID != "" && i.UUID != instance.UUID {
		if sight.Absent, err = c.absent(ctx, instance, len(jobs) > 0 && len(sight.Ended) == len(jobs)); err != nil {
			return sight, err
		}
	}
	if i == nil {
		return sight, nil
	}
	sight.Instance, sight.Tags, sight.UUID, sight.Name, sight.Made, sight.Stopped = true, i.Tags, i.UUID, i.Name, job.Time(math.Round(i.Made*1e6)), i.stopped()
	return sight, nil
}

// find asks for an instance: the one of the name, unless another one has the UUID that is meant. Nil if there is none.
func (c *Cluster) find(ctx context.Context, instance server.Ref) (i *remoteInstance, err error) {
	if instance.Name != "" {
		if i, err = c.named(ctx, instance.Name); err != nil {
			return nil, err
		}
	}
	if instance.UUID == "" || i != nil && i.UUID == instance.UUID {
		return i, nil
	}
	renamed, err := c.identified(ctx, instance.UUID)
	if err == nil && renamed != nil {
		i = renamed
	}
	return i, err
}

// wholeLists is how many whole lists have to lack an instance before it counts as not there.
const wholeLists = 2

// absent returns why it is known that an instance is not there. Asked for by itself it was not found, which a proxy may have said, or a
// master that has just taken over: whole lists of the cluster have to lack its UUID, too, each begun after the other was read. An error
// where they do not, or cannot be had. Of one that was never seen nothing hangs upon that, unless its
// creation has just ended (made).
func (c *Cluster) absent(ctx context.Context, instance server.Ref, made bool) (why string, err error) {
	if instance.UUID == "" && !made {
		return fmt.Sprintf("cluster %s has no instance %s", c.cfg.URL, instance.Name), nil
	}
	n := 0
	for range wholeLists {
		n = 0
		err := c.eachInstance(ctx, func(i *remoteInstance) error {
			n++
			switch {
			case i.UUID == "":
				return fault.New(fault.Unavailable, "cluster %s does not tell the UUID of instance %s in its list", c.cfg.URL, i.Name)
			case i.UUID == instance.UUID, instance.UUID == "" && i.Name == instance.Name:
				return fault.New(fault.Unavailable, "cluster %s lists instance %s, and does not find it when it is asked for", c.cfg.URL, i.Name)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("cluster %s does not find it, and two whole lists lack it, the newer of %d instances", c.cfg.URL, n), nil
}

// eachInstance asks for all instances, and hands over one after the other.
func (c *Cluster) eachInstance(ctx context.Context, take func(*remoteInstance) error) error {
	all := request{method: http.MethodGet, path: "/2/instances", query: url.Values{"bulk": {"1"}}}
	return each(ctx, c, all, func(i *remoteInstance) error {
		if i == nil {
			return fault.New(fault.Unavailable, "cluster %s tells of nothing as an instance", c.cfg.URL)
		}
		return take(i)
	})
}

// named asks for the instance that has a name; nil if there is none.
func (c *Cluster) named(ctx context.Context, name string) (*remoteInstance, error) {
	i := &remoteInstance{}
	err := c.do(ctx, request{method: http.MethodGet, path: "/2/instances/" + url.PathEscape(name)}, i)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case strings.HasPrefix(i.Name, name+"."): // for which a Ganeti takes the short name, too
		return nil, nil
	case i.Name != name:
		return nil, fault.New(fault.Unavailable, "cluster %s was asked for instance %s and tells of %q", c.cfg.URL, name, fault.Clip(i.Name, 100))
	case i.UUID == "":
		return nil, fault.New(fault.Unavailable, "cluster %s does not tell the UUID of instance %s", c.cfg.URL, name)
	}
	return i, nil
}

// instanceFields are what is asked of an instance by a query.
var instanceFields = []string{"name", "uuid", "tags", "admin_state", "ctime"}

// identified asks for the instance that has a UUID, whatever its name is; nil if there is none.
func (c *Cluster) identified(ctx context.Context, uuid string) (*remoteInstance, error) {
	var told struct {
		Data [][][2]json.RawMessage `json:"data"`
	}
	err := c.do(ctx, request{method: http.MethodPut, path: "/2/query/instance", body: map[string]any{"fields": instanceFields, "qfilter": []any{"=", "uuid", uuid}}}, &told)
	if fault.Is(err, fault.NotFound) { // a cluster that is not asked so
		return nil, nil
	}
	if err != nil || len(told.Data) == 0 {
		return nil, err
	}
	i := &remoteInstance{}
	for k, into := range []any{&i.Name, &i.UUID, &i.Tags, &i.Up, &i.Made} {
		if len(told.Data[0]) != len(instanceFields) || json.Unmarshal(told.Data[0][k][1], into) != nil {
			return nil, fault.New(fault.Unavailable, "what cluster %s tells of the instance with the UUID %s cannot be read", c.cfg.URL, uuid)
		}
	}
	if i.UUID != uuid || i.Name == "" {
		return nil, fault.New(fault.Unavailable, "cluster %s was asked for the instance with the UUID %s and tells of %q", c.cfg.URL, uuid, fault.Clip(i.UUID, 100))
	}
	return i, nil
}

// Has looks into what the cluster listed last.
func (c *Cluster) Has(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[instance] != nil
}
