package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// lookAtSources reads the directories of the tree, which tells go test that the
// result depends on them: it does not see what go list reads.
func lookAtSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(name) == ".go" {
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tree lists the module's packages.
func tree(t *testing.T) []*Package {
	t.Helper()
	lookAtSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports,Module", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []*Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(Package)
		err := dec.Decode(p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 { // a directory with tests alone imports what it likes
			pkgs = append(pkgs, p)
		}
	}
	const fewest = 10
	if len(pkgs) < fewest {
		t.Fatalf("go list names %d packages", len(pkgs))
	}
	return pkgs
}

func TestTreeKeepsTheRules(t *testing.T) {
	for _, p := range tree(t) {
		for _, v := range violations(p) {
			t.Error(v)
		}
	}
}

func TestPureLayersArePure(t *testing.T) {
	checked := 0
	for _, p := range tree(t) {
		rel, _ := inModule(p.Module.Path, p.ImportPath)
		if layer, ok := layerOf(rel); !ok || layer > Core {
			continue
		}
		for _, name := range p.GoFiles {
			found, err := impurities(rel, filepath.Join(p.Dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range found {
				t.Error(v)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no files were checked")
	}
}

// TestRulesCatch shows that each rule can fail.
func TestRulesCatch(t *testing.T) {
	const module = "example.org/m"
	for _, tc := range []struct {
		rel     string
		imports []string
		change  func(*Package)
		want    string
	}{
		{"internal/job", []string{module + "/internal/fault", "time"}, nil, ""},
		{"internal/queue", []string{module + "/internal/job", module + "/internal/store", "net"}, nil, ""},
		{"internal/store/sqlite", []string{module + "/internal/store", "database/sql"}, nil, ""},
		{"internal/app", []string{module + "/internal/store/sqlite"}, nil, ""},
		{"internal/store/storetest", []string{module + "/internal/store", "testing"}, nil, ""},
		{"yaql", []string{module + "/yaql/internal/syntax"}, nil, ""},

		{"internal/job", []string{module + "/internal/queue"}, nil, "stands higher"},
		{"internal/fault", []string{module + "/internal/job"}, nil, "stands higher"},
		{"internal/queue", []string{module + "/internal/store/sqlite"}, nil, "stands higher"},
		{"internal/api/rapi", []string{module + "/internal/store/sqlite"}, nil, "do not know one another"},
		{"internal/api/rapi", []string{module + "/internal/app"}, nil, "stands higher"},
		{"internal/queue", []string{module + "/internal/store/faultstore"}, nil, "tests only"},
		{"internal/queue", []string{module + "/internal/store/storetest"}, nil, "tests only"},
		{"internal/cli", []string{module + "/internal/luxiwire", module + "/internal/queue/machine"}, nil, ""},
		{"internal/cli", []string{module + "/internal/queue"}, nil, "is a client"},
		{"internal/cli/yaqlcmd", []string{module + "/internal/api/rapi"}, nil, "is a client"},
		{"internal/cli/jobs", []string{module + "/internal/cli/shell", module + "/internal/cli/lists"}, nil, ""},
		{"internal/cli/lists", []string{module + "/internal/cli/shell"}, nil, ""},
		{"internal/cli/lists", []string{module + "/internal/cli/jobs"}, nil, "knows no noun"},
		{"yaql", []string{module + "/internal/fault"}, nil, "rest of the project"},
		{"yaql/internal/syntax", []string{module + "/internal/fault"}, nil, "rest of the project"},
		{"internal/job", []string{"os"}, nil, "imports os"},
		{"internal/job", []string{"net"}, nil, "imports net"},
		{"internal/qlang", []string{"math/rand/v2"}, nil, "imports math/rand/v2"},
		{"internal/novelty", nil, nil, "has no layer"},
		{"internal/queue", []string{module + "/internal/novelty"}, nil, "has no layer"},
		{"internal/job", nil, func(p *Package) { p.Doc = "" }, "no package comment"},
		{"internal/job", nil, func(p *Package) { p.Name = "jobs" }, "unlike its directory"},
		{"internal/api/util", nil, nil, "says nothing"},
		{"", nil, func(p *Package) { p.ImportPath = module }, "below the module's root"},
	} {
		p := &Package{ImportPath: module + "/" + tc.rel, Name: filepath.Base(tc.rel), Doc: "Package x.", Imports: tc.imports}
		p.Module.Path = module
		if tc.change != nil {
			tc.change(p)
		}
		got := strings.Join(violations(p), "; ")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s importing %v: got %q, want %q", tc.rel, tc.imports, got, tc.want)
		}
	}
}

func TestImpuritiesAreSeen(t *testing.T) {
	for body, want := range map[string]string{
		`_ = time.Unix(0, 0)`:                      "",
		`_ = now.Now()`:                            "",
		`var mu sync.Mutex; mu.Lock()`:             "",
		`_ = time.Now()`:                           "time.Now",
		`f := time.Since; _ = f`:                   "time.Since",
		`_ = clock.Now()`:                          "clock.Now",
		`go func() {}()`:                           "go statement",
		`select {}`:                                "waiting select statement",
		`select { default: }`:                      "",
		`var wg sync.WaitGroup; wg.Wait()`:         "sync.WaitGroup",
		`<-time.After(1)`:                          "time.After",
		`_ = context.Background()`:                 "context.Background",
		`x := func() { defer time.Sleep(1) }; x()`: "time.Sleep",
	} {
		src := "package p\nimport (\"time\"; clock \"time\"; \"sync\"; \"context\")\nfunc f() {\n" + body + "\n}\n"
		found, err := impurities("internal/job", "p.go", src)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(found, "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
	found, err := impurities("yaql", "p.go", "package yaql\nimport \"time\"\nvar now, since = time.Now, time.Since\n")
	if err != nil || len(found) != 1 || !strings.Contains(found[0], "time.Since") {
		t.Errorf("the exception of yaql gives %q and %v", found, err)
	}
	if _, err := impurities("yaql", "p.go", "not Go"); err == nil {
		t.Error("a file that is no Go was accepted")
	}
}
