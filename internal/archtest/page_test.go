package archtest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageLayers are the layers as the code map of ARCHITECTURE.md calls them.
var pageLayers = map[string]Layer{
	"0 leaves": Leaf, "1 pure cores": Core, "2 engines, ports": Engine, "3 adapters": Adapter, "4 composition": Composition,
}

// mapped reads the code map: the layer of each package on it.
func mapped(page string) (map[string]Layer, error) {
	on := map[string]Layer{}
	var layer Layer
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|]*)\\| `([^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		if title := strings.TrimSpace(row[1]); title != "" {
			var known bool
			if layer, known = pageLayers[title]; !known {
				return nil, fmt.Errorf("there is no layer %q", title)
			}
		}
		if _, twice := on[row[2]]; twice {
			return nil, fmt.Errorf("%s is on it twice", row[2])
		}
		on[row[2]] = layer
	}
	return on, nil
}

// contradictions lists where the page and the table of layers tell different
// stories of the packages of a tree.
func contradictions(page map[string]Layer, packages []string) []string {
	var found []string
	for name, layer := range page {
		if !slices.Contains(packages, name) {
			found = append(found, name+" is on the page and does not exist")
		} else if is, _ := layerOf(name); is != layer {
			found = append(found, fmt.Sprintf("%s: the page says %v, the table %v", name, layer, is))
		}
	}
	for _, name := range packages {
		layer, ok := layerOf(name)
		if _, there := page[name]; !there && ok && layer != ForTests && !strings.HasPrefix(name, "yaql/") {
			found = append(found, name+" is not on the page")
		}
	}
	slices.Sort(found)
	return found
}

// packagesOf are the paths of the tree's packages within the module.
func packagesOf(t *testing.T) []string {
	t.Helper()
	all := tree(t)
	names := make([]string, len(all))
	for i, p := range all {
		names[i], _ = inModule(p.Module.Path, p.ImportPath)
	}
	return names
}

func TestThePageTellsWhatTheTableTells(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := mapped(string(text))
	if err != nil {
		t.Fatalf("the code map of ARCHITECTURE.md: %v", err)
	}
	for _, c := range contradictions(page, packagesOf(t)) {
		t.Error(c)
	}
}

// A package that was planned, moved or removed leaves no line behind.
func TestTheTableListsWhatExists(t *testing.T) {
	names := packagesOf(t)
	for _, l := range layers {
		if l.layer == ForTests {
			continue // some have test files alone, which the tree leaves out
		}
		if !slices.ContainsFunc(names, func(name string) bool { ok, _ := path.Match(l.pattern, name); return ok }) {
			t.Errorf("no package is called %s", l.pattern)
		}
	}
}

func TestContradictionsAreSeen(t *testing.T) {
	page, err := mapped("| layer | package | what |\n|---|---|---|\n| 1 pure cores | `internal/job` | x |\n| | `internal/queue` | x |\n| | `internal/nosuch` | x |\n")
	if err != nil || !maps.Equal(page, map[string]Layer{"internal/job": Core, "internal/queue": Core, "internal/nosuch": Core}) {
		t.Fatalf("read %v, %v", page, err)
	}
	want := []string{
		"internal/live is not on the page",
		"internal/nosuch is on the page and does not exist",
		"internal/queue: the page says pure core, the table engine or port",
	}
	if got := contradictions(page, []string{"internal/job", "internal/queue", "internal/live", "internal/testkit", "yaql/yaqljson"}); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"| 7 clouds | `internal/job` | x |\n", "| 0 leaves | `yaql` | x |\n| | `yaql` | x |\n"} {
		if _, err := mapped(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
