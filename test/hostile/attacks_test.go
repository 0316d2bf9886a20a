package hostile

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// attack is something that once stopped, stalled or swelled the controller: one
// request, or several in order.
type attack struct {
	what     string
	requests []request
	// want are the verdicts; "*" or none is any that does not blame the controller.
	want []string
}

// opcode writes an opcode that does nothing, with further members.
func opcode(more string) string { return strings.TrimSuffix(nothing, "}") + more + "}" }

// trailed is an opcode that does nothing for that reason.
func trailed(text string) string {
	return `{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"on_master":true,"on_nodes":[],"reason":[["gnt:user",` + quote(text) + `,1]]}`
}

func quote(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err) // texts can be encoded
	}
	return string(out)
}

func luxi(method string, args ...string) request {
	return request{luxi: fmt.Sprintf(`{"method":%s,"args":[%s]}`, quote(method), strings.Join(args, ","))}
}

// submit hands in one job of these opcodes.
func submit(ops ...string) request { return luxi("SubmitJob", "["+strings.Join(ops, ",")+"]") }

// submitMany hands in jobs of one opcode each.
func submitMany(ops ...string) request {
	return luxi("SubmitManyJobs", "[["+strings.Join(ops, "],[")+"]]")
}

// times writes a text so often, with commas.
func times(n int, text string) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

func rapi(method, path, body string) request { return request{method: method, path: path, body: body} }

// rule adds a rule that accepts jobs whose reason is met by a pattern.
func rule(pattern string) request {
	predicate := `["reason",["=~","reason",` + quote(pattern) + `]]`
	return rapi(http.MethodPost, "/2/filters", `{"priority":1,"action":"ACCEPT","predicates":[`+predicate+`]}`)
}

func repeated[T any](n int, one T) []T { return slices.Repeat([]T{one}, n) }

const (
	mib = 1 << 20
	// slow needs backtracking, and takes twice as long for each letter of runaway.
	slow = `(?=a)(a|a|aa)+$`
	// states is a pattern of 1,000 states within RE2.
	states = `[ab]*a[ab]{990}c`
)

var runaway = strings.Repeat("a", 60) + "b"

