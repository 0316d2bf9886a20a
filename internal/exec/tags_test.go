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
		r.refuses("TagError", "Tags cannot be empty", "OP_TAGS_DEL", with(target, ""))
		r.refuses("OpPrereqError", "Tag(s) 'a', 'c' not found", "OP_TAGS_DEL", with(target, "c", "b", "a"))
		r.refuses("OpPrereqError", "Tag(s) 'a', 'c' not found", "OP_TAGS_DEL", with(target, "c", "b", "a", "c", "b"))
		r.refuses("TagError", "Tag not found (name each once)", "OP_TAGS_DEL", with(target, "b", "b"))
		r.must(`["b"]`, "OP_TAGS_GET", target)
		r.refuses("TagError", "Tags cannot be empty", "OP_TAGS_SET", with(target, "ok", ""))
	}
	r.refuses("TagError", "Tag drover:placed:beside:web is invalid: nothing is placed by it (drover:placed:apart:GROUP, drover:placed:at-most:N:GROUP, drover:placed:together:GROUP, drover:placed:rather-apart:GROUP and drover:placed:rather-together:GROUP are known)",
		"OP_TAGS_SET", with(targets[1], "ok", "drover:placed:beside:web"))
	if got := r.instance("one").Serial; got != 3 {
		t.Errorf("serial number is %d, want 3 after two changes", got)
	}
	r.must("null", "OP_TAGS_SET", with(targets[1], "größe", "размер"))
	r.must(`["b","größe","размер"]`, "OP_TAGS_GET", targets[1])
	r.must("null", "OP_TAGS_SET", with(targets[1], "drover:placed:apart:web"))
	r.must("null", "OP_TAGS_SET", with(targets[2], "drover:placed:beside:web")) // nobody reads it there
	r.refuses("TagError", "Tag drover:placed: is invalid: nothing is placed by it (drover:placed:apart:GROUP, drover:placed:at-most:N:GROUP, drover:placed:together:GROUP, drover:placed:rather-apart:GROUP and drover:placed:rather-together:GROUP are known)",
		"OP_INSTANCE_CREATE", placed("two", 100, params{"tags": []any{"drover:placed:"}}))
}

// TestTagsOfTheInstanceThatIsMeant: its UUID counts, whoever has the name.
func TestTagsOfTheInstanceThatIsMeant(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.create("two", false)
	uuid := r.instance("one").UUID
	r.must("null", "OP_TAGS_SET", params{"kind": "instance", "name": "two", "instance_uuid": uuid, "tags": []any{"a"}})
	r.must(`["a"]`, "OP_TAGS_GET", params{"kind": "instance", "name": "one"})
	r.must("[]", "OP_TAGS_GET", params{"kind": "instance", "name": "two"})
	r.must("null", "OP_TAGS_DEL", params{"kind": "instance", "name": "one", "instance_uuid": uuid, "tags": []any{"a"}})
	for _, id := range []string{"OP_TAGS_SET", "OP_TAGS_DEL"} {
		r.refuses("OpPrereqError", "Instance 'no-such-uuid' not known", id, params{"kind": "instance", "name": "one", "instance_uuid": "no-such-uuid", "tags": []any{"a"}})
		r.refuses("OpPrereqError", "only an instance is meant by instance_uuid, not a node", id, params{"kind": "node", "name": "node1", "instance_uuid": uuid, "tags": []any{"a"}})
	}
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
