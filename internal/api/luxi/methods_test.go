package luxi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// refused sends a request that must fail, and returns the code, the class and
// the text.
func (r *rig) refused(method string, args ...any) (fault.Code, string, string) {
	r.Helper()
	err := r.client().Call(r.Context(), method, args, nil)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		r.Fatalf("%s %v: %v", method, args, err)
	}
	class := "text"
	if pair, ok := errors.AsType[*luxiwire.Error](err); ok {
		class = pair.Class
	}
	return f.Code, class, f.Message
}

func TestJobIDsInBothSpellings(t *testing.T) {
	r := newRig(t)
	id := r.submit(delay(0.001))
	r.end(id)
	for _, spelling := range []any{id, id.String()} {
		var rows [][]any
		r.call("QueryJobs", &rows, []any{spelling}, []string{"id", "status"})
		if !reflect.DeepEqual(rows, [][]any{{1.0, "success"}}) {
			t.Errorf("%v: %v", spelling, rows)
		}
		var answer []any
		r.call("CancelJob", &answer, spelling)
		if !reflect.DeepEqual(answer, []any{false, "Job 1 not found in queue"}) {
			t.Errorf("%v: %v", spelling, answer)
		}
	}
	for _, bad := range []any{-1, 1.5, "one", nil, true, []any{1}} {
		if code, class, text := r.refused("ArchiveJob", bad); code != fault.Invalid || class != "text" || !strings.Contains(text, "job ID") {
			t.Errorf("%v: %s %s %s", bad, code, class, text)
		}
	}
}

func TestSubmissionKeys(t *testing.T) {
	r := newRig(t)
	var first, again, other job.ID
	r.call("SubmitJob", &first, []any{delay(0.001)}, "key")
	r.call("SubmitJob", &again, []any{delay(0.001)}, "key")
	r.call("SubmitJobToDrainedQueue", &other, []any{delay(0.001)}, nil)
	if first != again || other == first {
		t.Errorf("ids %d, %d, %d", first, again, other)
	}
	var many [][2]any
	r.call("SubmitManyJobs", &many, [][]any{{delay(0.001)}, {delay(0.001)}}, []string{"key", "b"})
	if many[0] != [2]any{true, float64(first)} || many[1] != [2]any{true, float64(other) + 1} {
		t.Errorf("got %v", many)
	}
	if code, _, text := r.refused("SubmitManyJobs", [][]any{{}}, []string{"a", "b"}); code != fault.Invalid || text != "2 submission keys for 1 jobs" {
		t.Errorf("%s %s", code, text)
	}
}

func TestSubmitManyAnswersForEachJob(t *testing.T) {
	r := newRig(t)
	outside := delay(0.001, "reason", []any{[]any{"gnt:opcode:x", "", 1}})
	var many [][2]any
	r.call("SubmitManyJobs", &many, [][]any{{outside}, {delay(0.001)}, {delay(0.001, "depends", []any{[]any{-1, []any{"success"}}})}})
	if many[0][0] != false || many[1] != [2]any{true, 2.0} || many[2] != [2]any{true, 3.0} { // the refused one is counted
		t.Errorf("got %v", many)
	}
	if code, class, _ := r.refused("SubmitManyJobs", [][]any{{delay(0.001)}, {map[string]any{"OP_ID": "OP_NOPE", "reason": []any{}}}}); code != fault.Invalid || class != "text" {
		t.Errorf("one that cannot be parsed: %s %s", code, class)
	}
	var rows [][]any
	r.call("QueryJobs", &rows, nil, []string{"id"})
	if len(rows) != 2 {
		t.Errorf("jobs: %v", rows)
	}
}

