package environment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// TestYAMLAndJSONMeanTheSame reads one environment in both forms.
func TestYAMLAndJSONMeanTheSame(t *testing.T) {
	for _, text := range []string{
		"name: e\nstatus: new\nsettings: {x: 1}\ngraphs: [g]\nhosts: {\"2\": node2}\ncommon: {b: 1, a: 2}\nnodes:\n  \"2\": {roles: [x, y]}\n  master: {uid: master}\n",
		`{"name": "e", "status": "new", "settings": {"x": 1}, "graphs": ["g"], "hosts": {"2": "node2"}, "common": {"b": 1, "a": 2}, "nodes": {"2": {"roles": ["x", "y"]}, "master": {"uid": "master"}}}`,
	} {
		e, err := environment.Read(state.NewSpace(), "e", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name != "e" || e.Status != "new" || !slices.Equal(e.Graphs, []string{"g"}) || e.Hosts["2"] != "node2" || e.Settings == nil {
			t.Errorf("%s: %+v", text, e)
		}
		if len(e.Nodes) != 1 || e.Nodes[0].UID != "2" || !slices.Equal(e.Nodes[0].Tags, []string{"x", "y"}) || len(e.Parts) != 2 {
			t.Errorf("%s: the nodes are %+v of %d parts", text, e.Nodes, len(e.Parts))
		}
		var keys []string
		e.Common.Data().Range(func(k, _ any) bool {
			keys = append(keys, k.(string))
			return true
		})
		if !slices.Equal(keys, []string{"a", "b"}) {
			t.Errorf("%s: the common part has the keys %v", text, keys)
		}
	}
}

// TestMapsThatLookSpecialAreMaps: what the encoding of values writes for kinds that JSON lacks is a map like any other in a file that
// somebody wrote, in both forms.
func TestMapsThatLookSpecialAreMaps(t *testing.T) {
	var seen []string
	for _, text := range []string{
		`{"common": {"q": {"$set": ["b", "a", "a"]}, "r": {"$datetime": "2020-01-01"}, "s": {"$regex": 1}}, "nodes": {"1": {"$tuple": [1]}}}`,
		"common: {q: {$set: [b, a, a]}, r: {$datetime: '2020-01-01'}, s: {$regex: 1}}\nnodes: {\"1\": {$tuple: [1]}}",
	} {
		e, err := environment.Read(state.NewSpace(), "e", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*state.Part{e.Common, e.Parts["1"]} {
			stored, err := yaqljson.Encode(p.Data())
			if err != nil {
				t.Fatal(err)
			}
			back, err := yaqljson.Decode(stored) // as a state is read from the store
			if err != nil {
				t.Fatal(err)
			}
			if again, err := yaqljson.Encode(back); err != nil || string(again) != string(stored) {
				t.Errorf("%s comes back as %s, %v", stored, again, err)
			}
			shown, err := environment.Read(state.NewSpace(), "e", []byte(`{"nodes": {}, "common": `+string(stored)+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := yaqljson.Encode(shown.Common.Data()); err != nil || string(again) != string(stored) {
				t.Errorf("%s, put again as it was shown, is %s, %v", stored, again, err)
			}
			written, err := dump.JSON(back)
			if err != nil {
				t.Errorf("%s cannot be written: %v", stored, err)
			}
			seen = append(seen, written)
		}
	}
	if !slices.Equal(seen[:2], seen[2:]) || !strings.Contains(seen[0], "$set") {
		t.Errorf("JSON gives %q, and YAML %q", seen[:2], seen[2:])
	}
}

func TestBadEnvironments(t *testing.T) {
	for text, want := range map[string]string{
		"[1]":                                       "e:1:1: an environment is a map with common and nodes",
		"common: {}":                                "the environment has no nodes",
		"nodes: {}\nnode: {}":                       `e:2:1: the key "node" of an environment means nothing`,
		"nodes:\n  a: 1":                            "e:2:6: node a must be a map of its data",
		"nodes:\n  a: {roles: x}":                   "e:2:14: roles of node a must be a list",
		"nodes:\n  a: {roles: [1]}":                 "e:2:15: a role of node a is no text",
		`{"nodes": {"a": {"roles": [1]}}}`:          "e:1:28: a role of node a is no text",
		"nodes: {}\ncommon: 1":                      "e:2:9: common must be a map",
		"nodes: {}\nhosts: x":                       "hosts must be a map",
		"nodes: {}\ncommon: [1, 2]":                 "e:2:9: common must be a map",
		"nodes:":                                    "e:1:7: nodes must be a map",
		`{"nodes": null}`:                           "nodes must be a map",
		`{"nodes": [1]}`:                            "nodes must be a map",
		`{"common": {}}`:                            "the environment has no nodes",
		`{"common": 5, "nodes": {}}`:                "common must be a map",
		`{"common": [1], "nodes": {}}`:              "common must be a map",
		"nodes: {}\ngraphs: base":                   "graphs must be a list of texts",
		`{"nodes": {}, "graphs": "base"}`:           "graphs must be a list of texts",
		"nodes: {}\ngraphs: [[a]]":                  "graphs must be a list of texts",
		"nodes: {}\nname: [a]":                      "name must be a text",
		"nodes: {}\nstatus: {a: b}":                 "status must be a text",
		"nodes: {a: {}}\nhosts: {a: [b]}":           "hosts must be a text",
		"nodes: {a: {}}\nhosts: {b: h}":             "hosts names a host for node b, which the environment lacks",
		`{"nodes": {"a": {}}, "hosts": {"b": "h"}}`: "hosts names a host for node b, which the environment lacks",
		`{"nodes": {"a": {}}, "nodes": `:            "e:1: bad YAML",
		"nodes: &n {a: &a {x: *a}}":                 "stands within what it names",
		"nodes: {" + many(20_001) + "}":             "the environment has 20001 nodes; 20000 are the limit",
		"common: {x: " + bomb() + "}\nnodes: {}":    "the aliases of the document repeat more than",
	} {
		_, err := environment.Read(state.NewSpace(), "e", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

func many(n int) string {
	out := &strings.Builder{}
	for i := range n {
		out.WriteString("n" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + digits(i) + ": {}, ")
	}
	return out.String()
}

func digits(n int) string {
	if n == 0 {
		return ""
	}
	return digits(n/10) + string(rune('0'+n%10))
}

// bomb is a text of few bytes whose aliases stand for billions of values.
func bomb() string {
	out := "[&a0 [x, x, x, x, x, x, x, x, x, x]"
	for i := range 9 {
		from := "*a" + digits(i)
		if i == 0 {
			from = "*a0"
		}
		out += ", &a" + digits(i+1) + " [" + strings.Repeat(from+", ", 10) + "]"
	}
	return out + "]"
}
