package rapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// recording is an exchange with a real cluster.
type recording struct {
	name   string
	Header struct {
		Request struct {
			Method, Path string
			Headers      map[string]string
			Body         any
		}
	}
	Status   int
	Response any
}

func recordings(t *testing.T) map[string]*recording {
	t.Helper()
	dir := testkit.Conformance(t, "golden", "rapi")
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings in %s (%v)", dir, err)
	}
	all := map[string]*recording{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rec := &recording{name: strings.TrimSuffix(filepath.Base(path), ".json")}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if err := dec.Decode(rec); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[rec.name] = rec
	}
	return all
}

// differs lists the statuses that are meant to differ from the recorded ones;
// docs/compat/rapi.md tells why. An answer of 200 is then not compared further.
var differs = map[string]int{
	"ctype_charset":                             http.StatusOK,
	"filters_bad_action":                        http.StatusBadRequest,
	"filters_bad_action_rl":                     http.StatusBadRequest,
	"filters_bad_action_rl0":                    http.StatusBadRequest,
	"filters_bad_predicates":                    http.StatusBadRequest,
	"filters_bad_predicates_op":                 http.StatusBadRequest,
	"filters_bad_priority_neg":                  http.StatusBadRequest,
	"filters_delete_unknown":                    http.StatusNotFound,
	"filters_put_bad_uuid":                      http.StatusBadRequest,
	"jobs_id_unknown":                           http.StatusNotFound,
	"jobs_submit_drained":                       http.StatusServiceUnavailable,
	"query_cluster":                             http.StatusOK,
	"query_os":                                  http.StatusOK,
	"query_nosuch":                              http.StatusBadRequest,
	"query_fields_nosuch":                       http.StatusBadRequest,
	"query_instance_put_badfilter":              http.StatusBadRequest,
	"query_instance_put_fieldstype":             http.StatusBadRequest,
	"query_instance_put_unknown_field":          http.StatusBadRequest,
	"non_ascii_C-UTF-8_beyond_latin1_jobs_bulk": http.StatusOK,
	"non_ascii_C-UTF-8_beyond_latin1_jobs_id":   http.StatusOK,
	"non_ascii_C-UTF-8_filter_bulk":             http.StatusOK,
	"non_ascii_C-UTF-8_filter_post":             http.StatusOK,
	"non_ascii_C-UTF-8_latin1_jobs_bulk":        http.StatusOK,
	"non_ascii_C-UTF-8_latin1_jobs_id":          http.StatusOK,
	"non_ascii_C-UTF-8_tag_put_job":             http.StatusOK,
	"non_ascii_C_filter_bulk":                   http.StatusOK,
	"non_ascii_C_tag_put":                       http.StatusOK,
}

// elsewhere are recordings of states that a replay cannot bring about.
var elsewhere = map[string]string{
	"jobs_id_running":               "a moment in the life of a job; package queue tests these",
	"jobs_id_waiting_lock":          "a moment in the life of a job",
	"jobs_id_waiting_dep":           "a moment in the life of a job",
	"jobs_id_filter_PAUSE":          "a moment in the life of a job",
	"jobs_id_filter_RATE_LIMIT":     "a moment in the life of a job",
	"jobs_id_running_finished":      "14 seconds long",
	"jobs_id_waiting_lock_finished": "waited for the job of 14 seconds",
	"jobs_id_waiting_dep_finished":  "waited for the job of 14 seconds",
	"jobs_id_delete_waiting":        "the reference lost a race here; package queue tests cancelling",
	"jobs_id_canceled":              "waited for a lock when it was cancelled; TestCancel has its like",
	"jobs_id_error_exec":            "needs an operating system whose scripts fail",
	"auth_garbage":                  "the header itself was not recorded; TestAuthentication has its like",
	"auth_garbage_basic":            "the header itself was not recorded; TestAuthentication has its like",
	"non_ascii_C_filter_post":       "the reference answered 200 and stored nothing",
}

// passwords are those that stand behind the recorded Authorization headers.
var passwords = map[string]string{"admin": "secret", "reader": "read", "nobody": "x"}

// player replays recordings on a rig that was made to look like the recorded
// cluster.
type player struct {
	*rig
	all map[string]*recording
	// ids maps recorded job ids to ours.
	ids    map[string]job.ID
	passed int
	// waiting are recordings of opcodes that have no executor yet.
	waiting []string
}

func TestConformanceRecordings(t *testing.T) { stores.Each(t, playAll) }

