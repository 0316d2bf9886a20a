package luxiwire

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestParseRequest(t *testing.T) {
	req, err := ParseRequest([]byte(`{"version": 3000000, "args": [["a"], null], "method": "QueryFilters", "x": 1}`))
	if err != nil || req.Method != "QueryFilters" || string(req.Args) != `[["a"], null]` {
		t.Errorf("got %+v, %v", req, err)
	}
}

func TestParseRequestRefuses(t *testing.T) {
	const top = "parsing top-level JSON message: "
	for _, tc := range []struct{ name, frame, want string }{
		{"nothing", "", top + "Invalid JSON: a JSON text a serialized object or array at the top level."},
		{"a scalar", "5", top + "Invalid JSON: a JSON text a serialized object or array at the top level."},
		{"a list", "[]", top + "Unable to read JSObject"},
		{"cut short", "{", top + "Malformed JSON: unexpected end of JSON input"},
		{"not UTF-8", "{\"method\":\"\xff\"}", top + "Malformed JSON: the byte at position 11 is not valid UTF-8"},
		{"no args", `{"x":1,"method":"Query","x":2}`, `key 'args' not found, object contains only ["x","method"]`},
		{"no method", `{"args":[]}`, `key 'method' not found, object contains only ["args"]`},
		{"method is a number", `{"args":[],"method":5}`, `Can't parse value for 'method': Unable to read String`},
		{"stale is null", `{"args":[],"method":"Query","stale":null}`, `Can't parse value for 'stale': true or false is expected`},
		{"method is null", `{"args":[],"method":null}`, `Can't parse value for 'method': Unable to read String`},
	} {
		_, err := ParseRequest([]byte(tc.frame))
		if err == nil || err.Error() != tc.want || !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestResponsesKeepTextInAnyScript(t *testing.T) {
	const text = "für Müller — 保守 <b>&\u2028 \x03"
	frame, err := ResultFrame(text)
	if err != nil {
		t.Fatal(err)
	}
	var resp Response
	var got string
	if err := json.Unmarshal(frame, &resp); err != nil || !resp.Success {
		t.Fatalf("%s: %v", frame, err)
	}
	if err := json.Unmarshal(resp.Result, &got); err != nil || got != text {
		t.Errorf("got %q", got)
	}
	for _, b := range frame {
		if b == Terminator {
			t.Error("the terminator is not escaped")
		}
	}
}

func TestErrorsCrossTheWire(t *testing.T) {
	for _, tc := range []struct {
		name    string
		err     error
		pair    Error
		code    fault.Code
		message string
	}{
		{"with field and hint", fault.New(fault.Drained, "the queue is drained").At("ops").WithHint("wait"),
			*Generic("x"), fault.Drained, "the queue is drained"},
		{"a class of its own", Prereq("unknown_entity", "Instance name %s not found", "web1"),
			*Prereq("unknown_entity", "Instance name web1 not found"), fault.NotFound, "Instance name web1 not found"},
		{"no code", errors.New("disk on fire"), *Generic("disk on fire"), fault.Internal, "disk on fire"},
	} {
		frame, err := ErrorFrame(tc.pair, tc.err)
		if err != nil {
			t.Fatal(err)
		}
		var resp Response
		if err := json.Unmarshal(frame, &resp); err != nil || resp.Success {
			t.Fatalf("%s: %s: %v", tc.name, frame, err)
		}
		back := resp.asError()
		f, ok := errors.AsType[*fault.Error](back)
		if !ok || f.Code != tc.code || f.Message != tc.message {
			t.Errorf("%s: got %#v", tc.name, back)
		}
		if pair, ok := errors.AsType[*Error](back); !ok || pair.Class != tc.pair.Class {
			t.Errorf("%s: the pair is lost: %v", tc.name, pair)
		}
	}
}

func TestErrorsOfOtherServers(t *testing.T) {
	for _, tc := range []struct {
		result string
		code   fault.Code
		text   string
	}{
		{`["GenericError",["Queue drained"]]`, fault.Failed, "Queue drained"},
		{`["OpPrereqError",["no such","unknown_entity"]]`, fault.NotFound, "no such"},
		{`["OpPrereqError",["no such","new_code"]]`, fault.Failed, "no such"},
		{`["JobLost",["Can't load job file"]]`, fault.NotFound, "Can't load job file"},
		{`["JobQueueFull",[]]`, fault.Full, "JobQueueFull"},
		{`"Failed to parse request: x"`, fault.Invalid, "Failed to parse request: x"},
		{`{"odd":1}`, fault.Internal, `the server answered with an error of an unknown form: {"odd":1}`},
	} {
		err := Response{Result: json.RawMessage(tc.result)}.asError()
		if fault.CodeOf(err) != tc.code || err.Error() != tc.text {
			t.Errorf("%s: got %s, %v", tc.result, fault.CodeOf(err), err)
		}
	}
}

func TestErrorPairEncoding(t *testing.T) {
	for _, tc := range []struct {
		err  Error
		want string
	}{
		{Error{Class: "JobQueueFull"}, `["JobQueueFull",[]]`},
		{*Prereq("wrong_input", "a < b"), `["OpPrereqError",["a < b","wrong_input"]]`},
	} {
		got, err := tc.err.MarshalJSON()
		if err != nil || string(got) != tc.want {
			t.Errorf("got %s, %v; want %s", got, err, tc.want)
		}
	}
}
