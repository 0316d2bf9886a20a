// Package fuel makes environments of any size after the one that was recorded of a real deployment.
package fuel

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
)

// The nodes of the recorded environment that others are made after, by their roles.
const (
	PrimaryController = "126"
	Compute           = "127"
	CephOSD           = "128"
	Controller        = "129"
	PrimaryMongo      = "131"
	Mongo             = "132"
)

// UID returns the UID of the node with that index.
func UID(i int) string { return strconv.Itoa(1000 + i) }

// Cloud is what the nodes of a small cloud are made after: five compute nodes, three for storage, and so many controllers, of
// which the last one is the last node, so that others keep their names when it comes.
func Cloud(controllers int) []string {
	like := []string{PrimaryController, Compute, Compute, Compute, Compute, Compute, CephOSD, CephOSD, CephOSD}
	for range controllers - 1 {
		like = append(like, Controller)
	}
	return like
}

// Environment returns the state of an environment with a node after each of these, with UIDs from 1000 on: common, and nodes by
// UID. Each has a name and addresses of its own, and is described in the common part as the recorded ones are.
func Environment(t testing.TB, like ...string) *yaql.Dict {
	t.Helper()
	text, err := os.ReadFile(testkit.FuelNodes(t, "fuel-env-ceph.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := document.Parse("env", text)
	if err != nil {
		t.Fatal(err)
	}
	env := document.Sorted(doc.Value()).(*yaql.Dict)
	metadata := at(env, "common", "network_metadata")
	templates := at(metadata, "nodes")
	common, nodes, described := replaced(at(env, "common")), yaql.NewDict(len(like)+1), yaql.NewDict(len(like))
	master, _ := at(env, "nodes").Get("master")
	_ = nodes.Set("master", master)
	for i, template := range like {
		uid := UID(i)
		rename := renaming(at(templates, "node-"+template), template, uid, i)
		_ = nodes.Set(uid, rewritten(at(env, "nodes", template), rename))
		_ = described.Set("node-"+uid, rewritten(at(templates, "node-"+template), rename))
	}
	changed := replaced(metadata)
	_ = changed.Set("nodes", described)
	_ = common.Set("network_metadata", changed)
	out := yaql.NewDict(2)
	_ = out.Set("common", common)
	_ = out.Set("nodes", nodes)
	return document.Sorted(out).(*yaql.Dict)
}

func at(d *yaql.Dict, path ...string) *yaql.Dict {
	for _, key := range path {
		v, _ := d.Get(key)
		d = v.(*yaql.Dict)
	}
	return d
}

func replaced(d *yaql.Dict) *yaql.Dict {
	out := yaql.NewDict(d.Len())
	d.Range(func(k, v any) bool {
		_ = out.Set(k, v)
		return true
	})
	return out
}

// renaming gives a node its own name and addresses.
func renaming(described *yaql.Dict, template, uid string, i int) *strings.Replacer {
	pairs := []string{"node-" + template, "node-" + uid}
	at(described, "network_roles").Range(func(_, v any) bool {
		if ip, ok := v.(string); ok && strings.Count(ip, ".") == 3 {
			parts := strings.Split(ip, ".")
			pairs = append(pairs, ip, fmt.Sprintf("%s.%s.%d.%d", parts[0], parts[1], 100+i/200, 1+i%200))
		}
		return true
	})
	return strings.NewReplacer(append(pairs, "\x00"+template, uid)...)
}

func rewritten(v any, r *strings.Replacer) any {
	switch x := v.(type) {
	case string:
		return strings.TrimPrefix(r.Replace(x), "\x00")
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = rewritten(x[i], r)
		}
		return out
	case *yaql.Dict:
		out := yaql.NewDict(x.Len())
		x.Range(func(k, e any) bool {
			if k == "uid" {
				e = "\x00" + e.(string)
			}
			_ = out.Set(k, rewritten(e, r))
			return true
		})
		return out
	}
	return v
}
