package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/store"
)

// ask is what a tab wants to see: a view, and what that leaves open.
type ask struct {
	View string `json:"view"`
	// ID is the job, node or instance that a view is about.
	ID string `json:"id"`
	// Filter, Sort and Limit are those of a list.
	Filter string `json:"filter"`
	Sort   string `json:"sort"`
	Limit  int    `json:"limit"`
	// Item, Fields, By and Figures are those of a view of anything.
	Item    string `json:"item"`
	Fields  string `json:"fields"`
	By      string `json:"by"`
	Figures string `json:"figures"`
	// Since is the revision of the last message about it that the tab has seen; it is no part of what is asked.
	Since string `json:"since"`
}

func (a ask) since() int64 {
	n, err := strconv.ParseInt(a.Since, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// key tells asks apart.
func (a ask) key() string {
	a.Since = ""
	return string(encoded(a))
}

// view is one thing that a screen shows: the answer of a query, of a query by groups, or a value.
type view struct {
	// item, fields, filter, sort and limit are a query's; with by and figures it is one by groups. The filter is text, in which $id is what the ask says.
	item, fields, filter, sort string
	limit                      int
	by, figures                string
	// list: the ask may narrow it with a filter, sort it, and say how many rows it wants.
	list bool
	// any: the ask says of which item, with which fields, or by what in groups.
	any bool
	// value is what is shown in place of a query, looked at after changes and every so often. It rests at least as long as pause after each look.
	value        func(ctx context.Context, s *Server, id string) (any, error)
	every, pause time.Duration
	// command is how the command line shows the same; $id stands for what the ask says, $filter for the filter with that, and the options of a list follow.
	command string
}

// Filters that several views have.
const (
	unfinished = `(status == "queued" or status == "waiting" or status == "canceling" or status == "running")`
	waiting    = `(status == "queued" or status == "waiting" or status == "canceling")`
	// ofUnfinished is of opcodes, whose jobs have not ended.
	ofUnfinished = `(job_status == "queued" or job_status == "waiting" or job_status == "canceling" or job_status == "running")`
)

// mostRows is how many rows of a list a tab may have at once.
const mostRows = 2000

const (
	jobFields      = "id,status,summary,wait_reason,place,priority,reason,received_ts,start_ts,end_ts,waits_since,step"
	nodeFields     = "name,role,group,offline,drained,master,pinst_cnt,sinst_cnt,mtotal,mfree,dtotal,dfree,told_at,last_change_reason"
	instanceFields = "name,status,pnode,os,be/vcpus,oper_ram,be/maxmem,tags,last_change_reason,last_change"
	opcodeFields   = "job,summary,job_status,status,reason"
	eventFields    = "id,timestamp,what,object,name,who,surface,from,reason"
	groupFields    = "name,node_cnt,pinst_cnt,alloc_policy,tags,mtime"
	networkFields  = "name,network,gateway,free_count,reserved_count,inst_cnt,group_list,tags,mtime"
	changeFields   = "last_change,last_change_job,last_change_reason,last_change_trail"
)

// hoursPause is how long charts of the last hours rest: they count every job of that time.
const hoursPause = 10 * time.Second

// views are all that tabs may show. What is in them, and in which order, is decided here and below; the page shows it.
var views = map[string]view{
	"now.jobs":      {item: "job", filter: unfinished, by: "status", figures: "count", command: "drover job list --group-by status --figures count"},
	"now.ended":     {item: "job", filter: `end_ts > -1h`, by: "status", figures: "count", command: "drover job list --filter 'end_ts > -1h' --group-by status --figures count"},
	"now.holds":     {value: holds, every: time.Minute, pause: time.Second, command: "drover top holds"},
	"now.running":   {item: "job", fields: jobFields, filter: `status == "running"`, sort: "start_ts", limit: 12, command: "drover job list --running"},
	"now.failed":    {item: "job", fields: jobFields, filter: `status == "error" and end_ts > -24h`, sort: "-end_ts", limit: 8, command: "drover job list --filter 'status == \"error\" and end_ts > -24h' --sort -end_ts --limit 8"},
	"now.instances": {item: "instance", by: "status", figures: "count", command: "drover instance list --group-by status --figures count"},
	// Of the last hours: what the charts show, which nobody has to see to the second.
	"now.hours.came": {item: "job", filter: `received_ts > -6h`, by: "received_ts/10m", figures: "count", pause: hoursPause,
		command: "drover job list --filter 'received_ts > -6h' --group-by received_ts/10m --figures count"},
	"now.hours.ended": {item: "job", filter: `end_ts > -6h`, by: "end_ts/10m,status", figures: "count", pause: hoursPause,
		command: "drover job list --filter 'end_ts > -6h' --group-by end_ts/10m,status --figures count"},
	"now.hours.waited": {item: "job", filter: `start_ts > -6h`, by: "start_ts/10m", figures: "avg(begun_after),max(begun_after)", pause: hoursPause,
		command: "drover job list --filter 'start_ts > -6h' --group-by start_ts/10m --figures 'avg(begun_after),max(begun_after)'"},
	"now.health": {value: healthOf, every: 5 * time.Second, pause: 5 * time.Second, command: "drover cluster health"},

	"jobs":       {item: "job", fields: jobFields, sort: "-id", limit: 200, list: true, command: "drover job list"},
	"jobs.count": {item: "job", by: "status", figures: "count", list: true, command: "drover job list --group-by status --figures count"},
	"job": {item: "job", fields: jobFields + ",ops,opstatus,opresult,opstart,opexec,opend,opsteps,reason_trail,ran_on,timeline,dry_run,archived", filter: "id == $id",
		command: "drover job info $id"},
	"job.explain": {value: explain, every: 10 * time.Second, pause: rest, command: "drover job explain $id"},
	"job.around":  {value: around, every: 10 * time.Second, pause: rest, command: "drover job explain $id"},
	"job.log":     {value: logOf, every: time.Minute, pause: rest, command: "drover job watch $id"},

	"nodes":       {item: "node", fields: nodeFields, sort: "name", limit: 500, list: true, command: "drover node list"},
	"nodes.count": {item: "node", by: "role", figures: "count", list: true, command: "drover node list --group-by role --figures count"},
	"node":        {item: "node", fields: nodeFields + ",uuid,pip,sip,mnode,ctotal,tags,pinst_list,sinst_list," + changeFields, filter: "name == $id", command: "drover why $id"},
	"node.instances": {item: "instance", fields: instanceFields, filter: "pnode == $id or $id in snodes", sort: "name", limit: 500,
		command: `drover instance list --filter $filter`},

	"instances":       {item: "instance", fields: instanceFields, sort: "name", limit: 200, list: true, command: "drover instance list"},
	"instances.count": {item: "instance", by: "status", figures: "count", list: true, command: "drover instance list --group-by status --figures count"},
	"instance": {item: "instance", fields: instanceFields + ",uuid,admin_state,hypervisor,snodes,disk_template,disk.sizes,disk.names,nic.ips,nic.macs,nic.networks.names,beparams,told_state," + changeFields,
		filter: "name == $id", command: "drover why $id"},

	"object.jobs": {item: "opcode", fields: opcodeFields, sort: "-job", limit: 50, filter: "object == $id and " + ofUnfinished, command: "drover why $id"},

	"groups":       {item: "group", fields: groupFields, sort: "name", limit: 500, list: true, command: "drover group list"},
	"groups.count": {item: "group", by: "alloc_policy", figures: "count", list: true, command: "drover group list --group-by alloc_policy --figures count"},
	"group": {item: "group", fields: groupFields + ",uuid,ctime,ndparams,custom_ndparams,ipolicy,custom_ipolicy", filter: "name == $id",
		command: "drover group info $id"},
	"group.nodes":     {item: "node", fields: nodeFields, filter: "group == $id", sort: "name", limit: 500, command: "drover node list --filter $filter"},
	"group.instances": {item: "instance", fields: instanceFields, filter: "pnode.group == $id", sort: "name", limit: 500, command: "drover instance list --filter $filter"},
	"group.networks":  {value: networksOfGroup, every: time.Minute, pause: rest, command: "drover network list"},
	"group.jobs": {item: "opcode", fields: opcodeFields, sort: "-job", limit: 50, filter: `object_kind == "group" and object == $id and ` + ofUnfinished,
		command: "drover query opcode --filter $filter"},

	"networks":       {item: "network", fields: networkFields, sort: "name", limit: 500, list: true, command: "drover network list"},
	"networks.count": {item: "network", figures: "count", list: true, command: "drover network list --figures count"},
	"network": {item: "network", fields: networkFields + ",uuid,ctime,network6,gateway6,mac_prefix,external_reservations", filter: "name == $id",
		command: "drover network info $id"},
	"network.instances": {value: instancesOnNetwork, every: time.Minute, pause: rest, command: "drover network info $id"},
	"network.jobs": {item: "opcode", fields: opcodeFields, sort: "-job", limit: 50, filter: `object_kind == "network" and object == $id and ` + ofUnfinished,
		command: "drover query opcode --filter $filter"},

	"rules": {item: "filter", fields: "uuid,rule,rule_name,priority,action_text,predicates_text,reason,added_by,until,shadow,held,decides,would_hold,changed,longest_hold,comment", limit: 500,
		command: "drover filter list"},

	"environments":      {item: "environment", fields: "name,deployed,node_cnt,graphs,generation,mtime,who,reason_trail", sort: "name", limit: 500, command: "drover deploy env list"},
	"environment":       {item: "environment", fields: "name,status,deployed,node_cnt,nodes,graphs,generation,ctime,mtime,who,reason_trail", filter: "name == $id", command: "drover deploy env show $id"},
	"deployments":       {item: "deployment", fields: "id,environment,status,mode,runs,steps,begun,ended,created,who,why", sort: "-id", limit: 200, list: true, command: "drover query deployment"},
	"deployments.count": {item: "deployment", by: "status", figures: "count", list: true, command: "drover query deployment --group-by status --figures count"},
	"deployment":        {value: deploymentOf, every: time.Minute, pause: rest, command: "drover deploy status $id"},
	"deployment.tasks":  {item: "task", fields: "step,node,task,type,state,why,error,job,held_by,begun,ended", filter: "deployment == $id", sort: "step", limit: 500, list: true, command: "drover deploy tasks $id"},
	"deployment.step":   {value: stepOf, every: time.Minute, pause: rest, command: "drover deploy tasks"},

	"servers":       {item: "server", fields: "id,name,status,task,backend,instance,tags,pending,failed,pending_since,unmatched", sort: "name", limit: 200, list: true, command: "drover query server"},
	"servers.count": {item: "server", by: "status", figures: "count", list: true, command: "drover query server --group-by status --figures count"},
	"server": {item: "server", fields: "id,name,status,task,fault,project,flavor,image,backend,instance,instance_uuid,ctime,built,unmatched,deleted,tags,system_tags,generation,pending,failed,pending_since,jobs",
		filter: "id == $id", command: `drover query server --filter $filter`},
	"server.tags": {item: "server-tag", fields: "tag,namespace,raw,status,wanted,seen,job,held_by,waits_for,tries,retry,failure,user,front,asked,pending_since", filter: "server == $id", sort: "tag", limit: 500,
		command: `drover query server-tag --filter $filter`},

	"query": {limit: 200, list: true, any: true},

	"audit":       {item: "event", fields: eventFields, sort: "-id", limit: 200, list: true, command: "drover query event"},
	"audit.count": {item: "event", by: "what", figures: "count", list: true, command: "drover query event --group-by what --figures count"},
	"event":       {item: "event", fields: eventFields + ",reason_trail,before,after", filter: "id == $id", command: "drover query event -o +reason_trail,before,after --filter $filter"},
}

// source is a view as it changes.
type source func(context.Context) iter.Seq2[*live.Update, error]

// sourceOf finds what a tab asks for, and how the command line shows the same. The error names what of it cannot be.
func (s *Server) sourceOf(a ask) (source, string, error) {
	v, ok := views[a.View]
	if !ok {
		return nil, "", fault.New(fault.NotFound, "there is no view %q", fault.Clip(a.View, 50))
	}
	if !v.list && (a.Filter != "" || a.Sort != "" || a.Limit != 0) {
		return nil, "", fault.New(fault.Invalid, "the view %s is no list", a.View)
	}
	if a.Limit < 0 || a.Limit > mostRows {
		return nil, "", fault.New(fault.TooLarge, "a list has at most %d rows at a time", mostRows)
	}
	v, err := v.opened(a)
	if err != nil {
		return nil, "", err
	}
	id, err := v.literal(a.ID)
	if err != nil {
		return nil, "", err
	}
	command := strings.NewReplacer("$id", quoted(a.ID), "$filter", quoted(strings.ReplaceAll(v.filter, "$id", id))).Replace(v.command)
	if a.Filter != "" {
		command += " --filter " + quoted(a.Filter)
	}
	if a.Sort != "" {
		command += " --sort " + quoted(a.Sort)
	}
	if v.value != nil {
		return func(ctx context.Context) iter.Seq2[*live.Update, error] { return s.values(ctx, v, a.ID) }, command, nil
	}
	r, err := v.request(a)
	if err == nil {
		err = items.All.Check(query.Request{What: r.What, Fields: slices.Concat(r.Fields, grouped(v.by)), Filter: r.Filter, Options: optionsOf(v, r)}, s.cfg.Now())
	}
	if err == nil {
		err = items.All.CheckGroups(r.What, words(v.by))
	}
	if err != nil {
		return nil, "", err
	}
	if v.figures == "" {
		return func(ctx context.Context) iter.Seq2[*live.Update, error] { return s.cfg.Querier.Show(ctx, r, rest) }, command, nil
	}
	figures, err := query.ParseCalcs(words(v.figures))
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context) iter.Seq2[*live.Update, error] {
		return s.cfg.Querier.ShowGroups(ctx, r, words(v.by), figures, max(rest, v.pause))
	}, command, nil
}

// grouped are the fields that groups are made by.
func grouped(by string) []string {
	out := words(by)
	for i := range out {
		out[i] = query.GroupedField(out[i])
	}
	return out
}

// optionsOf are the options of a request as far as they are about the fields of its item: those of groups are about figures.
func optionsOf(v view, r query.Request) query.Options {
	if v.figures != "" {
		return query.Options{}
	}
	return r.Options
}

// request is the query of a view.
func (v view) request(a ask) (query.Request, error) {
	var all []qlang.Node
	id, err := v.literal(a.ID)
	if err != nil {
		return query.Request{}, err
	}
	for _, text := range []string{strings.ReplaceAll(v.filter, "$id", id), a.Filter} {
		if strings.TrimSpace(text) == "" {
			continue
		}
		node, err := typed(text)
		if err != nil {
			return query.Request{}, err
		}
		all = append(all, node)
	}
	filter := qlang.Node(&qlang.All{})
	switch len(all) {
	case 1:
		filter = all[0]
	case 2:
		filter = &qlang.And{Args: all}
	}
	r := query.Request{What: v.item, Fields: words(v.fields), Filter: filter, Options: query.Options{Sort: query.ParseSort(words(v.sort)), Limit: v.limit}}
	if a.Sort != "" && (v.figures == "" || v.any) {
		r.Options.Sort = query.ParseSort(words(a.Sort))
	}
	if a.Limit != 0 && (v.figures == "" || v.any) {
		r.Options.Limit = a.Limit
	}
	return r, nil
}

// typed reads a filter as our own commands read it: a value that is missing meets no test. One by a name alone stays what it is: then it is an error that
// there is no such thing.
func typed(text string) (qlang.Node, error) {
	node, err := qlang.ParseText(text)
	if err != nil {
		return nil, err
	}
	if c, one := node.(*qlang.Compare); one && c.Op == qlang.Eq && (c.Field == "name" || c.Field == "id") {
		return node, nil
	}
	return qlang.Strict(node), nil
}

// numbered are the items whose views are about something that has a number, and what that is.
var numbered = map[string]string{"job": "a job", "event": "an event", "task": "a deployment"}

// literal is what a view is about, as filters write it: of jobs a number, else a text.
func (v view) literal(id string) (string, error) {
	if numbered[v.item] == "" {
		return literalOf(id)
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil && strings.Contains(v.filter, "$id") {
		return "", fault.New(fault.Invalid, "%q is no number of %s", fault.Clip(id, 50), numbered[v.item])
	}
	return strconv.FormatInt(n, 10), nil
}

func words(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

// quoted is a text as shells take it for one word.
func quoted(text string) string {
	plain := func(r rune) bool {
		return r != '-' && r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if text != "" && strings.IndexFunc(text, plain) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// restParts is how much longer than it worked a value rests.
const restParts = 4

// values yields a value as it changes.
func (s *Server) values(ctx context.Context, v view, id string) iter.Seq2[*live.Update, error] {
	return func(yield func(*live.Update, error) bool) {
		var last []byte
		for {
			picture := s.cfg.Querier.Picture
			changed, revision, begun := picture.Changed(), picture.Load().Revision, time.Now()
			value, err := v.value(ctx, s, id)
			if ctx.Err() != nil {
				return
			}
			text, broken := json.Marshal(value)
			if err == nil {
				err = broken
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !bytes.Equal(text, last) && !yield(&live.Update{Revision: store.Revision(revision), Reset: true, Events: []query.Event{{Row: text}}}, nil) {
				return
			}
			last = text
			if !wait(ctx, nil, max(v.pause, restParts*time.Since(begun))) || !wait(ctx, changed, v.every) {
				return
			}
		}
	}
}

// wait waits for a signal or a time; false at the end of ctx.
func wait(ctx context.Context, signal <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-signal:
	case <-timer.C:
	}
	return true
}

func healthOf(ctx context.Context, s *Server, _ string) (any, error) { return s.cfg.Health(ctx), nil }

// explain is why a job is where it is.
func explain(ctx context.Context, s *Server, id string) (any, error) {
	n, err := jobNumber(id)
	if err != nil {
		return nil, err
	}
	return s.cfg.Queue.Explain(ctx, n)
}

// logLines is how many of the newest lines of a job's log a tab is shown.
const logLines = 500

// logLine is one entry of a job's log.
type logLine struct {
	Opcode int             `json:"opcode"`
	Serial int64           `json:"serial"`
	Time   job.Time        `json:"time"`
	Type   string          `json:"type"`
	Text   json.RawMessage `json:"text"`
}

// logOf is the end of a job's log, and how much there is before it.
func logOf(ctx context.Context, s *Server, id string) (any, error) {
	n, err := jobNumber(id)
	if err != nil {
		return nil, err
	}
	j, err := s.cfg.Queue.Job(ctx, n)
	if err != nil {
		return nil, err
	}
	lines := []logLine{}
	for i := range j.Ops {
		for _, e := range j.Ops[i].Log {
			lines = append(lines, logLine{i, e.Serial, e.Time, e.Type, e.Payload})
		}
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return int(a.Serial - b.Serial) })
	left := max(len(lines)-logLines, 0)
	return map[string]any{"lines": lines[left:], "left_out": left}, nil
}

// hold is what keeps jobs from going on, with the first of them explained.
type hold struct {
	Step   string   `json:"step"`
	Why    string   `json:"why"`
	On     []string `json:"on"`
	Jobs   int64    `json:"jobs"`
	First  int64    `json:"first"`
	Since  any      `json:"since"`
	Filter string   `json:"filter"`
	// Sentence and Change are of the explanation of the first job; empty of those that come after the first few.
	Sentence string           `json:"sentence,omitempty"`
	Change   []machine.Remedy `json:"change,omitempty"`
}

// held is what keeps jobs from going on.
type held struct {
	// Jobs are how many wait. Holds are the first of what they wait for, More is what comes behind these.
	Jobs  int64   `json:"jobs"`
	Holds []hold  `json:"holds"`
	More  unshown `json:"more"`
}

// unshown is what comes behind what is shown: so many holds, of so many jobs.
type unshown struct {
	Holds int64 `json:"holds"`
	Jobs  int64 `json:"jobs"`
}

// mostHolds is how many are shown, and explained how many of them say why.
const (
	mostHolds = 20
	explained = 6
)

// holds is what keeps jobs from going on, what keeps most of them first.
func holds(ctx context.Context, s *Server, _ string) (any, error) {
	filter, err := qlang.ParseText(waiting)
	if err != nil {
		return nil, err
	}
	figures, err := query.ParseCalcs([]string{"count", "min(id)", "min(waits_since)"})
	if err != nil {
		return nil, err
	}
	r := query.Request{What: "job", Filter: filter, Options: query.Options{Sort: query.ParseSort([]string{"-count", "min(id)"})}}
	result, err := s.cfg.Querier.Group(ctx, r, []string{"step", "wait_reason", "waits_for"}, figures)
	if err != nil {
		return nil, err
	}
	out := held{Holds: []hold{}}
	for row := range result.Rows() {
		jobs, _ := row[3].Value.(int64)
		out.Jobs += jobs
		if len(out.Holds) == mostHolds {
			out.More = unshown{out.More.Holds + 1, out.More.Jobs + jobs}
			continue
		}
		h, err := s.holdOf(ctx, row, len(out.Holds) < explained)
		if err != nil {
			return nil, err
		}
		out.Holds = append(out.Holds, h)
	}
	return out, nil
}

// holdOf is the hold of a row of groups, explained if that is wanted.
func (s *Server) holdOf(ctx context.Context, row []query.Cell, explain bool) (hold, error) {
	h := hold{On: []string{}, Since: row[5].Value}
	h.Step, _ = row[0].Value.(string)
	h.Why, _ = row[1].Value.(string)
	h.On, _ = row[2].Value.([]string)
	h.Jobs, _ = row[3].Value.(int64)
	h.First, _ = row[4].Value.(int64)
	h.Filter = fmt.Sprintf("%s and step == %q", waiting, h.Step)
	if h.Why != "" {
		h.Filter = fmt.Sprintf("%s and wait_reason == %q", waiting, h.Why)
	}
	if !explain {
		return h, nil
	}
	x, err := s.cfg.Queue.Explain(ctx, job.ID(h.First))
	if err != nil && !fault.Is(err, fault.NotFound) { // it may have gone by now
		return h, err
	}
	if string(x.Step) == h.Step { // else it has gone on meanwhile, and what is said would be about something else
		h.Sentence, h.Change = x.Why, x.Change
	}
	return h, nil
}

// fieldsOf tells which fields there are, for filters.
func fieldsOf(_ *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	return items.All.Fields(r.PathValue("item"), nil)
}
