package reason_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

func TestEntryJSON(t *testing.T) {
	var got reason.Trail
	in := `[["user","für Müller 😀",1363088484000000000],["tool","",1.5e9]]`
	if err := json.Unmarshal([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	want := reason.Trail{{Source: "user", Reason: "für Müller 😀", Time: 1363088484000000000}, {Source: "tool", Time: 1500000000}}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	out, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[["user","für Müller 😀",1363088484000000000],["tool","",1500000000]]`; string(out) != want {
		t.Errorf("wrote %s, want %s", out, want)
	}
}

func TestEntryJSONRefuses(t *testing.T) {
	for _, in := range []string{`["a","b"]`, `{}`, `[1,"b",1]`, `["a",null,1]`, `["a","b","1"]`, `["a","b",1e300]`} {
		var e reason.Entry
		if err := json.Unmarshal([]byte(in), &e); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: error %v, want code invalid", in, err)
		}
	}
}

func TestAppendSharesNothing(t *testing.T) {
	base := make(reason.Trail, 1, 8)
	a := base.Append(reason.Entry{Source: "a"})
	b := base.Append(reason.Entry{Source: "b"})
	if a[1].Source != "a" || b[1].Source != "b" || len(base) != 1 {
		t.Errorf("trails share room: %v %v %v", base, a, b)
	}
}

func TestCheckOutside(t *testing.T) {
	trail := reason.Trail{{Source: "user"}, {Source: "gnt:user"}}
	err := reason.CheckOutside(trail, nil)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Invalid || f.Field != "reason[1]" {
		t.Errorf("reserved source: %v", err)
	}
	if err := reason.CheckOutside(trail, func(s string) bool { return s == "gnt:user" }); err != nil {
		t.Errorf("allowed source refused: %v", err)
	}
}

func TestLookAlikesOfReservedSourcesAreRefused(t *testing.T) {
	allowed := func(s string) bool { return s == "gnt:user" || strings.HasPrefix(s, "gnt:client") }
	for _, source := range []string{"GNT:opcode:x", "Gnt:user", " gnt:user", "\tgnt:user", "gnt\u200b:user", "gnt\u200b:opcode",
		"\ufeffgnt:luxid", "gnt :user", "g\u00adnt:user", "\uff47\uff4e\uff54:user", "gnt\uff1auser", "gnt\ufe0f:user", "gnt\u0000:user",
		"luxid", "Luxid", "luxi\u200bd", " luxid "} {
		if err := reason.CheckOutside(reason.Trail{{Source: source}}, allowed); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", source, err)
		}
	}
	for _, source := range []string{"", "gnt", "gnt-tool", "user", "my gnt:user", "gnt:user", "gnt:client:gnt-instance", "m\u00fcller", "luxid2", "my luxid"} {
		if err := reason.CheckOutside(reason.Trail{{Source: source}}, allowed); err != nil {
			t.Errorf("%q: %v", source, err)
		}
	}
}

func TestTrailsFromOutsideAreBounded(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, tc := range map[string]struct {
		trail reason.Trail
		limit string // empty if it is taken
	}{
		"as many entries as may be": {make(reason.Trail, reason.MaxEntries), ""},
		"one more":                  {make(reason.Trail, reason.MaxEntries+1), "the limit is 100"},
		"the longest texts":         {reason.Trail{{Source: text(reason.MaxSource), Reason: text(reason.MaxReason)}}, ""},
		"a longer source":           {reason.Trail{{Source: text(reason.MaxSource + 1)}}, "the limit is 256"},
		"a longer reason":           {reason.Trail{{}, {Reason: text(reason.MaxReason + 1)}}, "the limit is 16384"},
	} {
		err := reason.CheckOutside(tc.trail, nil)
		if tc.limit == "" && err != nil || tc.limit != "" && (!fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), tc.limit)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuckets(t *testing.T) {
	trail := reason.Trail{
		{Reason: "rate-limit:2:maint"}, {Reason: "rate-limit:5"}, {Reason: "rate-limit:2:maint"},
		{Reason: "rate-limit:0:x"}, {Reason: "rate-limit:x"}, {Reason: "not rate-limit:1"}, {Reason: "rate-limit:1:a:b"},
	}
	want := []reason.Bucket{{Limit: 2, Label: "maint"}, {Limit: 5}, {Limit: 1, Label: "a:b"}}
	if got := trail.Buckets(); !reflect.DeepEqual(got, want) {
		t.Errorf("Buckets = %v, want %v", got, want)
	}
	if got := trail.Misread(); !slices.Equal(got, []string{"rate-limit:0:x", "rate-limit:x"}) {
		t.Errorf("Misread = %v", got)
	}
}
