package web

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

// thing is a kind of item that people may ask anything about: which fields of it are shown, and in which order, when nothing else is said.
type thing struct {
	Item   string `json:"item"`
	Doc    string `json:"doc"`
	Fields string `json:"fields"`
	Sort   string `json:"sort"`
}

// things are those that the command line has, too (drover query ITEM), those first that are asked about most.
var things = []thing{
	{"job", "jobs that are not archived, and archived ones where the filter asks for them", "id,status,summary,wait_reason,reason,received_ts", "-id"},
	{"opcode", "the opcodes of all jobs, with their parameters as fields", "job,opcode,status,object,reason", "-job"},
	{"reason", "the entries of all reason trails, with the job and the thing that each is about", "timestamp,job,opcode,object,source,reason", "-timestamp"},
	{"event", "what was done that is no job, by whom", "timestamp,what,object,name,who,surface,reason", "-id"},
	{"instance", "virtual machines", "name,status,pnode,os,be/vcpus,oper_ram,tags", "name"},
	{"node", "machines that instances run on", "name,role,group,pinst_cnt,mfree,dfree,offline,drained", "name"},
	{"group", "groups of nodes", "name,node_cnt,pinst_cnt,alloc_policy", "name"},
	{"network", "networks of instances", "name,network,gateway,group_list,tags", "name"},
	{"image", "images that instances are installed from", "name,format,virtual_size,source", "name"},
	{"disk", "disks that no instance has", "name,uuid,size,template,nodes,former", "name"},
	{"export", "exports of instances", "node,export", "node"},
	{"filter", "filter rules", "rule,priority,action_text,predicates_text,held,decides,until", ""},
	{"lock", "locks that jobs have or wait for", "name,mode,owner,pending", "name"},
	{"environment", "what deployments deploy", "name,deployed,node_cnt,graphs,generation,mtime,who", "name"},
	{"deployment", "deployments", "id,environment,status,mode,runs,begun,ended,who,why", "-id"},
	{"task", "the tasks of deployments, on their nodes", "deployment,step,node,task,state,job,why", "-deployment,step"},
	{"server", "servers of the Compute API", "name,status,instance,tags,pending,pending_age", "name"},
	{"server-tag", "tags of servers, and what became of them on the cluster", "server_name,instance,tag,status,job,pending_age,failure", "server_name,tag"},
}

func thingOf(item string) (thing, error) {
	names := make([]string, 0, len(things))
	for _, t := range things {
		if t.Item == item {
			return t, nil
		}
		names = append(names, t.Item)
	}
	return thing{}, fault.New(fault.Invalid, "there is no kind of item %q", fault.Clip(item, 50)).At("item").WithHint("one of %s", strings.Join(names, ", "))
}

// mostColumns is how many fields one query of the page shows, or groups by.
const mostColumns = 64

// opened is a view as an ask has it: one of anything takes item, fields and groups from there.
func (v view) opened(a ask) (view, error) {
	if !v.any {
		if a.Item != "" || a.Fields != "" || a.By != "" || a.Figures != "" {
			return v, fault.New(fault.Invalid, "the view %s has an item and fields of its own", a.View)
		}
		return v, nil
	}
	t, err := thingOf(a.Item)
	if err != nil {
		return v, err
	}
	v.item, v.fields, v.by, v.figures, v.sort = t.Item, a.Fields, a.By, a.Figures, t.Sort
	v.command = "drover query " + t.Item
	if v.by != "" && v.figures == "" {
		v.figures = "count"
	}
	if v.fields == "" {
		v.fields = t.Fields
	} else if v.figures == "" {
		v.command += " -o " + quoted(v.fields)
	}
	if len(words(v.fields)) > mostColumns || len(words(v.by))+len(words(v.figures)) > mostColumns {
		return v, fault.New(fault.TooLarge, "a query of the page has at most %d columns", mostColumns).At("fields")
	}
	if v.figures == "" {
		if a.Sort == "" && v.sort != "" {
			v.command += " --sort " + quoted(v.sort)
		}
		return v, known(t.Item, words(v.fields), "fields")
	}
	v.sort = ""
	if v.by != "" {
		v.command += " --group-by " + quoted(v.by)
	}
	v.command += " --figures " + quoted(v.figures)
	return v, known(t.Item, grouped(v.by), "by")
}

