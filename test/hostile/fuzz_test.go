package hostile

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// requests is how many random requests the normal tests send.
const requests = 600

// seed is where the random requests begin: DROVER_HOSTILE_SEED, or the same in
// every normal run.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DROVER_HOSTILE_SEED")
	if text == "" {
		return 1
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DROVER_HOSTILE_SEED: %v", err)
	}
	return n
}

// hostility makes random requests. It knows the limits (docs/limits.md), and
// prefers what lies on them.
type hostility struct{ *rand.Rand }

func pick[T any](h hostility, of ...T) T { return of[h.IntN(len(of))] }

// around is a number at a limit, or one near it.
func (h hostility) around(limits ...int) int {
	return max(0, pick(h, limits...)+pick(h, -1, 0, 1, h.IntN(100)))
}

// text is one that somebody might stumble over, in JSON.
func (h hostility) text() string {
	if h.IntN(4) > 0 {
		return pick(h, `"web1"`, `"a"`, `"node1.example.com"`, `"x y"`, `"é"`)
	}
	letter := pick(h, "a", "<", "\x01", "é", "😀", "\u202e", "\u0000", `"`, `\`, "ab", "gnt:", "%", "\u200b", "\xff")
	n := pick(h, 0, 1, h.IntN(300), h.around(128, 256, 4096, 16<<10))
	if h.IntN(40) == 0 {
		n = h.around(64<<10, 1<<20)
	}
	return quote(strings.Repeat(letter, n/len(letter)+1))
}

func (h hostility) number() string {
	return pick(h, "0", "-1", "1", "1e300", "-0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e-320", "0.5",
		strconv.Itoa(h.around(100, 1000, 5000, 10_000, 100_000, 1<<31-1)))
}

// value is any JSON, not too deep, and sometimes far too deep.
func (h hostility) value(depth int) string {
	if h.IntN(60) == 0 {
		n := h.around(100, 10_000)
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	}
	switch kind := h.IntN(9); {
	case kind == 0 && depth > 0:
		parts := make([]string, h.IntN(4))
		for i := range parts {
			parts[i] = h.value(depth - 1)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kind == 1 && depth > 0:
		return "{" + h.text() + ":" + h.value(depth-1) + "}"
	case kind < 4:
		return h.number()
	case kind < 7:
		return h.text()
	}
	return pick(h, "null", "true", "false", "[]", "{}", `""`)
}

func (h hostility) pattern() string {
	return quote(pick(h, slow, states, "(", "[a", "a{1001}", "(a*)*b", `\1`, `(?<=a)b`, strings.Repeat("a?", 50)+strings.Repeat("a", 50), strings.Repeat("(", h.around(100, 1000)), "^web", `\p{Greek}`))
}

func (h hostility) filter(depth int) string {
	field := pick(h, `"id"`, `"id"`, `"reason"`, `"status"`, `"name"`, `"OP_ID"`, h.text())
	if h.IntN(2) == 0 {
		return `["=~","reason",` + pick(h, quote(slow), quote(states), `"^web"`, h.pattern()) + "]"
	}
	switch h.IntN(8) {
	case 0, 1:
		if depth > 0 {
			return "[" + pick(h, `"&"`, `"|"`) + "," + h.filter(depth-1) + "," + h.filter(depth-1) + "]"
		}
		return "[]"
	case 2:
		n := h.around(5, 100)
		return strings.Repeat(`["!",`, n) + `["=",` + field + `,1]` + strings.Repeat("]", n)
	case 3:
		return `["=~",` + field + "," + h.pattern() + "]"
	case 4:
		return h.value(3)
	}
	return "[" + pick(h, `"="`, `"<"`, `">="`, `"=[]"`, `"?"`, `"nosuch"`) + "," + field + "," + h.value(1) + "]"
}

// op is an opcode with members that it should not have.
func (h hostility) op() string {
	id := pick(h, "OP_TEST_DELAY", "OP_TEST_DELAY", "OP_TEST_DELAY", "OP_TEST_DELAY", "OP_TEST_DELAY", "OP_TEST_DELAY", "OP_TEST_DUMMY", "OP_TEST_JQUEUE", "OP_INSTANCE_CREATE", "OP_TAGS_SET", "OP_GROUP_ADD",
		"OP_INSTANCE_QUERY_DATA", "OP_CLUSTER_SET_PARAMS", "OP_NETWORK_ADD", "OP_NOSUCH")
	out := `{"OP_ID":"` + id + `"`
	if id == "OP_TEST_DELAY" {
		out += `,"duration":0.000001,"on_master":true,"on_nodes":[]`
	}
	for range max(0, h.IntN(5)-2) {
		member := pick(h, "duration", "depends", "priority", "comment", "name", "group_name", "instance_name", "tags", "kind", "reason", "ndparams", "beparams",
			"nics", "disks", "result", "messages", "fail", "submit_jobs", "repeat", "dry_run", "debug_level", "network", "osparams_secret")
		if member == "duration" || member == "repeat" {
			continue // jobs that only take their time are no attack
		}
		out += `,"` + member + `":` + h.value(3)
	}
	if h.IntN(6) == 0 {
		out += `,"depends":[[` + h.number() + `,[]]]`
	}
	return out + `,"reason":[[` + pick(h, `"gnt:user"`, `"me"`, h.text()) + "," + h.text() + `,1]]}`
}

func (h hostility) rule() string {
	predicates := make([]string, h.IntN(3))
	for i := range predicates {
		predicates[i] = "[" + pick(h, `"reason"`, `"reason"`, `"reason"`, `"opcode"`, `"jobid"`, h.text()) + "," + h.filter(3) + "]"
	}
	return `{"priority":` + pick(h, "1", "100", h.number()) + `,"action":` + pick(h, `"ACCEPT"`, `"ACCEPT"`, `"CONTINUE"`, `["RATE_LIMIT",`+h.number()+`]`, h.text()) +
		`,"predicates":[` + strings.Join(predicates, ",") + `]}`
}

// request is a random one. It holds no other client's jobs: no rule of it pauses
// or rejects, and it drains nothing.
func (h hostility) request() request {
	switch h.IntN(12) {
	case 9, 10, 11:
		return h.serverRequest()
	case 0, 1:
		if h.IntN(3) > 0 {
			return luxi("SubmitJob", "["+h.op()+"]")
		}
		return luxi("SubmitJob", "["+h.op()+"]", h.text())
	case 2:
		ops := make([]string, 1+h.IntN(4))
		for i := range ops {
			ops[i] = h.op()
		}
		return submitMany(ops...)
	case 3:
		kind := pick(h, `"job"`, `"job"`, `"instance"`, `"node"`, `"filter"`, `"lock"`, `"reason"`, h.text())
		return luxi("Query", kind, pick(h, `["id"]`, `["name"]`, "["+h.text()+"]"), h.filter(4))
	case 4:
		method := pick(h, "CancelJob", "ArchiveJob", "QueryJobs", "WaitForJobChange", "ChangeJobPriority", "AutoArchiveJobs", "QueryFields", "ReplaceFilter", "DeleteFilter",
			"QueryTags", "QueryConfigValues", "ExplainJob", "TestFilter", "QueryOSes", "PickupJob")
		args := make([]string, h.IntN(6))
		for i := range args {
			args[i] = h.value(3)
		}
		return luxi(method, args...)
	case 5:
		return rapi(http.MethodPost, "/2/filters", h.rule())
	case 6:
		return rapi(http.MethodPut, "/2/query/"+pick(h, "job", "instance", "nosuch"), `{"fields":["id"],"filter":`+h.filter(4)+`}`)
	case 7:
		text := []byte(luxi("SubmitJob", "["+h.op()+"]").luxi)
		for range 1 + h.IntN(5) {
			text[h.IntN(len(text))] = byte(h.UintN(256))
		}
		return request{luxi: strings.ReplaceAll(string(text), "\x03", " ")}
	}
	path := pick(h, "/2/jobs/"+h.number(), "/2/jobs/"+h.number()+"/explain", "/2/groups/default/modify", "/2/groups", "/2/networks", "/2/instances", "/2/instances/x/reboot",
		"/2/tags", "/2/filters/x", "/2/nosuch", "/2/redistribute-config", "/2/groups/default/tags")
	return request{method: pick(h, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, "PATCH"), path: path, body: h.value(4),
		header: http.Header{"Idempotency-Key": {pick(h, "k", "a\tb", "\xe9", strings.Repeat("k", h.around(256)))}}, anonymous: h.IntN(5) == 0}
}

// TestRandomRequests sends random requests one after the other.
func TestRandomRequests(t *testing.T) {
	first := seed(t)
	t.Logf("DROVER_HOSTILE_SEED=%d", first)
	h := hostility{rand.New(rand.NewPCG(first, 0))}
	bin, data := testkit.Build(t), t.TempDir()
	t.Setenv("GOGC", "20") // see TestWhatOnceStoppedTheController
	g := start(t, bin, data)
	g.bystander(t)
	before, _ := g.memory(t)
	verdicts := map[string]int{}
	const rest = 100 // after so many requests somebody looks how things are
	for i := range requests {
		r := h.request()
		got, err := g.send(t.Context(), r)
		if err != nil {
			t.Fatalf("request %d, %s: no answer: %v", i, r, err)
		}
		if got.blamesUs() {
			t.Errorf("request %d, %s: %s %.500s", i, r, got.verdict, got.text)
		}
		verdicts[got.verdict]++
		if i%rest == rest-1 {
			g.withoutRules(t)
			g.bystander(t)
		}
	}
	now, peak := g.memory(t)
	t.Logf("%d requests: %v; %d MiB at most, %d at the end, %d at first", requests, verdicts, peak>>20, now>>20, before>>20)
	if now-before > 2*maxGrowth { // what was accepted is there for good
		t.Errorf("the process has grown by %d MiB", (now-before)>>20)
	}
	if verdicts["ok"] < requests/20 || verdicts["ok"] > requests*19/20 {
		t.Errorf("the requests are not what they should be: %v", verdicts)
	}
	g.Terminate()
	if err := g.Gone(); err != nil {
		t.Errorf("it did not end in good order: %v", err)
	}
	start(t, bin, data).bystander(t)
}
