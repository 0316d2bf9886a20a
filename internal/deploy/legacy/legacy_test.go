package legacy_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

func TestRewrittenConditions(t *testing.T) {
	for text, want := range map[string]string{
		"settings:additional_components.sahara.value == true": "settings:sahara.enabled == true",
		"settings:additional_components.murano":               "settings:murano.enabled",
		"settings:common.debug.value":                         "settings:debug",
		"settings:a.value and settings:b.value == 1":          "settings:a and settings:b == 1",
		"settings:a.value.x":                                  "settings:a.value.x",
		"settings:a and cluster:b.value":                      "settings:a and cluster:b", // the reference's, too
		"cluster:mode == 'x'":                                 "cluster:mode == 'x'",
	} {
		if got := legacy.Rewrite(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestConditions(t *testing.T) {
	v, err := yaqljson.Decode([]byte(`{"cluster": {"mode": "ha", "n": 3}, "a": {"b": true}, "roles": ["x", "y"]}`))
	if err != nil {
		t.Fatal(err)
	}
	data := v.(*yaql.Dict)
	for text, want := range map[string]any{
		"settings:a.b": true,
		"settings:a.b and cluster:mode == \"ha\"": true,
		"not settings:a.b == false":               true, // not binds tighter than ==
		"cluster:n == 3 or 1":                     true,
		"cluster:n and 'last'":                    "last",
		"settings:no.where":                       nil,
		"'x' in settings:roles":                   true,
		"(false or null) != true":                 true,
		"-3":                                      int64(-3),
	} {
		c, err := legacy.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := c.Value(data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1 ==", "(1", "and", "1 2", "'x"} {
		if _, err := legacy.Parse(text); err == nil {
			t.Errorf("%q was parsed", text)
		}
	}
	for _, text := range []string{"settings:a.b.c", "cluster:mode.x == 1", "settings:roles.x"} {
		c, err := legacy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Value(data); err == nil || !strings.Contains(err.Error(), "is no map") {
			t.Errorf("%s, which leads through what is no map, is %v (%v)", text, v, err)
		}
	}
	for value, want := range map[any]bool{nil: false, false: false, int64(0): false, "": false, "x": true, 0.5: true} {
		if legacy.Truth(value) != want {
			t.Errorf("the truth of %v is not %v", value, want)
		}
	}
}