// attacks are those that were found, by what they did.
var attacks = []attack{
	{"an error that repeats a name of megabytes made a result that no store takes", []request{
		rapi(http.MethodPut, "/2/groups/default/modify", `{"ndparams":{"`+strings.Repeat("<", 10*mib)+`":1}}`),
		rapi(http.MethodPut, "/2/groups/default/modify", `{"ndparams":{"`+strings.Repeat("<", mib-100)+`":1}}`),
	}, []string{"413", "ok"}},
	{"a job of 400,000 opcodes was more than the store takes", []request{
		submit(times(400_000, `{"OP_ID":"OP_TEST_DELAY","duration":0.000001}`)),
		submit(times(10_001, nothing)),
	}, []string{"too_large", "too_large"}},
	{"a rule whose reason JSON writes sixfold was more than the store takes", []request{
		luxi("ReplaceFilter", "null", "1", "[]", `"ACCEPT"`, `[["gnt:user",`+quote(strings.Repeat("<", 12*mib))+`,1]]`),
		luxi("ReplaceFilter", "null", "1", "[]", `"ACCEPT"`, `[["gnt:user",`+quote(strings.Repeat("<", 20<<10))+`,1]]`),
	}, []string{"too_large", "too_large"}},
	{"a log message and a result of megabytes were more than the store takes", []request{
		submit(`{"OP_ID":"OP_TEST_DUMMY","result":` + quote(strings.Repeat("<", mib-1000)) + `,"messages":[],"fail":false,"reason":[["gnt:user","x",1]]}`),
		submit(`{"OP_ID":"OP_TEST_JQUEUE","notify_waitlock":false,"notify_exec":false,"fail":false,"log_messages":[` + times(8, quote(strings.Repeat("\x01", 20<<10))) + `],"reason":[["gnt:user","x",1]]}`),
	}, []string{"too_large", "ok"}},
	{"a key with a control character, or not in UTF-8, stopped the queue", []request{
		luxi("SubmitJob", "["+nothing+"]", `"a\u0001b"`),
		luxi("SubmitJob", "["+nothing+"]", quote(strings.Repeat("k", 257))),
		luxi("SubmitJob", "["+nothing+"]", "\"\xff\""),
		{method: http.MethodPut, path: "/2/redistribute-config", header: http.Header{"Idempotency-Key": {"a\tb"}}},
		{method: http.MethodPut, path: "/2/redistribute-config", header: http.Header{"Idempotency-Key": {"\xe9"}}},
	}, []string{"invalid", "too_large", "invalid", "400", "400"}},
	{"anybody could have megabytes of values decoded", []request{
		{method: http.MethodGet, path: "/2/info", body: "[" + times(mib, `{"":0}`) + "]", anonymous: true},
		{method: http.MethodPut, path: "/2/query/job", body: `{"fields":["id"],"filter":[` + times(200_000, `{"":0}`) + `]}`},
	}, []string{"ok", "413"}},
	{"a rule with a linear pattern was searched for in texts of any length", []request{
		rule(`[ab]*a` + strings.Repeat(`[ab]{1000}`, 20) + `c`),
		rule(strings.Repeat(states, 7)),
		submit(trailed(strings.Repeat("ab", 8<<10))),
		submit(trailed(strings.Repeat("ab", 50<<10))),
		rapi(http.MethodPut, "/2/redistribute-config?reason="+strings.Repeat("ab", 7<<10), ""),
		submitMany(strings.Split(strings.Repeat(trailed(strings.Repeat("ab", 500))+"\n", 300)+trailed("x"), "\n")...),
	}, []string{"413", "ok", "ok", "too_large", "ok", "ok"}},
	{"each rule that needs backtracking had its 100 ms for each job", append(append(repeated(31, rule(slow)),
		submitMany(strings.Split(strings.Repeat(trailed(runaway)+"\n", 5)+trailed("x"), "\n")...)), repeated(2, rule(slow))...), append(repeated(33, "ok"), "413")},
	{"searching for circles was cubic", []request{
		submitMany(strings.Split(strings.Repeat(opcode(`,"depends":[[-1,[]]]`)+"\n", 3000)+nothing, "\n")...),
		submit(opcode(`,"depends":[` + times(150_000, `[1,[]]`) + `]`)),
		submit(opcode(`,"depends":[` + times(20_000, `[1,[]]`) + `]`)),
	}, []string{"ok", "too_large", "ok"}},
	{"jobs of refused ones in one submission pointed at strangers", []request{
		submitMany(nothing, `{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"on_master":true,"on_nodes":[],"reason":[["gnt:opcode:x","y",1]]}`, opcode(`,"depends":[[-1,[]]]`)),
	}, []string{"ok"}},
	{"a job was written whole at each of its steps", []request{
		submit(times(3000, nothing)),
		submit(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"repeat":20000,"on_master":true,"on_nodes":[],"reason":[["gnt:user","x",1]]}`),
	}, []string{"ok", "ok"}},
	{"a query could not be ended inside a match", []request{
		submit(trailed(strings.Repeat("ab", 8<<10))),
		luxi("Query", `"job"`, `["id"]`, `["=~","reason",`+quote(`[ab]*a[ab]{1000}c`)+`]`),
		luxi("Query", `"job"`, `["id"]`, `["=~","reason",`+quote(slow)+`]`),
		luxi("Query", `"job"`, `["id"]`, `["=~","reason",`+quote(strings.Repeat(`[ab]{1000}`, 300))+`]`),
	}, []string{"ok", "ok", "too_large", "too_large"}},
	{"children of a job carried forged sources and secrets", []request{
		submit(`{"OP_ID":"OP_TEST_DUMMY","result":null,"messages":[],"fail":false,"submit_jobs":[[{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"reason":[["gnt:opcode:x","y",1]]}]],"reason":[["gnt:user","x",1]]}`),
	}, []string{"ok"}},
	{"sources that look like the system's", []request{
		submit(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"reason":[["GNT:x","y",1]]}`),
		submit(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"reason":[[" gnt:x","y",1]]}`),
		submit(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"reason":[["gnt` + "\u200b" + `:x","y",1]]}`),
		submit(`{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"reason":[` + times(101, `["a","b",1]`) + `]}`),
	}, []string{"invalid", "invalid", "invalid", "too_large"}},
	{"a message of keys and no method took minutes, one that named a million jobs longer", []request{
		{luxi: `{` + times(300_000, `"0":0`) + `}`},
		luxi("QueryJobs", "["+times(1_000_000, "1")+"]", `["id"]`),
		luxi("QueryJobs", "["+times(100_000, "1")+"]", `["id"]`),
		luxi("WaitForJobChange", "1", `["nosuch"]`, "null", "0", "0"),
	}, []string{"invalid", "too_large", "ok", "ok"}},
	{"deep texts", []request{
		{luxi: strings.Repeat("[", 5*mib)},
		luxi("SubmitJob", `[{"OP_ID":"OP_TEST_DUMMY","result":`+strings.Repeat("[", mib/4)+strings.Repeat("]", mib/4)+`}]`),
		rapi(http.MethodPost, "/2/filters", `{"priority":1,"action":"ACCEPT","predicates":`+strings.Repeat("[", 90_000)+`}`),
		luxi("Query", `"job"`, `["id"]`, strings.Repeat(`["!",`, 200)+`["=","id",1]`+strings.Repeat("]", 200)),
	}, []string{"too_large", "invalid", "400", "too_large"}},
	{"texts of any length reached errors", []request{
		rapi(http.MethodGet, "/2/groups/"+strings.Repeat("<", 50<<10), ""),
		luxi(strings.Repeat("x", mib)),
		luxi("Query", quote(strings.Repeat("x", mib)), `["id"]`, "null"),
		luxi("Query", `"job"`, "["+quote(strings.Repeat("x", mib))+"]", "null"),
		rapi(http.MethodPost, "/2/groups", `{"group_name":`+quote(strings.Repeat("<", 200_000))+`}`),
	}, []string{"431", "invalid", "invalid", "ok", "413"}},
	{"frames that do not end, and bytes that are none", []request{
		{luxi: strings.Repeat("x", 17*mib)},
		{luxi: "\x00\xff\xfe"},
		{luxi: `{"method":"SubmitJob","args":[[null]]}`},
		{luxi: `{"method":"SubmitManyJobs","args":[[null]]}`},
		luxi("AutoArchiveJobs", "-1", "1e300"),
		luxi("WaitForJobChange", "1", `["status"]`, "null", "0", "-1e300"),
		luxi("ChangeJobPriority", "1", "99999999999999999999"),
	}, []string{"too_large", "invalid", "invalid", "invalid", "ok", "not_found", "invalid"}},
}