func TestReservedSourcesAreRefused(t *testing.T) {
	r := newRig(t)
	for source, allowed := range map[string]bool{
		"user": true, "gnt:user": true, "gnt:client": true, "gnt:client:gnt-instance": true, "gnt:clientele": false,
		"gnt:opcode:test_delay": false, "gnt:library:rlib2:x": false, "gnt:watcher": true, "gnt:watchers": false, "gnt:": false, "luxid": false,
	} {
		entry := []any{[]any{source, "x", 1}}
		err := r.client().Call(t.Context(), "SubmitJob", []any{[]any{delay(0.001, "reason", entry)}}, nil)
		if (err == nil) != allowed || (err != nil && !strings.Contains(err.Error(), "reserved source")) {
			t.Errorf("a job with %s: %v", source, err)
		}
		err = r.client().Call(t.Context(), "ReplaceFilter", []any{nil, 5, []any{}, "CONTINUE", entry}, nil)
		if (err == nil) != allowed {
			t.Errorf("a rule with %s: %v", source, err)
		}
	}
	// A rule that was read goes in once more, as it came out; the queue's hop says nothing.
	var rules [][]json.RawMessage // times have more digits than a float64
	r.call("QueryFilters", &rules, nil, []string{"uuid", "priority", "predicates", "action", "reason_trail"})
	for _, rule := range rules {
		for _, uuid := range []any{rule[0], nil} {
			r.call("ReplaceFilter", nil, uuid, rule[1], rule[2], rule[3], rule[4])
		}
	}
	if len(rules) == 0 {
		t.Error("no rule was read")
	}
}

func TestTextInAnyScript(t *testing.T) {
	r := newRig(t)
	const text = "für Müller — 保守 <&> \u2028 ў"
	var uuid string
	r.call("ReplaceFilter", &uuid, nil, 1, []any{[]any{"reason", []any{"=~", "reason", "^für Müller"}}}, "ACCEPT", []any{[]any{"user", text, 1}})
	r.call("SetDrainFlag", nil, false)
	id := r.submit(delay(0.001, "comment", text, "reason", []any{[]any{"Ärzte", text, 5}}))
	r.end(id)
	var rows [][]any
	r.call("QueryFilters", &rows, []string{uuid}, []string{"reason_trail"})
	if got := fmt.Sprint(rows); !strings.Contains(got, text) {
		t.Errorf("rule: %s", got)
	}
	r.call("QueryJobs", &rows, []any{id}, []string{"ops"})
	if got := fmt.Sprint(rows); strings.Count(got, text) != 2 || !strings.Contains(got, "Ärzte") {
		t.Errorf("job: %s", got)
	}
	var next job.ID
	r.call("SubmitJob", &next, []any{delay(0.001)})
	if status := r.end(next); status != "success" {
		t.Errorf("the queue is hurt: %s", status)
	}
}

func TestDrainedQueue(t *testing.T) {
	r := newRig(t)
	var answer any
	for _, on := range []bool{false, true, true} { // also when nothing changes
		if r.call("SetDrainFlag", &answer, on); answer != true {
			t.Errorf("got %v", answer)
		}
	}
	for method, arg := range map[string]any{"SubmitJob": []any{delay(0.001)}, "SubmitManyJobs": [][]any{{delay(0.001)}, {}}} {
		if code, class, text := r.refused(method, arg); code != fault.Drained || class != "JobQueueDrainError" || text != "Queue drained" {
			t.Errorf("%s: %s %s %s", method, code, class, text)
		}
	}
	var id job.ID
	r.call("SubmitJobToDrainedQueue", &id, []any{delay(0.001)})
	if status := r.end(id); status != "success" {
		t.Error(status)
	}
}

func TestWaitForJobChange(t *testing.T) {
	r := newRig(t)
	r.furnish()
	const id = 1 // the first creation
	wait := func(id any, fields []string, previous, serial any, timeout int) (values []any, log [][]any) {
		t.Helper()
		out := []any{&values, &log}
		r.call("WaitForJobChange", &out, id, fields, previous, serial, timeout)
		return values, log
	}
	// A job that has ended is answered at once, whatever the client knows.
	values, log := wait(id, []string{"status", "id"}, []any{"x"}, nil, 60)
	if len(values) != 2 || values[0] != "success" || values[1] != 1.0 {
		t.Errorf("values %v", values)
	}
	if len(log) < 3 || log[0][0] != 1.0 || log[0][2] != "message" || log[2][0] != 3.0 {
		t.Errorf("log %v", log)
	}
	if _, later := wait(id, []string{"id"}, nil, 2, 60); len(later) != len(log)-2 || later[0][0] != 3.0 {
		t.Errorf("the log after the second entry: %v", later)
	}
	begun := time.Now()
	known := values
	values, log = wait("1", []string{"status", "id"}, known, 1<<40, 60)
	if !reflect.DeepEqual(values, known) || len(log) != 0 || time.Since(begun) >= time.Minute {
		t.Errorf("values %v, log %v", values, log)
	}
	if values, log = wait(id, []string{"status", "nosuch"}, nil, nil, 60); !reflect.DeepEqual(values, []any{nil, nil}) {
		t.Errorf("with an unknown field: %v %v", values, log)
	}
	if code, class, text := r.refused("WaitForJobChange", 4711, []string{"status"}, nil, nil, 60); code != fault.NotFound || class != "JobLost" || text != "Can't load job file" {
		t.Errorf("%s %s %s", code, class, text)
	}
	r.call("ArchiveJob", nil, id)
	// Who asks for a field that there is not learns no less that the job is gone, or he
	// asks for ever.
	for _, fields := range [][]string{{"status"}, {"status", "nosuch"}, {"nosuch"}} {
		for _, gone := range []int{id, 4711} {
			if _, class, text := r.refused("WaitForJobChange", gone, fields, nil, nil, 60); class != "JobLost" {
				t.Errorf("job %d, %v: %s %s", gone, fields, class, text)
			}
		}
	}
}

