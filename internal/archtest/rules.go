package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Package is what the rules look at, named as in the output of go list -json.
type Package struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	GoFiles    []string
	Imports    []string
	// Module is the module that the package belongs to.
	Module struct{ Path string }
}

// inModule is the part of an import path below the module's; ok is false for
// packages of others.
func inModule(module, importPath string) (rel string, ok bool) {
	return strings.CutPrefix(importPath, module+"/")
}

// violations lists how a package breaks the rules, in its name, place and imports.
func violations(p *Package) []string {
	rel, ok := inModule(p.Module.Path, p.ImportPath)
	if !ok {
		return []string{p.ImportPath + ": code lives in packages below the module's root"}
	}
	layer, ok := layerOf(rel)
	if !ok {
		return []string{rel + ": has no layer; decide where it belongs and add it to the table in internal/archtest/layers.go"}
	}
	out := checkName(p, rel)
	for _, imported := range p.Imports {
		if msg := checkImport(p.Module.Path, rel, layer, imported); msg != "" {
			out = append(out, fmt.Sprintf("%s (%v): imports %s: %s", rel, layer, imported, msg))
		}
	}
	return out
}

func checkName(p *Package, rel string) []string {
	var out []string
	if p.Doc == "" {
		out = append(out, rel+": has no package comment; say what it is for and which invariants it keeps")
	}
	if vagueNames[p.Name] {
		out = append(out, rel+": the name "+p.Name+" says nothing; name the package after the thing it is about")
	}
	if p.Name != "main" && p.Name != path.Base(rel) {
		out = append(out, rel+": the package is called "+p.Name+", unlike its directory")
	}
	return out
}

// checkImport says what is wrong with an import, or nothing.
func checkImport(module, rel string, layer Layer, imported string) string {
	target, ours := inModule(module, imported)
	if !ours {
		if layer > Core || allowed[rel][imported] != "" {
			return ""
		}
		return impureImports[imported]
	}
	if isYAQL(rel) && !isYAQL(target) {
		return "yaql must not need the rest of the project"
	}
	theirs, ok := layerOf(target)
	switch {
	case !ok:
		return "it has no layer"
	case theirs == ForTests && layer != ForTests:
		return "it is for tests only"
	case layer == ForTests:
		return ""
	case theirs > layer:
		return fmt.Sprintf("it stands higher (%v)", theirs)
	case theirs == Adapter && layer == Adapter:
		return "adapters do not know one another"
	case isCommandLine(rel) && (theirs == Engine || theirs == Adapter) && !slices.Contains(clientProtocols, target):
		return "the command line is a client, and knows a controller by its protocols (" + strings.Join(clientProtocols, ", ") + ") alone"
	case slices.Contains(commandFrame, rel) && isCommandLine(target) && !slices.Contains(commandFrame, target):
		return "what all commands share knows no noun"
	}
	return ""
}

func isCommandLine(rel string) bool {
	return rel == "internal/cli" || strings.HasPrefix(rel, "internal/cli/")
}

func isYAQL(rel string) bool { return rel == "yaql" || strings.HasPrefix(rel, "yaql/") }

// impurities lists what a source file of a package in a pure layer must not
// hold: goroutines, waiting, and the clock.
func impurities(rel, name string, src any) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := importNames(file)
	var out []string
	report := func(n ast.Node, what string) {
		out = append(out, fmt.Sprintf("%s: %s in a pure layer", fset.Position(n.Pos()), what))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "go statement")
		case *ast.SelectStmt:
			if waits(n) {
				report(n, "waiting select statement")
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok || !slices.Contains(impureCalls[names[id.Name]], n.Sel.Name) {
				break
			}
			if allowed[rel][path.Base(names[id.Name])+"."+n.Sel.Name] == "" {
				report(n, id.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return out, nil
}

// waits tells whether a select statement has no default.
func waits(s *ast.SelectStmt) bool {
	return !slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool {
		clause, ok := c.(*ast.CommClause)
		return ok && clause.Comm == nil
	})
}

// importNames maps the names that a file uses for its imports to their paths.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		importPath := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = importPath
	}
	return names
}
