package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// listening are the names under which packages of the standard library open listeners.
var listening = map[string][]string{
	"net":      {"Listen", "ListenTCP", "ListenUnix", "ListenConfig", "ListenPacket", "ListenUDP", "ListenUnixgram", "FileListener"},
	"tls":      {"Listen", "NewListener"},
	"http":     {"ListenAndServe", "ListenAndServeTLS"},
	"httptest": {"NewServer", "NewTLSServer"},
}

// handedOn are the packages whose listeners are for another program, which is handed them and takes one connection at a time.
var handedOn = []string{"internal/hypervisor/kvm"} // the lines between a QEMU and its agent, in a directory that is the agent's alone

// listenersIn returns where the source of a file opens listeners.
func listenersIn(name string, src any) (found []token.Position, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := s.X.(*ast.Ident); ok && slices.Contains(listening[from.Name], s.Sel.Name) {
				found = append(found, set.Position(s.Pos()))
			}
		}
		return true
	})
	return found, nil
}

// TestOnlyTheGateListens: what listens behind no gate can be filled by anybody, until
// nothing else of the process finds a file.
func TestOnlyTheGateListens(t *testing.T) {
	gates := 0
	for _, p := range tree(t) {
		rel, _ := inModule(p.Module.Path, p.ImportPath)
		if layer, _ := layerOf(rel); layer == ForTests {
			continue
		}
		for _, name := range p.GoFiles {
			found, err := listenersIn(filepath.Join(p.Dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(handedOn, rel) && len(found) == 1 {
				continue
			}
			if rel == "internal/gate" {
				gates += len(found)
				continue
			}
			for _, at := range found {
				t.Errorf("%v opens a listener; internal/gate does that, which bounds what comes in", at)
			}
		}
	}
	if gates == 0 {
		t.Error("the gate opens none: is this test looking?")
	}
	found, err := listenersIn("x.go", `package x; func f() { var l net.ListenConfig; net.Listen("tcp", ":0"); http.ListenAndServe("", nil) }`)
	if err != nil || len(found) != 3 {
		t.Errorf("found %v, %v", found, err)
	}
}