// What stands behind the arguments of a method is taken for nothing else than the reason
// trail that there may be; the method that looks at no argument looks at none.
func TestArgumentsTooMany(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		method string
		args   []any
		want   string
	}{
		{"ReplaceFilter", []any{nil, 0, []any{}, "ACCEPT", []any{}, 7}, "Unable to read Tuple5"},
		{"ReplaceFilter", []any{nil, 0, []any{}, "ACCEPT", []any{}, []any{7}}, "Unable to read Triple: a reason entry must be a list"},
		{"ReplaceFilter", []any{nil, 0, []any{}, "ACCEPT", []any{}, []any{}, 7}, "Unable to read Tuple5"},
		{"DeleteFilter", []any{"x", 7}, "Unable to read OneTuple"},
		{"DeleteFilter", []any{"x", []any{[]any{"gnt:forged", "", 1}}}, "reserved source"},
		{"ChangeJobPriority", []any{1, 0, "high"}, "Unable to read Pair"},
		{"SetDrainFlag", []any{true, false}, "Unable to read OneTuple"},
	} {
		code, class, text := r.refused(tc.method, tc.args...)
		if code != fault.Invalid || class != "text" || !strings.Contains(text, tc.want) {
			t.Errorf("%s %v: %s %s %s, want %s", tc.method, tc.args, code, class, text, tc.want)
		}
	}
	var rules [][]string
	r.call("QueryFilters", &rules, nil, []string{"uuid"})
	if len(rules) != 0 {
		t.Errorf("of what was refused there is %v", rules)
	}
	for _, args := range []string{`[]`, `[1]`, `["x",[],{}]`, `{}`, `null`, `7`} {
		if a := r.dial().ask(`{"method":"QueryClusterInfo","args":` + args + `}`); !a.Success {
			t.Errorf("QueryClusterInfo %s: %v", args, a.Result)
		}
	}
}

func TestWaitForJobChangeSeesChanges(t *testing.T) {
	r := newRig(t)
	id := r.submit(delay(60))
	running := func(j *job.Job) bool { return j.Status() == job.Running }
	if _, err := r.queue.Wait(t.Context(), id, running); err != nil {
		t.Fatal(err)
	}
	var change []any
	r.call("WaitForJobChange", &change, id, []string{"status"}, nil, nil, 60)
	if !reflect.DeepEqual(change, []any{[]any{"running"}, []any{}}) {
		t.Errorf("the first answer: %v", change)
	}
	r.call("WaitForJobChange", &change, id, []string{"status"}, []string{"running"}, 0, 0)
	if !reflect.DeepEqual(change, []any{[]any{"running"}, []any{}}) {
		t.Errorf("when the time is up: %v", change)
	}
	var all sync.WaitGroup
	client := r.client()
	all.Go(func() {
		var later []any
		if err := client.Call(context.Background(), "WaitForJobChange", []any{id, []string{"status"}, []string{"running"}, 0, 60}, &later); err != nil {
			t.Error(err)
		}
		if !reflect.DeepEqual(later, []any{[]any{"error"}, []any{}}) && !reflect.DeepEqual(later, []any{[]any{"canceled"}, []any{}}) {
			t.Errorf("after the end: %v", later)
		}
	})
	r.call("CancelJob", nil, id, true)
	all.Wait()
}

