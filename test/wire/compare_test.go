package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// difference is one place in which two answers differ.
type difference struct {
	// at is the place, with [] for whatever place of a list.
	at string
	// reference and drover are the values there, as JSON; absent where there is none.
	reference, drover string
}

const absent = "absent"

// compare lists how the answers to a call differ. UUIDs, MAC addresses and the
// numbers of jobs are those of each side; they are compared by what they mean.
func compare(c *call, reference, drover *answer, ours, theirs *memory) ([]difference, error) {
	r, err := shape(c, reference, theirs)
	if err != nil {
		return nil, fmt.Errorf("the reference's answer: %w", err)
	}
	d, err := shape(c, drover, ours)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	var found []difference
	walk("", r, d, &found)
	return found, nil
}

// shape makes an answer comparable: refusals become texts that begin with their class,
// rows of lists become objects by the names of their fields, and what is each side's own
// gets a common name.
func shape(c *call, a *answer, m *memory) (any, error) {
	out := map[string]any{}
	var err error
	if a.LUXI != nil {
		err = shapeLUXI(c, a, m, out)
	} else {
		err = shapeHTTP(c, a, out)
	}
	if err != nil {
		return nil, err
	}
	for i, e := range a.Jobs {
		job, err := shapeJob(e)
		if err != nil {
			return nil, err
		}
		if results, ok := job["results"].([]any); ok && strings.Contains(c.String(), "OP_TAGS_SEARCH") {
			sortTexts(results[0])
		}
		out["made "+strconv.Itoa(i+1)] = job
	}
	return m.clean("", out), nil
}

func shapeLUXI(c *call, a *answer, m *memory, out map[string]any) error {
	v, err := decode(a.LUXI)
	if err != nil {
		return err
	}
	top, ok := v.(map[string]any)
	if !ok {
		out["answer"] = v // it is none
		return nil
	}
	if top["success"] == true {
		out["answer"] = "ok"
		out["result"] = named(c, top["result"])
		if strings.HasPrefix(c.LUXI.Method, "Submit") {
			out["result"] = fmt.Sprintf("%d jobs", len(a.Jobs))
		}
	} else {
		out["answer"] = m.ofJobs(c, refusal(top["result"]))
	}
	delete(top, "success")
	delete(top, "result")
	for key, value := range top {
		out["further key "+key] = value
	}
	return nil
}

var loneNumber = regexp.MustCompile(`(trying to compare |'|\[)([0-9]+)( with|'|\])`)

// ofJobs gives numbers that a refused question about jobs repeats a common name.
func (m *memory) ofJobs(c *call, text string) string {
	if c.LUXI.Method != "Query" || !strings.HasPrefix(string(c.LUXI.Args), `["job",`) {
		return text
	}
	return loneNumber.ReplaceAllStringFunc(text, func(found string) string {
		parts := loneNumber.FindStringSubmatch(found)
		id, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil || m.named[id] == "" {
			return found
		}
		return parts[1] + "{" + m.named[id] + "}" + parts[3]
	})
}

// refusal is a refusal as a text.
func refusal(v any) string {
	pair, _ := v.([]any)
	if len(pair) != 2 {
		return "refused: " + plain(v)
	}
	args, ok := pair[1].([]any)
	if !ok || len(args) == 0 {
		return "refused: " + text(v)
	}
	code := ""
	if len(args) == 2 {
		code = " " + plain(args[1])
	}
	return plain(pair[0]) + code + ": " + plain(args[0])
}

// plain is a text as it is, and anything else as JSON.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return text(v)
}

func shapeHTTP(c *call, a *answer, out map[string]any) error {
	v, err := decode(a.Body)
	if err != nil {
		return err
	}
	const ok = 200
	if a.Status == 0 {
		out["answer"] = "none: the connection was closed"
		return nil
	}
	if a.Status != ok {
		body, _ := v.(map[string]any)
		out["answer"] = fmt.Sprintf("%d %s: %s", a.Status, plain(body["explain"]), plain(body["message"]))
		return nil
	}
	out["answer"] = strings.TrimSpace(strconv.Itoa(a.Status) + " " + a.Type)
	switch out["result"] = v; {
	case strings.HasPrefix(c.RAPI.Path, "/2/query/"):
		out["result"] = namedQuery(v)
		if strings.HasPrefix(c.RAPI.Path, "/2/query/filter") {
			inOrder(out["result"])
		}
	case c.RAPI.Path == "/2/features": // a set
		sortTexts(v)
	case len(a.Jobs) > 0:
		out["result"] = "1 job"
	}
	return nil
}