// known refuses fields that an item does not have: elsewhere such a column says so in each row.
func known(item string, fields []string, at string) error {
	defs, err := items.All.Fields(item, append([]string{}, fields...))
	if err != nil || len(fields) == 0 {
		return err
	}
	all, err := items.All.Fields(item, nil)
	if err != nil {
		return err
	}
	for _, d := range defs {
		if d.Kind != query.KindUnknown {
			continue
		}
		wrong := fault.New(fault.Invalid, "%s has no field %q", item, fault.Clip(d.Name, 100)).At(at)
		if near := qlang.Suggest(d.Name, namesOf(all)); near != "" {
			return wrong.WithHint("did you mean %s?", near)
		}
		return wrong.WithHint("drover query fields %s lists them", item)
	}
	return nil
}

func namesOf(defs []query.Def) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, d := range defs {
			if !yield(d.Name) {
				return
			}
		}
	}
}

// catalogue tells what may be asked about, and what the words of events mean.
func catalogue(*Server, http.ResponseWriter, *http.Request, *visitor) (any, error) {
	return map[string]any{"items": things, "verbs": audit.Verbs()}, nil
}

// asked reads a query out of an address: item, fields, filter, sort.
func asked(from url.Values) (query.Request, error) {
	a := ask{View: "query", Item: from.Get("item"), Fields: from.Get("fields"), Filter: from.Get("filter"), Sort: from.Get("sort")}
	v, err := views[a.View].opened(a)
	if err != nil {
		return query.Request{}, err
	}
	return v.request(a)
}

// explanation is how a query is carried out, also in words.
type explanation struct {
	query.Explanation
	Text string `json:"text"`
}

func explainQuery(s *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	q, err := asked(r.URL.Query())
	if err != nil {
		return nil, err
	}
	ex, err := s.cfg.Querier.Explain(r.Context(), q)
	return explanation{ex, ex.Text(s.cfg.Now())}, err
}

// mostCSV is how many rows a query has as a file.
const mostCSV = 100_000

// csvOf answers with all rows of a query as comma-separated values.
func csvOf(s *Server, w http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	q, err := asked(r.URL.Query())
	if err != nil {
		return nil, err
	}
	q.Limit = mostCSV + 1
	result, err := s.cfg.Querier.Query(r.Context(), q)
	if err == nil && result.Len() > mostCSV {
		err = fault.New(fault.TooLarge, "there are more than %d rows", mostCSV).WithHint("narrow them with a filter; drover query %s --output csv has no limit", q.What)
	}
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.csv"`, q.What))
	w.WriteHeader(http.StatusOK)
	if err := writeCSV(w, result); err != nil { // half of it was sent, and a status with it: the connection ends
		panic(http.ErrAbortHandler)
	}
	return nil, nil //nolint:nilnil // it was answered
}

// writeCSV writes what the command line writes with --output csv, but for texts that spreadsheets would take for formulas.
func writeCSV(w io.Writer, result *query.Result) error {
	out := csv.NewWriter(w)
	line := make([]string, len(result.Fields))
	for i, f := range result.Fields {
		line[i] = f.Name
	}
	err := out.Write(line)
	for row := range result.Rows() {
		for i, c := range row {
			line[i] = cellText(result.Fields[i].Kind, c)
		}
		if err != nil {
			break
		}
		err = out.Write(line)
	}
	out.Flush()
	if err != nil {
		return err
	}
	return out.Error()
}

// absent is what cells say that have no value.
var absent = map[query.Status]string{query.Unknown: "(unknown)", query.NoData: "(nodata)", query.Offline: "(offline)"}

func cellText(kind query.Kind, c query.Cell) string {
	if c.Status != query.Normal || c.Value == nil {
		return absent[c.Status]
	}
	if pair, ok := c.Value.([2]int64); ok {
		return time.Unix(pair[0], pair[1]*1000).UTC().Format(time.RFC3339Nano)
	}
	value := query.AppendValue(nil, c.Value)
	if kind == query.KindTimestamp {
		if seconds, ok := new(big.Rat).SetString(string(value)); ok {
			nanos := seconds.Mul(seconds, big.NewRat(int64(time.Second), 1))
			return time.Unix(0, new(big.Int).Quo(nanos.Num(), nanos.Denom()).Int64()).UTC().Format(time.RFC3339Nano)
		}
	}
	of := reflect.ValueOf(c.Value)
	if of.Kind() != reflect.String {
		return string(value)
	}
	text := of.String()
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