// TestWhatOnceStoppedTheController sends each attack to the program as it is.
func TestWhatOnceStoppedTheController(t *testing.T) {
	bin, data := testkit.Build(t), t.TempDir()
	// Memory is to tell what is held, not what the collector has not got round to.
	t.Setenv("GOGC", "20")
	g := start(t, bin, data)
	g.bystander(t)
	for _, a := range slices.Concat(attacks, serverAttacks) {
		t.Run(a.what, func(t *testing.T) { g.suffer(t, a) })
	}
	// None of it keeps the controller from starting again.
	g.Terminate()
	if err := g.Gone(); err != nil {
		t.Errorf("it did not end in good order: %v", err)
	}
	g = start(t, bin, data)
	g.bystander(t)
	g.Kill()
	_ = g.Gone() // it was killed
	start(t, bin, data).bystander(t)
}

// suffer sends an attack, again if the process has grown too much: what one client
// takes it takes each time, and what the collector was late for it is not.
func (g *target) suffer(t *testing.T, a attack) {
	const tries = 3
	grown := int64(0)
	for range tries {
		grown = g.attacked(t, a)
		g.bystander(t)
		g.withoutRules(t)
		if grown <= maxGrowth || t.Failed() {
			return
		}
	}
	t.Errorf("the process grows by %d MiB; the limit is %d", grown>>20, maxGrowth>>20)
}

// attacked sends the requests of an attack and returns by how much the process has
// grown at most.
func (g *target) attacked(t *testing.T, a attack) int64 {
	t.Helper()
	before, _ := g.memory(t)
	g.forgetPeak()
	longest := time.Duration(0)
	for i, r := range a.requests {
		begun := time.Now()
		got, err := g.send(t.Context(), r)
		longest = max(longest, time.Since(begun))
		if err != nil {
			t.Fatalf("%s: no answer: %v", r, err)
		}
		want := "*"
		if i < len(a.want) {
			want = a.want[i]
		}
		if r.unread && got.verdict == "closed" {
			continue
		}
		if got.blamesUs() || want != "*" && got.verdict != want {
			t.Errorf("%s: %s %.300s; want %s", r, got.verdict, got.text, want)
		}
	}
	_, peak := g.memory(t)
	t.Logf("the process grew by %d MiB at most, from %d; the longest answer took %.3f s", (peak-before)>>20, before>>20, longest.Seconds())
	return peak - before
}

// withoutRules removes what an attack has put.
func (g *target) withoutRules(t *testing.T) {
	t.Helper()
	got, err := g.send(t.Context(), rapi(http.MethodGet, "/2/filters", ""))
	if err != nil {
		t.Fatal(err)
	}
	var rules []struct{ UUID string }
	if err := json.Unmarshal([]byte(got.text), &rules); err != nil {
		t.Fatalf("%.300s: %v", got.text, err)
	}
	for _, r := range rules {
		if got, err := g.send(t.Context(), rapi(http.MethodDelete, "/2/filters/"+r.UUID, "")); err != nil || got.verdict != "ok" {
			t.Fatalf("a rule cannot be removed: %v %v", got, err)
		}
	}
}