func TestQueryWithOptions(t *testing.T) {
	r := newRig(t)
	for range 5 {
		r.end(r.submit(delay(0.001)))
	}
	var got struct{ Data [][][2]any }
	r.call("Query", &got, "job", []string{"id"}, []any{">", "id", 1}, map[string]any{"sort": []string{"-id"}, "limit": 2})
	if fmt.Sprint(got.Data) != "[[[0 5]] [[0 4]]]" {
		t.Errorf("got %v", got.Data)
	}
	if code, _, _ := r.refused("Query", "job", []string{"id"}, nil, map[string]any{"sort": 5}); code != fault.Invalid {
		t.Error(code)
	}
}

func TestExplainAndTest(t *testing.T) {
	r := newRig(t)
	r.call("ReplaceFilter", nil, nil, 5, []any{}, "PAUSE", []any{[]any{"ops", "freeze", 1}})
	id := r.submit(delay(0.001))
	var x struct {
		Step string
		Why  string
		Held struct{ Rule string }
	}
	r.call("ExplainJob", &x, id)
	if x.Step != "hold" || !strings.Contains(x.Why, "freeze") || x.Held.Rule == "" {
		t.Errorf("got %+v", x)
	}
	var f struct {
		Headline string
		Jobs     []struct{ Effect string }
	}
	r.call("TestFilter", &f, map[string]any{"priority": 1, "action": "ACCEPT"}, 7)
	if len(f.Jobs) != 1 || f.Jobs[0].Effect != "release" {
		t.Errorf("got %+v", f)
	}
	for _, rule := range []any{nil, "x", map[string]any{"prority": 1}, map[string]any{"action": "NO"}, map[string]any{"priority": -1}} {
		if code, class, _ := r.refused("TestFilter", rule, 0); code != fault.Invalid || class != "text" {
			t.Errorf("%v: %s %s", rule, code, class)
		}
	}
	if code, _, text := r.refused("TestFilter", map[string]any{}, -1); code != fault.Invalid || !strings.Contains(text, "days") {
		t.Errorf("%s %s", code, text)
	}
	if code, class, _ := r.refused("ExplainJob", 4711); code != fault.NotFound || class != "OpPrereqError" {
		t.Errorf("%s %s", code, class)
	}
}

// TestTasksOfDeploymentsAreNotSubmitted: who could, would have a node carry out what no deployment says, or have a deployment go on where it must not.
func TestTasksOfDeploymentsAreNotSubmitted(t *testing.T) {
	r := newRig(t)
	task := map[string]any{"OP_ID": "OP_DEPLOY_TASK", "deployment": 1, "step": 0, "attempt": 1, "environment": "prod", "task": "a", "task_type": "shell",
		"node": "1", "node_name": "node1", "reason": []any{}}
	const says = "jobs with OP_DEPLOY_TASK are made by deployments (drover deploy run), and cannot be submitted"
	for _, method := range []string{"SubmitJob", "SubmitJobToDrainedQueue", "CheckJob"} {
		if code, _, text := r.refused(method, []any{task}); code != fault.Denied || text != says {
			t.Errorf("%s: %s, %s", method, code, text)
		}
	}
	var answers [][2]any
	r.call("SubmitManyJobs", &answers, []any{[]any{task}})
	if len(answers) != 1 || answers[0][0] != false || answers[0][1] != says {
		t.Errorf("many: %v", answers)
	}
}

func TestCheckJob(t *testing.T) {
	r := newRig(t)
	r.call("ReplaceFilter", nil, nil, 5, []any{}, "PAUSE", []any{})
	startup := map[string]any{"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "nosuch", "reason": []any{}}
	search := map[string]any{"OP_ID": "OP_TAGS_SEARCH", "pattern": ".", "reason": []any{}}
	var found []struct {
		OK     bool
		Result any
		Error  []any
		Fault  struct{ Code fault.Code }
	}
	r.call("CheckJob", &found, []any{startup, search})
	if len(found) != 2 || found[0].OK || found[0].Fault.Code != fault.NotFound || found[0].Error[0] != "OpPrereqError" {
		t.Fatalf("got %+v", found)
	}
	if answer, ok := found[1].Result.([]any); !found[1].OK || !ok || len(answer) != 0 {
		t.Errorf("got %+v", found[1])
	}
	startup["nosuch"] = 1
	if code, class, _ := r.refused("CheckJob", []any{startup}); code != fault.Invalid || class != "text" {
		t.Errorf("%s %s", code, class)
	}
	if n := r.queue.Jobs().Len(); n != 0 {
		t.Errorf("there are %d jobs", n)
	}
}

// TestLostAnswer cuts the connection after the job was taken and before the
// client knows: with a key the repeated submission finds the job it made.
func TestLostAnswer(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for cut := true; ; cut = false {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			relay(front, r.path, cut)
		}
	}()
	client, err := luxiwire.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	var id job.ID
	if err := client.Resend(t.Context(), 3, "SubmitJob", []any{[]any{delay(0.001)}, "once"}, &id); err != nil || id != 1 {
		t.Errorf("id %d: %v", id, err)
	}
	var rows [][]any
	r.call("QueryJobs", &rows, nil, []string{"id"})
	if len(rows) != 1 {
		t.Errorf("jobs: %v", rows)
	}
}

