package intake_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

func TestCheckValues(t *testing.T) {
	const limit = 8
	for text, passes := range map[string]bool{
		``: true, `null`: true, `[]`: true, `[[[]]]`: true,
		`[1,2,3,4,5,6,7]`:                   true,
		`[1,2,3,4,5,6,7,8]`:                 false,
		`{"a":1,"b":2,"c":3}`:               true,
		`{"a":1,"b":2,"c":3,"d":4}`:         false,
		`["[[[[[{{{{,,,,,,,,,,::::::::::"]`: true,
		`["\"[[[[\\\"",1]`:                  true,
		`"[[[[[`:                            true, // not JSON, and nothing to count
		`"\`:                                true,
		strings.Repeat(`]`, 100):            true,
		strings.Repeat(`{"":`, 4):           false,
	} {
		err := intake.CheckValues([]byte(text), limit)
		if passes && err != nil || !passes && (!fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "more than 8 values")) {
			t.Errorf("%s: %v, want it to pass: %v", text, err, passes)
		}
	}
}

// FuzzCheckValues: a JSON text that passes has no more values than it may.
func FuzzCheckValues(f *testing.F) {
	f.Add(`{"a":[1,2,{"b":"\"]"}]}`)
	f.Add(`[[],{},"",{"":0}]`)
	const limit = 10
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil || intake.CheckValues([]byte(text), limit) != nil {
			return
		}
		if n := count(v); n > limit {
			t.Errorf("%s has %d values and passes", text, n)
		}
	})
}

func count(v any) int {
	n := 1
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			n += count(item)
		}
	case map[string]any:
		for _, item := range x {
			n += 1 + count(item)
		}
	}
	return n
}

func TestBudget(t *testing.T) {
	b := intake.NewBudget(100)
	if err := b.Take(100); err != nil {
		t.Fatal(err)
	}
	if err := b.Take(1); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "100 bytes") {
		t.Errorf("an empty budget gives: %v", err)
	}
	b.Give(60)
	if err := b.Take(61); err == nil {
		t.Error("it gave a part of what is not there")
	}
	if err := b.Take(60); err != nil {
		t.Error(err)
	}
	b.Give(100)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				if b.Take(3) == nil {
					b.Give(3)
				}
			}
		})
	}
	all.Wait()
	if left := b.Taken(); left != 0 {
		t.Errorf("%d bytes are missing", left)
	}
}
