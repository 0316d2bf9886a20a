package exec

import (
	"maps"
	"testing"
)

func TestTags(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.network("net", "192.0.2.0/29", "")
	targets := []params{
		{"kind": "cluster"}, {"kind": "instance", "name": "one"}, {"kind": "node", "name": "node1"},
		{"kind": "nodegroup", "name": "default"}, {"kind": "network", "name": "net"},
	}
	with := func(target params, tags ...any) params {
		p := params{"tags": tags}
		maps.Copy(p, target)
		return p
	}
	for _, target := range targets {
		r.must("[]", "OP_TAGS_GET", target)
		r.must("null", "OP_TAGS_SET", with(target, "b", "a", "b"))
		r.must(`["a","b"]`, "OP_TAGS_GET", target)
		before := r.dump()
		r.must("null", "OP_TAGS_SET", with(target, "a"))
		if r.dump() != before {
			t.Errorf("%v: setting a tag that is there changed something", target)
		}
		r.must("null", "OP_TAGS_DEL", with(target, "a"))
		r.must(`["b"]`, "OP_TAGS_GET", target)
		r.refuses("OpPrereqError", "Tag(s) 'a', 'c' not found", "OP_TAGS_DEL", with(target, "c", "b", "a"))
		r.refuses("TagError", "Tags cannot be empty", "OP_TAGS_SET", with(target, "ok", ""))
	}
	if got := r.instance("one").Serial; got != 3 {
		t.Errorf("serial number is %d, want 3 after two changes", got)
	}
	r.must("null", "OP_TAGS_SET", with(targets[1], "größe", "размер"))
	r.must(`["b","größe","размер"]`, "OP_TAGS_GET", targets[1])
}

func TestTagsOfUnknownThings(t *testing.T) {
	r := newRig(t)
	for kind, text := range map[string]string{"instance": "Instance 'nosuch' not known", "node": "Node 'nosuch' not known",
		"nodegroup": "Node group 'nosuch' not found", "network": "Network 'nosuch' not found"} {
		r.refuses("OpPrereqError", text, "OP_TAGS_SET", params{"kind": kind, "name": "nosuch", "tags": []any{"a"}})
	}
}

func TestTagsDryRun(t *testing.T) {
	r := newRig(t)
	before := r.dump()
	r.must("null", "OP_TAGS_SET", params{"kind": "cluster", "tags": []any{"a"}, "dry_run": true})
	r.logged(" - INFO: dry-run mode requested, not actually executing the operation")
	if r.dump() != before {
		t.Fatal("a dry run left traces")
	}
}

func TestTagsSearch(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	for _, p := range []params{{"kind": "cluster"}, {"kind": "instance", "name": "one"}, {"kind": "node", "name": "node1"}} {
		p["tags"] = []any{"env:prod", "x"}
		r.must("null", "OP_TAGS_SET", p)
	}
	r.must(`[["/cluster","env:prod"],["/instances/one","env:prod"],["/nodes/node1","env:prod"]]`, "OP_TAGS_SEARCH", params{"pattern": "^env:"})
	r.must(`[]`, "OP_TAGS_SEARCH", params{"pattern": "nothing"})
	if _, err := r.run("OP_TAGS_SEARCH", params{"pattern": "("}); err == nil {
		t.Fatal("a broken pattern was taken")
	}
}