// shapeJob is how a job went: of one that succeeded results and log, of one that did not
// the first refusal.
func shapeJob(e ended) (map[string]any, error) {
	var parts [3]any
	for i, raw := range []json.RawMessage{e.OpStatus, e.Results, e.Logs} {
		var err error
		if parts[i], err = decode(raw); err != nil {
			return nil, err
		}
	}
	statuses, _ := parts[0].([]any)
	results, _ := parts[1].([]any)
	if e.Status == "success" {
		return map[string]any{"outcome": e.Status, "results": results, "log": messages(parts[2])}, nil
	}
	outcome := e.Status
	for i, status := range statuses {
		if status != "success" && i < len(results) {
			outcome = plain(status) + " " + refusal(results[i])
			break
		}
	}
	return map[string]any{"outcome": outcome, "opstatus": statuses}, nil
}

// messages leaves the texts of log entries, and not their times and numbers.
func messages(logs any) any {
	list, _ := logs.([]any)
	for i, of := range list {
		entries, _ := of.([]any)
		for j, entry := range entries {
			if parts, ok := entry.([]any); ok && len(parts) == 4 {
				entries[j] = parts[3]
			}
		}
		list[i] = entries
	}
	return logs
}

// named gives the rows of a list their fields' names.
func named(c *call, result any) any {
	var args []any
	if json.Unmarshal(c.LUXI.Args, &args) != nil {
		return result
	}
	switch c.LUXI.Method {
	case "Query":
		out := namedQuery(result)
		if args[0] == "filter" {
			inOrder(out)
		}
		return out
	case "QueryJobs", "QueryInstances", "QueryNodes", "QueryGroups", "QueryNetworks":
		if len(args) > 1 {
			if fields, ok := args[1].([]any); ok {
				return namedRows(result, fields)
			}
		}
	}
	return result
}

// inOrder sorts the rows of an answer about rules: they come in the order of their
// UUIDs, which mean nothing.
func inOrder(v any) {
	if result, ok := v.(map[string]any); ok {
		sortTexts(result["data"])
	}
}

func sortTexts(v any) {
	if list, ok := v.([]any); ok {
		slices.SortFunc(list, func(a, b any) int {
			return strings.Compare(uuidText.ReplaceAllString(text(a), ""), uuidText.ReplaceAllString(text(b), ""))
		})
	}
}

// namedQuery makes objects of the rows of a query's answer.
func namedQuery(v any) any {
	result, ok := v.(map[string]any)
	if !ok || result["data"] == nil {
		return v
	}
	columns, _ := result["fields"].([]any)
	fields := make([]any, len(columns))
	for i, column := range columns {
		if def, ok := column.(map[string]any); ok {
			fields[i] = def["name"]
		}
	}
	result["data"] = namedRows(result["data"], fields)
	return result
}

func namedRows(v any, fields []any) any {
	rows, ok := v.([]any)
	if !ok {
		return v
	}
	for i, row := range rows {
		values, ok := row.([]any)
		if !ok || len(values) != len(fields) {
			continue
		}
		object := map[string]any{}
		for j, value := range values {
			name := fmt.Sprint(fields[j])
			for object[name] != nil {
				name += "+" // it was asked for again
			}
			object[name] = value
		}
		rows[i] = object
	}
	return rows
}

var (
	uuidText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	macText  = regexp.MustCompile(`\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`)
	jobText  = regexp.MustCompile(`(\b[Jj]ob[ =]|/2/jobs/)([0-9]+)\b`)
)