// relay passes one request on to the server and its answer back, unless the
// answer is to be lost.
func relay(front net.Conn, path string, cut bool) {
	defer func() { _ = front.Close() }()
	back, err := net.Dial("unix", path)
	if err != nil {
		return
	}
	defer func() { _ = back.Close() }()
	request, err := luxiwire.NewFrameReader(front, luxiwire.MaxFrame).Next()
	if err != nil || luxiwire.WriteFrame(back, request) != nil {
		return
	}
	answer, err := luxiwire.NewFrameReader(back, luxiwire.MaxFrame).Next()
	if err == nil && !cut {
		_ = luxiwire.WriteFrame(front, answer) // the client sees what is wrong
	}
}

func TestTagsOfEverything(t *testing.T) {
	r := newRig(t)
	r.furnish()
	r.end(r.submit(map[string]any{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "tags": []string{"b", "a"}, "reason": []any{}}))
	for _, tc := range []struct{ kind, name, want string }{
		{"cluster", "", "[a b]"}, {"instance", "web1.gntpeer.example", "[web]"}, {"instance", "web1", "[web]"},
		{"node", "node1.gntpeer.example", "[]"}, {"nodegroup", "default", "[]"},
	} {
		tags := []string{"unset"}
		r.call("QueryTags", &tags, tc.kind, tc.name)
		if fmt.Sprint(tags) != tc.want {
			t.Errorf("%s %s: %v", tc.kind, tc.name, tags)
		}
	}
	for _, tc := range []struct {
		kind, name any
		class      string
		text       string
	}{
		{"instance", "nosuch", "OpPrereqError", "Instance name nosuch not found"},
		{"network", "nosuch", "OpPrereqError", "Network name nosuch not found"},
		{"cluster", nil, "text", "Unable to read String"},
		{"nosuch", "x", "text", `Invalid string value for type TagKind: "nosuch"`},
	} {
		if _, class, text := r.refused("QueryTags", tc.kind, tc.name); class != tc.class || text != tc.text {
			t.Errorf("%v %v: %s %s", tc.kind, tc.name, class, text)
		}
	}
}

func TestConfigValues(t *testing.T) {
	r := newRig(t)
	until := float64(time.Now().Unix() + 3600)
	var echo any
	r.call("SetWatcherPause", &echo, until)
	if echo != until {
		t.Errorf("got %v", echo)
	}
	var heard string
	if r.call("echo", &heard, "who is there"); heard != "who is there" {
		t.Errorf("echo says %q", heard)
	}
	r.call("SetDrainFlag", nil, true)
	var values []any
	r.call("QueryConfigValues", &values, []string{"cluster_name", "master_node", "drain_flag", "watcher_pause", "volume_group_name", "nosuch"})
	want := []any{"cluster.gntpeer.example", "node1.gntpeer.example", true, until, nil, nil}
	if !reflect.DeepEqual(values, want) {
		t.Errorf("got %v", values)
	}
	r.call("SetWatcherPause", &echo, nil)
	r.call("QueryConfigValues", &values, []string{"watcher_pause"})
	if echo != nil || values[0] != nil {
		t.Errorf("after the pause: %v, %v", echo, values)
	}
}

