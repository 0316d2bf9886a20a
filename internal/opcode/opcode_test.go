package opcode_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

func mustParse(t testing.TB, text string) *opcode.Opcode {
	t.Helper()
	op, err := opcode.Parse([]byte(text), opcode.Options{})
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return op
}

func TestParseFillsDefaultsAndKeepsOthersUnset(t *testing.T) {
	op := mustParse(t, `{"duration":3,"OP_ID":"OP_TEST_DELAY","on_node_uuids":null,"repeat":2.0,"depends":[["12",["success"]],[-1,[]]],
		"comment":"für Müller","priority":-10,"dry_run":false,"reason":[["user","why",1.5e9]]}`)
	want := map[string]any{"duration": 3.0, "on_master": true, "on_nodes": []any{}, "repeat": int64(2), "interruptible": false, "no_locks": true}
	if !reflect.DeepEqual(op.Params, want) {
		t.Errorf("Params = %#v, want %#v", op.Params, want)
	}
	if op.Priority != opcode.PriorityHigh || op.Comment == nil || *op.Comment != "für Müller" {
		t.Errorf("common parameters: %+v", op)
	}
	if want := []opcode.Dependency{{Job: 12, Statuses: []string{"success"}}, {Job: -1, Statuses: []string{}}}; !reflect.DeepEqual(op.Depends, want) {
		t.Errorf("Depends = %v, want %v", op.Depends, want)
	}
	if want := (reason.Trail{{Source: "user", Reason: "why", Time: 1500000000}}); !reflect.DeepEqual(op.Reason, want) {
		t.Errorf("Reason = %v, want %v", op.Reason, want)
	}
	const encoded = `{"OP_ID":"OP_TEST_DELAY","duration":3.0,"on_master":true,"on_nodes":[],"repeat":2,"interruptible":false,"no_locks":true,` +
		`"dry_run":false,"debug_level":0,"priority":-10,"depends":[[12,["success"]],[-1,[]]],"comment":"für Müller","reason":[["user","why",1500000000]]}`
	if got, err := json.Marshal(op); err != nil || string(got) != encoded {
		t.Errorf("encoded\n%s, want\n%s (%v)", got, encoded, err)
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	a := mustParse(t, `{"OP_ID":"OP_INSTANCE_CREATE","instance_name":"a","disks":[],"nics":[],"mode":"create"}`)
	b := mustParse(t, `{"OP_ID":"OP_INSTANCE_CREATE","instance_name":"b","disks":[],"nics":[],"mode":"create"}`)
	a.Map("beparams")["memory"] = int64(1)
	if len(b.Map("beparams")) != 0 {
		t.Error("two opcodes share the object of a default")
	}
}

func TestRefusalsNameOpcodeAndParameter(t *testing.T) {
	for _, tc := range []struct{ in, field, text string }{
		{`{"OP_ID":"OP_NODE_SET_PARAM"}`, "OP_ID", `unknown opcode "OP_NODE_SET_PARAM" (did you mean "OP_NODE_SET_PARAMS"?)`},
		{`{"OP_ID":7}`, "OP_ID", `opcode: the parameter "OP_ID" must be string, got 7`},
		{`{"reason":[]}`, "OP_ID", `an opcode needs the key OP_ID`},
		{`{"OP_ID":"OP_INSTANCE_STARTUP"}`, "instance_name", `OP_INSTANCE_STARTUP needs the parameter "instance_name"`},
		{`{"OP_ID":"OP_INSTANCE_STARTUP","instance_name":null}`, "instance_name", `OP_INSTANCE_STARTUP needs the parameter "instance_name"`},
		{`{"OP_ID":"OP_INSTANCE_STARTUP","instance_nam":"x"}`, "instance_nam", `OP_INSTANCE_STARTUP has no parameter "instance_nam" (did you mean "instance_name"?)`},
		{`{"OP_ID":"OP_TAGS_SEARCH","zzzzzzz":1}`, "zzzzzzz", `OP_TAGS_SEARCH has no parameter "zzzzzzz" (known are OP_ID, comment, debug_level, depends, dry_run, pattern, priority, reason)`},
		{`{"OP_ID":"OP_TAGS_SET","kind":"cluster","tags":["a",1]}`, "tags[1]", `OP_TAGS_SET: the parameter "tags[1]" must be string, got 1`},
		{`{"OP_ID":"OP_TAGS_SET","kind":"moon","tags":[]}`, "kind", `OP_TAGS_SET: the parameter "kind" must be enum TagKind, got "moon"`},
		{`{"OP_ID":"OP_TEST_DELAY","duration":1,"repeat":-1}`, "repeat", `OP_TEST_DELAY: the parameter "repeat" must be int >= 0, got -1`},
		{`{"OP_ID":"OP_TEST_DELAY","duration":1,"repeat":1.5}`, "repeat", `OP_TEST_DELAY: the parameter "repeat" must be int >= 0, got 1.5`},
		{`{"OP_ID":"OP_TEST_DELAY","duration":1,"priority":true}`, "priority", `OP_TEST_DELAY: the parameter "priority" must be priority: -10, 0 or 10, got true`},
		{`{"OP_ID":"OP_TEST_DELAY","duration":1,"depends":[[1,["running"]]]}`, "depends[0]", `OP_TEST_DELAY: the parameter "depends[0]" must be array[job id, list of final statuses], got [1,["running"]]`},
		{`{"OP_ID":"OP_TEST_DELAY","duration":1,"reason":[["a","b"]]}`, "reason[0]", `OP_TEST_DELAY: the parameter "reason[0]" must be array[source, reason, nanoseconds], got ["a","b"]`},
		{`{"OP_ID":"OP_INSTANCE_CREATE","instance_name":"a","mode":"create","disks":[{"size":-1}],"nics":[]}`, "disks[0].size", ``},
		{`{"OP_ID":"OP_INSTANCE_CREATE","instance_name":"a","mode":"create","disks":[],"nics":[{"macc":"x"}]}`, "nics[0]", ``},
		{`[]`, "", "an opcode must be a JSON object, got ["},
		{`{"OP_ID":"OP_CLUSTER_QUERY"} x`, "", ``},
		{`{"OP_ID":"OP_CLUSTER_QUERY","OP_ID":"OP_CLUSTER_QUERY"}`, "", ``},
		{"{\"OP_ID\":\"OP_\xff\"}", "", ``},
		{``, "", ``},
		{`{"OP_ID":"OP_TEST_DUMMY","result":` + strings.Repeat("[", 102) + strings.Repeat("]", 102) + `}`, "", `lists and objects are nested deeper than 100`},
		{`{"OP_ID":"OP_TEST_DUMMY","result":1e999}`, "", `the number 1e999 is out of range`},
	} {
		_, err := opcode.Parse([]byte(tc.in), opcode.Options{})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Invalid || f.Field != tc.field || (tc.text != "" && f.Error() != tc.text) {
			t.Errorf("%s:\n got %v (%+v)\nwant %s, field %q", tc.in, err, f, tc.text, tc.field)
		}
	}
}

func TestFromMapTakesGoValues(t *testing.T) {
	comment := "c"
	var viaJSON map[string]any
	if err := json.Unmarshal([]byte(`{"duration":0.5,"repeat":3}`), &viaJSON); err != nil {
		t.Fatal(err)
	}
	a, err := opcode.FromMap("OP_TEST_DELAY", viaJSON)
	if err != nil {
		t.Fatal(err)
	}
	b, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{
		"duration": 0.5, "repeat": 3, "on_nodes": []string{"n1"}, "comment": &comment,
		"reason":  reason.Trail{{Source: "user", Reason: "x", Time: 1}},
		"depends": []opcode.Dependency{{Job: 3, Statuses: []string{"error"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a.Int("repeat") != 3 || a.Float("duration") != 0.5 || b.Int("repeat") != 3 {
		t.Errorf("numbers: %v %v", a.Params, b.Params)
	}
	if got := b.Strings("on_nodes"); !reflect.DeepEqual(got, []string{"n1"}) {
		t.Errorf("on_nodes = %v", got)
	}
	if len(b.Reason) != 1 || len(b.Depends) != 1 || *b.Comment != "c" {
		t.Errorf("common parameters: %+v", b)
	}
	if _, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": struct{}{}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a struct as a number: %v", err)
	}
}

func TestSummary(t *testing.T) {
	for in, want := range map[string]string{
		`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"web1"}`: "INSTANCE_SHUTDOWN(web1)",
		`{"OP_ID":"OP_CLUSTER_QUERY"}`:                            "CLUSTER_QUERY",
		`{"OP_ID":"OP_TEST_DELAY","duration":0.001}`:              "TEST_DELAY(1.0e-3)",
		`{"OP_ID":"OP_TEST_DELAY","duration":0.1}`:                "TEST_DELAY(0.1)",
		`{"OP_ID":"OP_TEST_DELAY","duration":14}`:                 "TEST_DELAY(14.0)",
		`{"OP_ID":"OP_TEST_DELAY","duration":-1}`:                 "TEST_DELAY(-1.0)",
		`{"OP_ID":"OP_TEST_DELAY","duration":0}`:                  "TEST_DELAY(0.0)",
		`{"OP_ID":"OP_TEST_DELAY","duration":12345678}`:           "TEST_DELAY(1.2345678e7)",
		`{"OP_ID":"OP_TAGS_GET","kind":"cluster"}`:                "TAGS_GET(None)",
	} {
		if got := mustParse(t, in).Summary(); got != want {
			t.Errorf("%s: summary %q, want %q", in, got, want)
		}
	}
}

func TestNamesAreTheirOwn(t *testing.T) {
	classes := map[string]string{}
	for _, d := range opcode.All() {
		if other := classes[d.Class()]; other != "" || !strings.HasPrefix(d.Class(), "Op") {
			t.Errorf("%s: class %s, which %q has too", d.ID, d.Class(), other)
		}
		classes[d.Class()] = d.ID
		if d.Doc == "" || !strings.HasSuffix(d.Doc, ".") {
			t.Errorf("%s: doc %q", d.ID, d.Doc)
		}
		for _, p := range d.Params {
			if p.Doc == "" {
				t.Errorf("%s.%s has no doc", d.ID, p.Name)
			}
		}
	}
	if d, _ := opcode.Lookup("OP_INSTANCE_SHUTDOWN"); d.Class() != "OpInstanceShutdown" {
		t.Errorf("class %s", d.Class())
	}
}

func TestSecretsAreHidden(t *testing.T) {
	op := mustParse(t, `{"OP_ID":"OP_INSTANCE_REINSTALL","instance_name":"a","osparams":{"x":"1"},
		"osparams_private":{"p":"2"},"osparams_secret":{"s":{"deep":"3"}}}`)
	stored, shown := op.ForStore(), op.ForDisplay()
	if got := stored.Map("osparams_private")["p"]; got != "2" {
		t.Errorf("stored private value %v", got)
	}
	for name, o := range map[string]*opcode.Opcode{"stored": stored, "shown": shown} {
		if got := o.Map("osparams_secret")["s"]; got != "<redacted>" {
			t.Errorf("%s secret value %v", name, got)
		}
	}
	if got := shown.Map("osparams_private")["p"]; got != "<redacted>" {
		t.Errorf("shown private value %v", got)
	}
	if got := op.Map("osparams_secret")["s"]; got == "<redacted>" {
		t.Error("the original was changed")
	}
	if op.LostSecret() != "" || shown.ForStore().LostSecret() != "osparams_secret" {
		t.Errorf("lost secrets: %q and %q", op.LostSecret(), stored.LostSecret())
	}
	nested := mustParse(t, `{"OP_ID":"OP_CLUSTER_SET_PARAMS","osparams_private_cluster":{"debian":{"p":"2"}}}`).ForDisplay()
	if got := nested.Map("osparams_private_cluster")["debian"]; !reflect.DeepEqual(got, map[string]any{"p": "<redacted>"}) {
		t.Errorf("nested private value %v", got)
	}
	inner := mustParse(t, `{"OP_ID":"OP_INSTANCE_MULTI_ALLOC","instances":[{"OP_ID":"OP_INSTANCE_CREATE","osparams_secret":{"s":"4"}}]}`).ForStore()
	if got := string(inner.AppendJSON(nil)); strings.Contains(got, `"4"`) || !strings.Contains(got, `{"s":"<redacted>"}`) {
		t.Errorf("secret inside another opcode: %s", got)
	}
	plain := mustParse(t, `{"OP_ID":"OP_CLUSTER_QUERY"}`)
	if plain.ForDisplay() != plain {
		t.Error("an opcode without secrets was copied")
	}
}

func TestReasonSource(t *testing.T) {
	if got := opcode.ReasonSource("OP_INSTANCE_SHUTDOWN"); got != "gnt:opcode:instance_shutdown" {
		t.Errorf("ReasonSource = %q", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":0.5,"reason":[["a","b",1]],"depends":[[1,["success"]]],"comment":"x","dry_run":true}`))
	f.Add([]byte(`{"OP_ID":"OP_TEST_DUMMY","result":{"a":[1,2.0,1e30,null,"\u00e9\u0003"]},"messages":null,"fail":-0,"submit_jobs":1e-9}`))
	f.Add([]byte(`{"OP_ID":"OP_INSTANCE_SET_PARAMS","instance_name":"a","disks":[["add",{"size":"1g"}],["modify",0,{"mode":"ro"}],[0,{}]],"nics":[["add","eth0",{"ip":null}]]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		op, err := opcode.Parse(raw, opcode.Options{})
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error without the code invalid: %v", err)
			}
			return
		}
		first := op.AppendJSON(nil)
		again, err := opcode.Parse(first, opcode.Options{RequireReason: true})
		if err != nil {
			t.Fatalf("own output %s refused: %v", first, err)
		}
		if second := again.AppendJSON(nil); string(second) != string(first) {
			t.Fatalf("not stable:\n%s\n%s", first, second)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(`{"OP_ID":"OP_TEST_DELAY","duration":0.001,"on_master":true,"on_nodes":[],"repeat":0,"no_locks":true,"interruptible":false,"reason":[["user","benchmark",1795249715873047668]]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := opcode.Parse(raw, opcode.Options{RequireReason: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	op := mustParse(b, `{"OP_ID":"OP_TEST_DELAY","duration":0.001,"reason":[["user","benchmark",1795249715873047668]]}`)
	buf := make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = op.AppendJSON(buf[:0])
	}
}

// What is secret of an opcode is also secret of one inside another.
func TestSecretsOfNestedJobsAreRedacted(t *testing.T) {
	op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DUMMY","result":null,"messages":null,"fail":false,"submit_jobs":[[{"OP_ID":"OP_TEST_DUMMY",
		"submit_jobs":[[{"OP_ID":"OP_INSTANCE_CREATE","osparams_secret":{"k":"S1"},"osparams_private":{"p":"S2"},"osparams":{"o":"shown"}}]]}],
		[{"osparams_secret":"S3"}]]}`), opcode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored, shown := string(op.ForStore().AppendJSON(nil)), string(op.ForDisplay().AppendJSON(nil))
	if strings.Contains(stored, "S1") || strings.Contains(stored, "S3") || !strings.Contains(stored, "S2") || !strings.Contains(stored, "shown") {
		t.Errorf("stored: %s", stored)
	}
	if strings.ContainsAny(shown, "123") || !strings.Contains(shown, `"k"`) || !strings.Contains(shown, "shown") {
		t.Errorf("shown: %s", shown)
	}
	if op.LostSecret() != "" || op.ForStore().LostSecret() != "submit_jobs" {
		t.Errorf("lost: %q, %q", op.LostSecret(), op.ForStore().LostSecret())
	}
	for _, d := range opcode.All() {
		for i := range d.Params {
			if p := &d.Params[i]; p.Type.Secrecy() > opcode.Public && !strings.HasPrefix(p.Name, "osparams_") && p.Name != "submit_jobs" && p.Name != "instances" {
				t.Errorf("%s: %s is secret by itself, and not inside another opcode", d.ID, p.Name)
			}
		}
	}
}

// Below these formats of the store a program of before may lead, which does not know the opcode, or forgets what it has left behind.
func TestWhichFormatsOpcodesNeed(t *testing.T) {
	needs := map[string]int{}
	for _, d := range opcode.All() {
		if d.Since != 0 {
			needs[d.ID] = d.Since
		}
	}
	want := map[string]int{"OP_NODE_ORPHANS": 2, "OP_NODE_CLEAR_ORPHANS": 2, "OP_NODE_TOKEN": 3, "OP_IMAGE_ADD": 4, "OP_IMAGE_REMOVE": 4,
		"OP_INSTANCE_FAILOVER": 5, "OP_INSTANCE_MIGRATE": 5, "OP_INSTANCE_REPLACE_DISKS": 5, "OP_NODE_EVACUATE": 5, "OP_NODE_MIGRATE": 5, "OP_DISK_REMOVE": 6, "OP_IMAGE_CAPTURE": 11}
	if !maps.Equal(needs, want) {
		t.Errorf("%v, want %v", needs, want)
	}
}