// clean gives what is a side's own a common name. at is the place.
func (m *memory) clean(at string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[m.cleanText(key)] = m.clean(at+"."+key, value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = m.clean(at+"[]", v[i])
		}
		if unordered.MatchString(at) && !slices.ContainsFunc(v, isNumber) {
			sortTexts(v)
		}
		return v
	case string:
		return m.cleanText(v)
	case json.Number:
		if id, err := v.Int64(); err == nil && isJobNumber(at) && m.named[id] != "" {
			return "job " + m.named[id]
		}
		return canonical(v)
	}
	return v
}

// jobPlace is the place of a job's number, which may be asked for again and again.
var jobPlace = regexp.MustCompile(`\.id\+*(\[\])?$`)

// isJobNumber tells whether a number at a place is that of a job.
func isJobNumber(at string) bool {
	return jobPlace.MatchString(at) || strings.Contains(at, ".depends")
}

// canonical writes equal numbers equally: 1 and 1.0 are one.
func canonical(n json.Number) any {
	if f, err := n.Float64(); err == nil && f == float64(int64(f)) {
		return json.Number(strconv.FormatInt(int64(f), 10))
	} else if err == nil {
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return n
}

func (m *memory) cleanText(text string) string {
	text = uuidText.ReplaceAllString(text, "UUID")
	text = macText.ReplaceAllString(text, "MAC")
	return jobText.ReplaceAllStringFunc(text, func(found string) string {
		parts := jobText.FindStringSubmatch(found)
		id, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil || m.named[id] == "" {
			return found
		}
		return parts[1] + "{" + m.named[id] + "}"
	})
}

// unordered is the place of a list whose order means nothing: a network's instances or groups, which come in that of their
// UUIDs, and the templates of a policy, which come in that of a hash table. It may stand behind the status of its value.
var unordered = regexp.MustCompile(`(^|\.)(inst_list|group_list|disk-templates)\+*(\[\])?$`)

func isNumber(v any) bool {
	_, ok := v.(json.Number)
	return ok
}

// trailPlace is a place of a reason trail, which is compared as a whole: that of a rule may stand
// behind the status of its value.
var trailPlace = regexp.MustCompile(`(reason\+*|reason_trail\+*\[\])$`)

// walk collects where two values differ.
func walk(at string, r, d any, found *[]difference) {
	if reflect.DeepEqual(r, d) {
		return
	}
	ro, rIs := r.(map[string]any)
	do, dIs := d.(map[string]any)
	if rIs && dIs {
		for _, key := range []string{"answer", "outcome"} { // where these differ, the rest does, too
			if ro[key] != do[key] {
				*found = append(*found, difference{strings.TrimPrefix(at+"."+key, "."), withResult(ro, key), withResult(do, key)})
				return
			}
		}
		for _, key := range slices.Sorted(maps.Keys(merged(ro, do))) {
			rv, rHas := ro[key]
			dv, dHas := do[key]
			place := strings.TrimPrefix(at+"."+key, ".")
			switch {
			case rHas && dHas:
				walk(place, rv, dv, found)
			case rHas:
				*found = append(*found, difference{place, text(rv), absent})
			default:
				*found = append(*found, difference{place, absent, text(dv)})
			}
		}
		return
	}
	rl, rIs := r.([]any)
	dl, dIs := d.([]any)
	if rIs && dIs && len(rl) == len(dl) && !trailPlace.MatchString(at) {
		for i := range rl {
			walk(at+"[]", rl[i], dl[i], found)
		}
		return
	}
	*found = append(*found, difference{at, text(r), text(d)})
}

// withResult is how something went, with what came of it.
func withResult(o map[string]any, key string) string {
	out := plain(o[key])
	for _, more := range []string{"result", "results"} {
		if v, ok := o[more]; ok {
			out += ": " + text(v)
		}
	}
	for n := 1; o["made "+strconv.Itoa(n)] != nil; n++ {
		job, _ := o["made "+strconv.Itoa(n)].(map[string]any)
		out += ", " + withResult(job, "outcome")
	}
	return out
}

func merged(a, b map[string]any) map[string]any {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// text is a value as JSON.
func text(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}
