package store_test

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

func TestTxCheckNamesTheFault(t *testing.T) {
	ok := store.Key{Kind: "job", ID: "1"}
	put := func(key store.Key) store.Put { return store.Put{Key: key, Value: []byte("1")} }
	for _, tc := range []struct {
		name  string
		tx    store.Tx
		code  fault.Code
		field string
	}{
		{"empty", store.Tx{}, "", ""},
		{"good", store.Tx{Put: []store.Put{put(ok)}, Delete: []store.Key{{Kind: "job", ID: "2"}}, Expect: []store.Expect{{Key: ok}}}, "", ""},
		{"no kind", store.Tx{Put: []store.Put{put(ok), put(store.Key{ID: "1"})}}, fault.Invalid, "put[1]"},
		{"no id", store.Tx{Delete: []store.Key{{Kind: "job"}}}, fault.Invalid, "delete[0]"},
		{"control", store.Tx{Expect: []store.Expect{{Key: store.Key{Kind: "job", ID: "a\tb"}}}}, fault.Invalid, "expect[0]"},
		{"not utf-8", store.Tx{Delete: []store.Key{{Kind: "job", ID: "\xff"}}}, fault.Invalid, "delete[0]"},
		{"long id", store.Tx{Delete: []store.Key{{Kind: "job", ID: strings.Repeat("x", store.MaxID+1)}}}, fault.TooLarge, "delete[0]"},
		{"no value", store.Tx{Put: []store.Put{{Key: ok}}}, fault.Invalid, "put[0]"},
		{"big value", store.Tx{Put: []store.Put{{Key: ok, Value: make([]byte, store.MaxValue+1)}}}, fault.TooLarge, "put[0]"},
		{"a format", store.Tx{Put: []store.Put{{Key: store.FormatKey, Value: format.Encode(format.Newest)}}}, "", ""},
		{"a format of later", store.Tx{Put: []store.Put{{Key: store.FormatKey, Value: format.Encode(format.Newest + 1)}}}, fault.Unsupported, "put[0]"},
		{"no format", store.Tx{Put: []store.Put{put(ok), put(store.FormatKey)}}, fault.Unsupported, "put[1]"},
		{"the format is deleted", store.Tx{Delete: []store.Key{ok, store.FormatKey}}, fault.Invalid, "delete[1]"},
		{"twice", store.Tx{Put: []store.Put{put(ok)}, Delete: []store.Key{ok}}, fault.Invalid, ""},
		{"twice in many", store.Tx{Put: append(manyPuts(100), put(store.Key{Kind: "job", ID: "57"}))}, fault.Invalid, ""},
	} {
		err := tc.tx.Check()
		if fault.CodeOf(err) != tc.code {
			t.Errorf("%s: got %v, want code %q", tc.name, err, tc.code)
		}
		if f, isFault := errors.AsType[*fault.Error](err); isFault && f.Field != tc.field {
			t.Errorf("%s: field %q, want %q", tc.name, f.Field, tc.field)
		}
	}
}

func manyPuts(n int) []store.Put {
	puts := make([]store.Put, n)
	for i := range puts {
		puts[i] = store.Put{Key: store.Key{Kind: "job", ID: strconv.Itoa(i)}, Value: []byte("1")}
	}
	return puts
}

func TestOptionsCheck(t *testing.T) {
	for _, tc := range []struct {
		opts store.Options
		good bool
	}{
		{store.Options{}, true},
		{store.Options{After: "1", Limit: 3, Desc: true}, true},
		{store.Options{ByAt: true, Since: 1, Until: 2}, true},
		{store.Options{Limit: -1}, false},
		{store.Options{ByAt: true, After: "1"}, false},
		{store.Options{Since: 1}, false},
	} {
		if err := tc.opts.Check(); (err == nil) != tc.good || (err != nil && !fault.Is(err, fault.Invalid)) {
			t.Errorf("%+v: %v", tc.opts, err)
		}
	}
}

func TestCompareIDs(t *testing.T) {
	want := []string{"0", "7", "10", "99", "100", "18446744073709551", "007", "1.5", "9a", "Z", "a", "a1", "é"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, store.CompareIDs)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompareIDsIsNumericOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Min(0).Draw(t, "a"), rapid.Int64Min(0).Draw(t, "b")
		if got := store.CompareIDs(strconv.FormatInt(a, 10), strconv.FormatInt(b, 10)); got != cmp.Compare(a, b) {
			t.Fatalf("CompareIDs(%d, %d) = %d", a, b, got)
		}
	})
}