// TestAPauseOfWatchersIsADate: one that nobody could write down would be in force, and told by nobody.
func TestAPauseOfWatchersIsADate(t *testing.T) {
	r := newRig(t)
	for _, until := range []float64{253402300800, 1.8e12, 1e19, 1e300} { // the second is in milliseconds
		if code, _, text := r.refused("SetWatcherPause", until); code != fault.Invalid || !strings.Contains(text, "9999") {
			t.Errorf("%g: %s %s", until, code, text)
		}
	}
	const last = 253402300799.0
	var values []any
	r.call("SetWatcherPause", nil, last)
	if r.call("QueryConfigValues", &values, []string{"watcher_pause"}); values[0] != last {
		t.Errorf("it is %v", values)
	}
}

func TestChangePriority(t *testing.T) {
	r := newRig(t)
	r.call("ReplaceFilter", nil, nil, 5, []any{}, "PAUSE", []any{})
	id := r.submit(delay(0.001))
	for priority, want := range map[int]any{-10: true, 19: true, -20: true, 20: false, -21: false} {
		var answer []any
		if r.call("ChangeJobPriority", &answer, id, priority); answer[0] != want {
			t.Errorf("%d: %v", priority, answer)
		}
	}
	var answer []any
	if r.call("ChangeJobPriority", &answer, 4711, 0); !reflect.DeepEqual(answer, []any{false, "Job 4711 not found in queue"}) {
		t.Errorf("got %v", answer)
	}
}

// TestJobsTellTheirAccount: the trail of a job says which account of the
// machine submitted it, behind what the client itself said and in order of time.
func TestJobsTellTheirAccount(t *testing.T) {
	r := newRig(t)
	ahead := time.Now().Add(time.Hour).UnixNano() // a client whose clock is wrong
	var id int64
	r.call("SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0, "reason": []any{[]any{"gnt:user", "tests", ahead}}}})
	j, err := r.queue.Job(t.Context(), job.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	trail := j.Ops[0].Input.Reason
	if len(trail) != 3 || trail[0].Source != "gnt:user" || trail[1].Source != "gnt:account:luxi" ||
		trail[1].Reason != fmt.Sprintf("%s (pid %d)", me.Username, os.Getpid()) {
		t.Fatalf("the trail is %v", trail)
	}
	for i := 1; i < len(trail); i++ {
		if trail[i].Time < trail[i-1].Time {
			t.Errorf("hop %d is earlier than the one before: %v", i, trail)
		}
	}
}

// TestTextsThatAreNoListOrUUID: what is not there is not taken for something
// that is empty.
func TestTextsThatAreNoListOrUUID(t *testing.T) {
	r := newRig(t)
	if code, class, text := r.refused("SubmitManyJobs", []any{nil}); code != fault.Invalid || class != "text" ||
		text != "Unable to read [[JSValue]]" {
		t.Errorf("a null job: %s %s %s", code, class, text)
	}
	for method, args := range map[string][]any{
		"QueryNodes": {[]any{nil}, []any{"name"}, false}, "QueryGroups": {[]any{"default"}, []any{nil}, false},
		"QueryFilters": {[]any{nil}, []any{"uuid"}}, "QueryConfigValues": {[]any{"cluster_name", nil}},
	} {
		if code, class, text := r.refused(method, args...); code != fault.Invalid || class != "text" || text != "Unable to read [String]" {
			t.Errorf("%s: null in a list of texts: %s %s %s", method, code, class, text)
		}
	}
	if _, class, text := r.refused("QueryTags", "nodegroup", "nosuch"); class != "OpPrereqError" || text != "NodeGroup name nosuch not found" {
		t.Errorf("tags of a group that there is not: %s %s", class, text)
	}
	if _, class, text := r.refused("ReplaceFilter", "", 0, []any{}, "ACCEPT", []any{}); class != "GenericError" || text != "Unable to parse UUID" {
		t.Errorf("an empty UUID: %s %s", class, text)
	}
	var many [][2]any
	r.call("SubmitManyJobs", &many, []any{[]any{}})
	if len(many) != 1 || many[0][0] != true {
		t.Errorf("a job without opcodes: %v", many)
	}
	id := r.submit(map[string]any{"OP_ID": "OP_TEST_DUMMY", "result": nil, "messages": "text", "fail": false, "submit_jobs": nil, "reason": []any{}})
	r.end(id)
	var change []any
	r.call("WaitForJobChange", &change, id, []string{"status", "nosuch"}, nil, nil, 60)
	if !reflect.DeepEqual(change, []any{[]any{nil, nil}, []any{}}) {
		t.Errorf("a field that jobs do not have: %v", change)
	}
}
