package export

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// MaxSize is how large a file may be, in bytes.
const MaxSize = 1 << 20

// writer writes the form of Python's configparser: sections of pairs, a percent sign doubled, the further lines of a value indented.
type writer struct {
	out strings.Builder
	err error
}

// isName is what a name may be so that it is read again.
var isName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

func (w *writer) section(name string) {
	if w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	w.out.WriteString("[" + name + "]\n")
}

func (w *writer) pair(name, value string) {
	if w.err == nil && !isName.MatchString(name) {
		w.err = fault.New(fault.Invalid, "an export cannot keep the parameter %.100q", name)
	}
	if w.err == nil && (!utf8.ValidString(value) || readValue(written(value)) != value) {
		w.err = fault.New(fault.Invalid, "an export cannot keep the value of %s: it begins or ends with blanks, or is no text", name)
	}
	w.out.WriteString(name + " = " + written(value) + "\n")
}

// indent begins each further line of a value.
const indent = "\n\t"

func written(value string) string {
	return strings.ReplaceAll(strings.ReplaceAll(value, "%", "%%"), "\n", indent)
}

func readValue(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if i > 0 {
			lines[i] = strings.TrimPrefix(lines[i], "\t")
		}
	}
	return strings.ReplaceAll(strings.Trim(strings.Join(lines, "\n"), " \t\r\n"), "%%", "%")
}

// file is what a file says: values by section and name.
type file map[string]map[string]string

// get is a value; empty for none.
func (f file) get(section, name string) string {
	if v := f[section][name]; !strings.EqualFold(v, none) {
		return v
	}
	return ""
}

// parse reads a file.
func parse(text []byte) (file, error) {
	if len(text) > MaxSize || !utf8.Valid(text) {
		return nil, fault.New(fault.Invalid, "it is no text of at most %d bytes", MaxSize)
	}
	out := file{}
	var section map[string]string
	name, value := "", ""
	end := func() {
		if name != "" {
			section[name] = readValue(value)
		}
		name, value = "", ""
	}
	for n, line := range strings.Split(string(text), "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case name != "" && (trimmed == "" || line[0] == ' ' || line[0] == '\t'):
			value += "\n" + line
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[' && trimmed[len(trimmed)-1] == ']':
			end()
			title := trimmed[1 : len(trimmed)-1]
			if out[title] == nil {
				out[title] = map[string]string{}
			}
			section = out[title]
		default:
			end()
			at := strings.IndexAny(line, "=:")
			if at <= 0 || section == nil {
				return nil, fault.New(fault.Invalid, "its line %d is neither a section nor a pair of it", n+1)
			}
			name, value = strings.TrimSpace(line[:at]), line[at+1:]
		}
	}
	end()
	return out, nil
}
