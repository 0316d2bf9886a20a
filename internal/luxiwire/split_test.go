package luxiwire

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// FuzzElements: the parts of a list, and of an object, are those that decoding
// finds.
func FuzzElements(f *testing.F) {
	for _, text := range []string{`[]`, ` [ 1 , "a,]\"" , [[],{}] , {"b":[1]} , null,-1.5e3 ]`, `{"a":1, "b" : [2,"}"],"a":{} }`, `"x"`, `12`, `{}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		var list []json.RawMessage
		isList := json.Unmarshal([]byte(text), &list) == nil && list != nil
		got, ok := Elements([]byte(text))
		if ok != isList || len(got) != len(list) {
			t.Fatalf("%s: %s, %v, want %s", text, got, ok, list)
		}
		for i := range got {
			if !bytes.Equal(got[i], list[i]) {
				t.Errorf("%s: element %d is %s, want %s", text, i, got[i], list[i])
			}
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		last := maps.Collect(members([]byte(text)))
		for key, value := range object {
			if !bytes.Equal(last[key], value) || len(last) != len(object) {
				t.Errorf("%s: %q is %s, want %s", text, key, last[key], value)
			}
		}
	})
}

// Such a request took minutes, also after its client had left.
func TestManyKeysAreRefusedAtOnce(t *testing.T) {
	var frame strings.Builder
	frame.WriteString(`{"0":0`)
	for i := range 300_000 {
		frame.WriteString(`,"` + strings.Repeat("k", i%5) + `x":0`)
	}
	frame.WriteString("}")
	_, err := ParseRequest([]byte(frame.String()))
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `key 'method' not found, object contains only ["0","x","kx"`) || len(err.Error()) > 1000 {
		t.Errorf("%.300v", err)
	}
	_, err = ParseRequest([]byte("[" + strings.Repeat("0,", MaxValues) + "0]"))
	if !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "1000000 values") {
		t.Errorf("%.300v", err)
	}
}

func TestLongMessagesShareTheirMemory(t *testing.T) {
	memory := intake.NewBudget(500 << 10) // a message has twice its size for a moment
	reader := func(length int) *FrameReader {
		f := NewFrameReader(strings.NewReader(strings.Repeat("x", length)+"\x03y\x03"), 1<<20)
		f.Charge(memory)
		return f
	}
	first := reader(200 << 10)
	if frame, err := first.Next(); err != nil || len(frame) != 200<<10 {
		t.Fatalf("%d bytes, %v", len(frame), err)
	}
	if taken := memory.Taken(); taken < 200<<10 || taken > 201<<10 {
		t.Errorf("a long message pays for %d bytes", taken)
	}
	second := reader(200 << 10)
	if _, err := second.Next(); !fault.Is(err, fault.Busy) {
		t.Errorf("more than there is memory for: %v", err)
	}
	second.Release() // what it got before it got no more
	if _, err := reader(FreeFrame / 2).Next(); err != nil {
		t.Errorf("a short message: %v", err)
	}
	first.Release()
	if taken := memory.Taken(); taken != 0 {
		t.Errorf("%d bytes were not given back", taken)
	}
	if frame, err := first.Next(); err != nil || string(frame) != "y" {
		t.Errorf("the next message: %s, %v", frame, err)
	}
}
