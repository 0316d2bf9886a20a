// Package library reads an operator's own functions for the expressions of tasks, which are written in YAQL themselves:
//
//	version: 1.2.0
//	functions:
//	  withRole:
//	    params: [nodes, role]
//	    value: $nodes.where($role in $.roles)
//
// Invariants:
//   - A function computes the same from the same arguments: it sees these alone, neither old nor new state, and nothing of
//     the clock or of chance. The limits of the language bound it.
//   - It has a name of its own, hides none of the language, and calls no other of the library.
//   - What is wrong is said with file, line and column, before anything is evaluated.
package library

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// File is a file of functions.
type File struct {
	Path string
	Text []byte
}

// Library are the functions of some files.
type Library struct {
	Functions []*yaql.Function
	// Versions are the versions of the files, as "PATH VERSION".
	Versions []string

	language *expression.Language
	places   map[string]document.Position
}

var (
	versionForm = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	nameForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// ReadDir reads the files of a directory whose names end in .yaml or .yml, in the order of the names. A nil directory has none.
func ReadDir(dir fs.FS) (*Library, error) {
	if dir == nil {
		return Read()
	}
	names, err := fs.Glob(dir, "*.y*ml")
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".yml") })
	if len(names) == 0 {
		return nil, fault.New(fault.NotFound, "the directory of functions holds no file whose name ends in .yaml or .yml")
	}
	var files []File
	for _, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fault.New(fault.NotFound, "%w", err)
		}
		files = append(files, File{name, text})
	}
	return Read(files...)
}

// Read reads files of functions.
func Read(files ...File) (*Library, error) {
	language, err := expression.NewLanguage()
	if err != nil {
		return nil, err
	}
	l := &Library{language: language, places: map[string]document.Position{}}
	for _, f := range files {
		root, _, err := document.Parse(f.Path, f.Text)
		if err != nil {
			return nil, err
		}
		if err := l.file(root); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func wrong(n *document.Node, format string, args ...any) error {
	return fault.New(fault.Invalid, "%s: "+format, append([]any{n.Position}, args...)...)
}

func (l *Library) file(root *document.Node) error {
	if err := onlyKeys(root, "version", "functions"); err != nil {
		return err
	}
	version, functions := root.Get("version"), root.Get("functions")
	if version == nil || functions == nil || functions.Kind != document.Map {
		return wrong(root, "a file of functions has a version, and functions by their names")
	}
	text, _ := version.Scalar.(string)
	if !versionForm.MatchString(text) {
		return wrong(version, "the version of a file of functions looks like 1.2.0")
	}
	l.Versions = append(l.Versions, root.File+" "+text)
	for i, k := range functions.Keys {
		f, err := l.function(k, functions.Items[i])
		if err != nil {
			return err
		}
		l.Functions = append(l.Functions, f)
	}
	return nil
}

func onlyKeys(n *document.Node, known ...string) error {
	if n.Kind != document.Map {
		return wrong(n, "this must be a map with %s", strings.Join(known, " and "))
	}
	for _, k := range n.Keys {
		if !slices.Contains(known, k.Name) {
			return fault.New(fault.Invalid, "%s: the key %q means nothing here; there are %s", k.Position, k.Name, strings.Join(known, " and "))
		}
	}
	return nil
}

// function compiles one function.
func (l *Library) function(key document.Key, n *document.Node) (*yaql.Function, error) {
	name := key.Name
	first, twice := l.places[name]
	switch {
	case !nameForm.MatchString(name):
		return nil, fault.New(fault.Invalid, "%s: the name %q of a function must be letters and digits", key.Position, name)
	case twice:
		return nil, fault.New(fault.Invalid, "%s: the function %s is there already, at %s", key.Position, name, first)
	case l.language.Has(name):
		return nil, fault.New(fault.Invalid, "%s: %s is a function of the language", key.Position, name)
	}
	l.places[name] = key.Position
	if err := onlyKeys(n, "params", "value"); err != nil {
		return nil, err
	}
	params, err := paramsOf(n.Get("params"))
	if err != nil {
		return nil, err
	}
	value := n.Get("value")
	text, ok := "", false
	if value != nil {
		text, ok = value.Scalar.(string)
	}
	if !ok {
		return nil, wrong(n, "the function %s needs a value, the text of an expression", name)
	}
	call, err := l.language.Pure(text, params)
	if err != nil {
		return nil, graph.Located(value, err)
	}
	signature := make([]string, len(params))
	for i, p := range params {
		signature[i] = p + ": any?"
	}
	return yaql.NewFunction(name, strings.Join(signature, ", "), call)
}

func paramsOf(n *document.Node) ([]string, error) {
	if n == nil {
		return nil, nil
	}
	var out []string
	for _, p := range n.Items {
		name, _ := p.Scalar.(string)
		if !nameForm.MatchString(name) || slices.Contains(out, name) {
			return nil, wrong(p, "a parameter is a name of letters and digits that is there once")
		}
		out = append(out, name)
	}
	if n.Kind != document.List {
		return nil, wrong(n, "params must be a list of names")
	}
	return out, nil
}
