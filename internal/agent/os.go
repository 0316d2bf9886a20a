package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

const osDir = "os"

// BuiltinOS is the operating system that every node has: installing it does
// nothing. It exists so that instances can be tried without any image.
const BuiltinOS = "noop"

// apiVersions are the versions of the definition format that agents support.
var apiVersions = []int{20, 15, 10}

// Parameter is one parameter that an operating system's scripts understand.
type Parameter struct {
	Name, Doc string
}

// OS is one operating system definition on a node.
type OS struct {
	Name string
	// Path is the directory of the definition, empty for the built-in one.
	Path string
	// Problem says why the definition cannot be used; empty when it can.
	Problem string
	// Variants may be asked for as NAME+VARIANT; without any, NAME alone.
	Variants    []string
	Parameters  []Parameter
	APIVersions []int
	// Scripts are those that it has of export, import and rename, which it need not have.
	Scripts []string
}

// OSes lists the operating systems of the node, by name. A definition is a
// directory in the format of the reference: files ganeti_api_version,
// variants.list, parameters.list and an executable create.
func (a *Agent) OSes(ctx context.Context) ([]OS, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Canceled, "listing operating systems was interrupted: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(a.cfg.Dir, osDir))
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot list the operating systems of node %s: %w", a.cfg.Node, err)
	}
	out := []OS{builtinOS()}
	for _, e := range entries {
		if e.IsDir() && e.Name() != BuiltinOS {
			out = append(out, a.readOS(e.Name()))
		}
	}
	slices.SortFunc(out, func(x, y OS) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

func builtinOS() OS {
	return OS{Name: BuiltinOS, Variants: []string{"default"}, APIVersions: slices.Clone(apiVersions),
		Parameters: []Parameter{{Name: "test_param", Doc: "a parameter for tests"}}}
}

func (a *Agent) readOS(name string) OS {
	dir := filepath.Join(a.cfg.Dir, osDir, name)
	o := OS{Name: name, Path: dir}
	for _, line := range readLines(filepath.Join(dir, "ganeti_api_version")) {
		if v, err := strconv.Atoi(line); err == nil {
			o.APIVersions = append(o.APIVersions, v)
		}
	}
	o.Variants = readLines(filepath.Join(dir, "variants.list"))
	for _, line := range readLines(filepath.Join(dir, "parameters.list")) {
		param, doc, _ := strings.Cut(line, " ")
		o.Parameters = append(o.Parameters, Parameter{Name: param, Doc: strings.TrimSpace(doc)})
	}
	for _, name := range []string{"export", "import", "rename"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0 {
			o.Scripts = append(o.Scripts, name)
		}
	}
	script, err := os.Stat(filepath.Join(dir, "create"))
	switch {
	case !slices.ContainsFunc(o.APIVersions, func(v int) bool { return slices.Contains(apiVersions, v) }):
		o.Problem = "no supported API version in ganeti_api_version"
	case err != nil:
		o.Problem = "Required file 'create' not found under path " + dir
	case script.Mode()&0o100 == 0:
		o.Problem = "File 'create' under path '" + dir + "' is not executable"
	}
	return o
}

// readLines returns the lines of a file that are not blank, none when it
// cannot be read.
func readLines(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// FindOS returns the definition that NAME or NAME+VARIANT asks for: NotFound
// when the node has none of that name, WrongState when it is broken, Invalid
// when the variant does not fit; with force any variant will do.
func (a *Agent) FindOS(ctx context.Context, name string, force bool) (OS, error) {
	list, err := a.OSes(ctx)
	if err != nil {
		return OS{}, err
	}
	base, variant, _ := strings.Cut(name, "+")
	i := slices.IndexFunc(list, func(o OS) bool { return o.Name == base })
	if i < 0 {
		return OS{}, fault.New(fault.NotFound, "OS '%s' not in supported OS list for node %s", base, a.cfg.Node)
	}
	o := list[i]
	switch {
	case o.Problem != "":
		return OS{}, fault.New(fault.WrongState, "OS '%s' is not usable on node %s: %s", base, a.cfg.Node, o.Problem)
	case force:
		return o, nil
	case len(o.Variants) == 0 && variant != "":
		return OS{}, fault.New(fault.Invalid, "OS '%s' does not support variants ('%s' passed)", base, variant)
	case variant == "" && len(o.Variants) < 2: // there is nothing to choose
		return o, nil
	case variant == "":
		return OS{}, fault.New(fault.Invalid, "OS name must include a variant").WithHint("one of: %s", strings.Join(o.Variants, ", "))
	case !slices.Contains(o.Variants, variant):
		return OS{}, fault.New(fault.Invalid, "Unsupported OS variant").WithHint("one of: %s", strings.Join(o.Variants, ", "))
	}
	return o, nil
}
