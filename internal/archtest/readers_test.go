package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Why a text may be read by encoding/json, which takes the last of two equal keys, and a key in any capitals.
const (
	ours    = "we wrote it: what is stored, on disk or in the database, or was made of a value here"
	told    = "a controller of ours tells it to a client of ours"
	foreign = "another program's answer, which is taken as it comes"
	checked = "intake has read the text, or the opcode catalogue, of which this is a part"
	scalar  = "a value without keys: a text, a number, a list of these"
)

// decoders tells of each package, or file, that reads JSON by itself, why it may. Whatever else comes in is read by intake.
var decoders = map[string]string{
	"internal/intake": "the reader itself", "internal/opcode": "the catalogue reads opcodes strictly, with jsontext",

	"internal/agent": ours, "internal/agent/effect": ours, "internal/agentd": ours, "internal/agentwire/journal.go": ours, "internal/audit": ours,
	"internal/deploy/course": ours, "internal/events": ours, "internal/exec": ours, "internal/hypervisor/fake": ours, "internal/hypervisor/kvm": ours, "internal/flavor": ours, "internal/identity": ours, "internal/keypair": ours, "internal/upload": ours, "internal/quota": ours,
	"internal/job": ours, "internal/lock": ours, "internal/placement": ours, "internal/query": ours, "internal/queue": ours, "internal/rollout": ours, "internal/sealed": ours,
	"internal/server": ours, "internal/standby": ours, "internal/store/format": ours, "internal/store/image": ours, "internal/store/life": ours, "internal/tagsync": ours,
	"internal/tinyguest": ours, "internal/work": ours, "internal/app/heard.go": ours, "internal/app/restore.go": ours, "internal/app/group.go": ours, "internal/app/drained.go": ours,
	"internal/cluster":             ours,
	"internal/api/rapi/cluster.go": ours, "internal/api/rapi/lists.go": ours, "internal/agent/imagecache": foreign,

	"internal/cli": told, "internal/bench": told, "internal/openstack": told, "internal/luxiwire/client.go": told, "internal/luxiwire/errors.go": told,

	"internal/backend/ganeti": foreign, "internal/identity/keystone": foreign, "internal/qmp": foreign, "internal/storage/ext": foreign, "internal/storage/lvm": foreign,

	"internal/jobfilter": checked, "internal/reason": checked,

	"internal/api/compute/create.go": scalar, "internal/api/compute/tags.go": scalar, "internal/api/compute/uploads.go": scalar, "internal/api/identity/routes.go": scalar, "internal/api/luxi/arguments.go": scalar,
	"internal/api/luxi/jobs.go": scalar, "internal/luxiwire/message.go": scalar, "internal/luxiwire/split.go": scalar, "internal/qlang": scalar,
}

// decodersIn returns where the source of a file reads JSON with encoding/json.
func decodersIn(name string, src any) (found []token.Position, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	as := ""
	for local, path := range importNames(file) {
		if path == "encoding/json" {
			as = local
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := s.X.(*ast.Ident); ok && as != "" && from.Name == as && slices.Contains([]string{"Unmarshal", "NewDecoder"}, s.Sel.Name) {
				found = append(found, set.Position(s.Pos()))
			}
		}
		return true
	})
	return found, nil
}

// TestOneReaderOfInput finds what comes in and is read by encoding/json: two equal keys, or one in other capitals, mean what nobody can tell there.
func TestOneReaderOfInput(t *testing.T) {
	used := map[string]bool{}
	for _, p := range tree(t) {
		rel, _ := inModule(p.Module.Path, p.ImportPath)
		if layer, _ := layerOf(rel); layer == ForTests || !strings.HasPrefix(rel, "internal/") || strings.HasPrefix(rel, "internal/sim/") {
			continue
		}
		for _, name := range p.GoFiles {
			found, err := decodersIn(filepath.Join(p.Dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				continue
			}
			key := allowedAs(rel, name)
			used[key] = true
			if key == "" {
				t.Errorf("%v reads JSON with encoding/json; what comes from outside is read by intake.Read, or the table decoders says why not", found[0])
			}
		}
	}
	for key := range decoders {
		if !used[key] && key != "internal/opcode" {
			t.Errorf("%s reads no JSON with encoding/json any more", key)
		}
	}
	found, err := decodersIn("x.go", `package x; import js "encoding/json"; func f() { js.Unmarshal(nil, nil); js.NewDecoder(nil).Decode(nil); js.Marshal(nil) }`)
	if err != nil || len(found) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
}

// allowedAs is the row of the table that a file of a package falls under: its own, its package's, or that of the whole command line.
func allowedAs(rel, name string) string {
	for _, key := range []string{rel + "/" + name, rel} {
		if decoders[key] != "" {
			return key
		}
	}
	if isCommandLine(rel) {
		return "internal/cli"
	}
	return ""
}
