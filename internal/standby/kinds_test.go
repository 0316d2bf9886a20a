package standby_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// shown are the kinds of stored objects that are in the picture of a standby, with an id
// that it reads, and passed are the others, each with the reason.
var (
	shown = map[store.Kind]string{
		"job": "7", "filter": "x", "queue": "flags",
		"cluster": "x", "group": "x", "node": "x", "instance": "x", "network": "x", "image": "x", "disk": "x",
		"environment": "x", "task-graph": "x", "deployment": "7",
	}
	passed = map[store.Kind]string{
		"sealing-key":            "a note for the store over the store",
		"sealing":                "the same",
		"job-part":               "read with the head of its job",
		"work":                   "read by who goes on with the opcode; while it runs, jobs show its steps",
		"step":                   "the same",
		"archived-job":           "pictures have no archived jobs: they are read from the store",
		"submission":             "what the leader looks up for those who submit",
		"event":                  "read from the store",
		"controller":             "read from the store by whoever looks for controllers",
		"controller-leader":      "the same",
		"controller-drained":     "read from the store by the controller that it is about, and by the leader",
		"controller-heard":       "the leader's own notes",
		"agent-authority":        "signs for agents, which the leader takes in",
		"user":                   "the Compute API is the leader's",
		"project":                "the same",
		"token":                  "the same",
		"application-credential": "the same",
		"server":                 "the same; queries of servers go to the leader",
		"server-number":          "the same",
		"server-past":            "the same",
		"server-lock":            "the same",
		"server-group":           "the same",
		"keypair":                "the same",
		"quota":                  "the same",
		"upload":                 "the same",
		"flavor":                 "the same",
		"store":                  "what the store says of itself; its format is looked at (TestAFormatThatCannotBeReadIsNoPicture)",
		"event-cursor":           "how far the leader has told of events",
		"state-part":             "states are computed with by the leader",
		"task-success":           "the same",
		"deployment-plan":        "read from the store",
		"deployments-cleared":    "the leader's own notes",
		"deployment-task":        "read while its deployment is under way, and else from the store",
	}
)

// kindsIn finds the constants of type store.Kind and cluster.Kind in the sources.
func kindsIn(t *testing.T, root string) map[store.Kind]string {
	t.Helper()
	found := map[store.Kind]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || !isKind(v.Type, file.Name.Name) {
				return true
			}
			for _, value := range v.Values {
				if text, ok := value.(*ast.BasicLit); ok {
					kind, _ := strconv.Unquote(text.Value) // it compiles
					found[store.Kind(kind)] = path
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isKind tells whether a type is that of kinds of stored objects, in a package.
func isKind(e ast.Expr, pkg string) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && e.Sel.Name == "Kind" && (x.Name == "store" || x.Name == "cluster")
	case *ast.Ident:
		return e.Name == "Kind" && (pkg == "store" || pkg == "cluster")
	}
	return false
}

// TestEveryStoredKindIsKnown: who adds a kind of stored objects decides here whether a
// controller that stands by shows them.
func TestEveryStoredKindIsKnown(t *testing.T) {
	found := kindsIn(t, "..")
	for kind, path := range found {
		if shown[kind] == "" && passed[kind] == "" {
			t.Errorf("%s: the kind %q is stored; package standby is to show it, or this test to say why not", path, kind)
		}
	}
	for _, table := range []map[store.Kind]string{shown, passed} {
		for kind := range table {
			if found[kind] == "" {
				t.Errorf("no source has the kind %q", kind)
			}
		}
	}
}

// follower is a follower of an empty store.
func follower(t *testing.T) (*sqlite.Store, *standby.Follower) {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f, err := standby.Open(t.Context(), s, s.Follow)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

func put(t *testing.T, s store.Store, key store.Key) store.Revision {
	t.Helper()
	revision, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: key, Value: []byte(`[7]`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestWhatCannotBeReadIsNoPicture: a standby with an object that it cannot read has no
// picture, and one that comes upon it in the feed stops before it. What it does not show
// it passes over.
func TestWhatCannotBeReadIsNoPicture(t *testing.T) {
	for kind, id := range shown {
		t.Run(string(kind), func(t *testing.T) {
			s, f := follower(t)
			put(t, s, store.Key{Kind: kind, ID: id})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := f.Run(ctx); err == nil || ctx.Err() != nil || f.Picture().Load().Revision != 0 {
				t.Errorf("it went on to revision %d: %v", f.Picture().Load().Revision, err)
			}
			if _, err := standby.Open(t.Context(), s, s.Follow); err == nil {
				t.Error("it has a picture")
			}
		})
	}
	t.Run("all others", func(t *testing.T) {
		s, f := follower(t)
		var last store.Revision
		for kind := range passed {
			last = put(t, s, store.Key{Kind: kind, ID: "7"})
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		if _, err := f.Picture().Wait(ctx, int64(last)); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil && !fault.Is(err, fault.Canceled) && ctx.Err() == nil {
			t.Error(err)
		}
		if _, err := standby.Open(t.Context(), s, s.Follow); err != nil {
			t.Errorf("it has no picture: %v", err)
		}
	})
}

// later is a store whose format this program does not know.
type later struct{ store.Store }

func (l later) Get(ctx context.Context, key store.Key) (store.Object, error) {
	if key == store.FormatKey {
		return store.Object{Key: key, Revision: 1, Value: format.Encode(format.Newest + 1)}, nil
	}
	return l.Store.Get(ctx, key)
}

// TestAFormatThatCannotBeReadIsNoPicture: neither one that the store has, nor one that it is raised to.
func TestAFormatThatCannotBeReadIsNoPicture(t *testing.T) {
	s, _ := follower(t)
	if _, err := standby.Open(t.Context(), later{s}, s.Follow); !fault.Is(err, fault.Unsupported) {
		t.Errorf("of a store of later it has a picture: %v", err)
	}
	for n, want := range map[int]bool{format.Newest: true, format.Newest + 1: false} {
		raised := func(context.Context, store.Revision) iter.Seq2[store.Progress, error] {
			return func(yield func(store.Progress, error) bool) {
				yield(store.Progress{Revision: 5, Changes: []store.Change{{Revision: 5, Key: store.FormatKey, Value: format.Encode(n)}}}, nil)
			}
		}
		f, err := standby.Open(t.Context(), s, raised)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(t.Context()); (err == nil) != want || (f.Picture().Load().Revision == 5) != want {
			t.Errorf("raised to %d it follows to revision %d: %v", n, f.Picture().Load().Revision, err)
		}
	}
}