func playAll(t *testing.T, url string) {
	t.Helper()
	p := &player{rig: newRig(t, rigOptions{store: url}), all: recordings(t), ids: map[string]job.ID{}}
	total := len(p.all) - len(elsewhere)
	p.play("filters_list_empty")
	p.furnish()
	for _, name := range []string{"instances_post_dry_run", "instances_post", "instance_shutdown", "instance_startup", "instance_startup_reason",
		"instance_reboot", "instance_modify", "instance_tags_put", "instance_tags_delete", "instance_info", "tags_put", "tags_put_dry",
		"non_ascii_C-UTF-8_tag_put", "node_role_put", "redistribute", "cluster_modify", "instance_startup_unknown", "instance_delete"} {
		p.play(name)
		if p.all[name+"_job"] != nil {
			p.play(name + "_job")
		}
	}
	p.makeRules()
	p.makeJobs()
	names := slices.Sorted(maps.Keys(p.all))
	// What takes things away comes last.
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(lateness(a), lateness(b)) })
	for _, name := range names {
		if _, skip := elsewhere[name]; !skip {
			p.play(name)
		}
	}
	t.Logf("golden/rapi: %d of %d recordings agree (%d of them as far as they go without an executor: %v); %d are of states that cannot be replayed",
		p.passed, total, len(p.waiting), p.waiting, len(elsewhere))
}

func lateness(name string) int {
	switch {
	case name == "jobs_submit_drained":
		return 2
	case strings.HasPrefix(name, "filters_delete"):
		return 1
	}
	return 0
}

// furnish makes the objects that the recordings speak of.
func (p *player) furnish() {
	now := time.Now().UnixNano()
	network, err := cluster.NewNetwork(testkit.NewUUID(), "testnet", "192.0.2.0/24", "192.0.2.1", now)
	p.check(err)
	p.check(p.keeper.Update(p.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) {
		return []cluster.Change{cluster.Put(network), cluster.Put(cluster.NewGroup(testkit.NewUUID(), "rack2", now))}, nil
	}))
	for _, name := range []string{"db1", "db2", "web1", "web2"} {
		p.create(name + ".gntpeer.example")
	}
	p.succeed(http.MethodPut, "/2/instances/web1.gntpeer.example/tags?tag=env:prod&tag=web", nil)
	p.succeed(http.MethodPut, "/2/nodes/node1.gntpeer.example/tags?tag=rack:r1", nil)
	p.succeed(http.MethodPut, "/2/tags?tag=env:test", nil)
	p.succeed(http.MethodPut, "/2/instances/db2.gntpeer.example/shutdown", nil)
}

// makeRules adds the recorded filter rules under their recorded UUIDs.
func (p *player) makeRules() {
	for _, name := range []string{"filters_post", "filters_post_ratelimit", "filters_post_watermark"} {
		rec := p.all[name]
		if a := p.do(http.MethodPut, fmt.Sprintf("/2/filters/%s", rec.Response), rec.Header.Request.Body); a.status != http.StatusOK {
			p.Fatalf("%s: %d %s", name, a.status, a.text)
		}
	}
}

// makeJobs submits the recorded jobs again, those of which others depend first.
func (p *player) makeJobs() {
	for _, name := range []string{"jobs_id_success", "jobs_id_success_multi", "jobs_id_error_prereq", "jobs_id_log_messages",
		"jobs_id_dep_fails", "jobs_id_filter_ACCEPT", "jobs_id_filter_CONTINUE"} {
		p.resubmit(name)
	}
	for recorded, text := range map[string]string{"125": "für Müller", "126": "中文 😀"} { // both recordings are of a server that broke
		op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": 0, "comment": text})
		p.check(err)
		id, err := p.queue.Submit(p.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
		p.check(err)
		p.ids[recorded] = id
	}
	answer := p.do(http.MethodPost, "/2/filters", map[string]any{"action": "REJECT"})
	var uuid string
	answer.decode(p, &uuid)
	p.resubmit("jobs_id_filter_REJECT")
	p.do(http.MethodDelete, "/2/filters/"+uuid, nil)
}

func (p *player) resubmit(name string) {
	recorded := p.all[name].Response.(map[string]any)
	var ops []*opcode.Opcode
	for _, item := range recorded["ops"].([]any) {
		params := maps.Clone(item.(map[string]any))
		id := params["OP_ID"].(string)
		for _, filledIn := range []string{"OP_ID", "on_node_uuids"} {
			delete(params, filledIn)
		}
		if depends, ok := params["depends"].([]any); ok {
			first := depends[0].([]any)
			params["depends"] = []any{[]any{int64(p.ids[fmt.Sprint(first[0])]), first[1]}}
		}
		op, err := opcode.FromMap(id, params)
		p.check(err)
		ops = append(ops, op)
	}
	id, err := p.queue.Submit(p.Context(), queue.Submission{Ops: ops})
	p.check(err)
	_, err = p.queue.Wait(p.Context(), id, (*job.Job).Final) // else the rule that rejects would find it
	p.check(err)
	p.ids[fmt.Sprint(recorded["id"])] = id
}

var jobPath = regexp.MustCompile(`^/2/jobs/(\d+)`)

// play sends a recorded request and compares the answers.
func (p *player) play(name string) {
	rec := p.all[name]
	if rec == nil {
		p.Fatalf("there is no recording %s", name)
	}
	delete(p.all, name)
	request := rec.Header.Request
	path := request.Path
	if m := jobPath.FindStringSubmatch(path); m != nil && p.ids[m[1]] != 0 {
		id := p.ids[m[1]]
		if _, err := p.queue.Wait(p.Context(), id, (*job.Job).Final); err != nil {
			p.Errorf("%s: %v", name, err)
		}
		path = strings.Replace(path, m[1], id.String(), 1)
	}
	header := http.Header{}
	for key, value := range request.Headers {
		if user, ok := strings.CutPrefix(value, "Basic <"); ok {
			header[key] = basic(strings.TrimSuffix(user, ">"), name)
			continue
		}
		header[key] = []string{value}
	}
	if name == "jobs_submit_drained" {
		p.check(p.queue.SetDrained(p.Context(), true, queue.By{}))
	}
	body := request.Body
	if text, ok := body.(string); ok && strings.HasPrefix(name, "node_role_put") { // the recorded body is the decoded JSON string
		body = strconv.Quote(text)
	}
	got := p.send(request.Method, path, body, header)
	if id, ok := rec.Response.(json.Number); ok && got.status == http.StatusOK {
		ours, err := strconv.ParseInt(strings.TrimSpace(got.text), 10, 64)
		p.check(err)
		p.ids[id.String()] = job.ID(ours)
	}
	if strings.Contains(got.text, "has no executor") {
		p.waiting = append(p.waiting, name)
		p.passed++
		return
	}
	if fault := p.compare(rec, got); fault != "" {
		p.Errorf("%s: %s %s: %s\nanswer %d %.500s", name, request.Method, path, fault, got.status, got.text)
		return
	}
	p.passed++
}

func basic(user, recording string) []string {
	password := passwords[user]
	if recording == "auth_wrong_pw" {
		password = "wrong"
	}
	return header(user, password)["Authorization"]
}

// compare returns what is wrong with an answer, empty if nothing is.
func (p *player) compare(rec *recording, got answer) string {
	want, meant := differs[rec.name]
	if !meant {
		want = rec.Status
	}
	if got.status != want {
		return fmt.Sprintf("status %d, want %d", got.status, want)
	}
	if rec.Header.Request.Method == http.MethodHead || meant && want == http.StatusOK {
		return ""
	}
	var body any
	got.decode(p, &body)
	if want != http.StatusOK {
		return compareErrors(rec, body, meant)
	}
	if fault := differentShape("", body, rec.Response, 0); fault != "" {
		return fault
	}
	if m, ok := rec.Response.(map[string]any); ok && m["opstatus"] != nil {
		return differentJob(body.(map[string]any), m)
	}
	return ""
}

// compareErrors wants the recorded message at the beginning of ours.
func compareErrors(rec *recording, body any, meant bool) string {
	got, ok := body.(map[string]any)
	if !ok || got["message"] == "" || got["explain"] == "" || got["explain"] == nil {
		return "no error body"
	}
	want, _ := rec.Response.(map[string]any)
	if meant {
		return ""
	}
	text, _ := got["message"].(string)
	expected, _ := want["message"].(string)
	// A missing object has no message of its own in the reference.
	if !strings.HasPrefix(text, expected) && rec.Status != http.StatusNotFound {
		return "message " + text + ", want " + expected
	}
	if got["explain"] != want["explain"] || got["code"] != want["code"] {
		return fmt.Sprintf("code %v, explain %v", got["code"], got["explain"])
	}
	return ""
}

// differentShape compares types and keys to the depth of the objects of a list;
// null fits everything.
func differentShape(path string, got, want any, depth int) string {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok && got != nil {
			return path + " is no object"
		}
		if !ok || depth > 1 {
			return ""
		}
		if _, recorded := want["custom_nicparams"]; recorded {
			delete(m, "custom_osparams") // the reference has it since a later version
		}
		if g, w := slices.Sorted(maps.Keys(m)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
			return fmt.Sprintf("%s has the keys %v, want %v", path, g, w)
		}
		for key := range want {
			if fault := differentShape(path+"."+key, m[key], want[key], depth+1); fault != "" {
				return fault
			}
		}
	case []any:
		list, ok := got.([]any)
		if !ok && got != nil {
			return path + " is no list"
		}
		if len(list) > 0 && len(want) > 0 {
			return differentShape(path+"[0]", list[0], want[0], depth+1)
		}
	default:
		if want != nil && got != nil && reflect.TypeOf(got) != reflect.TypeOf(want) {
			return fmt.Sprintf("%s is %v, want %v", path, got, want)
		}
	}
	return ""
}

var numbers = regexp.MustCompile(`\d+`)

// withoutNumbers is the text of a result in which job ids do not count.
func withoutNumbers(v any) string { return numbers.ReplaceAllString(fmt.Sprint(v), "N") }

// differentJob compares what became of a job.
func differentJob(got, want map[string]any) string {
	for _, key := range []string{"status", "summary", "opstatus"} {
		if !reflect.DeepEqual(got[key], want[key]) {
			return fmt.Sprintf("%s is %v, want %v", key, got[key], want[key])
		}
	}
	results, _ := got["opresult"].([]any)
	for i, w := range want["opresult"].([]any) {
		recorded, isList := w.([]any)
		if isList && len(recorded) == 2 && want["status"] == "error" && withoutNumbers(results[i]) != withoutNumbers(w) {
			return fmt.Sprintf("result %d is %v, want %v", i, results[i], w)
		}
	}
	return ""
}
