package agent

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// running are the parameters of a task that say how its command runs.
type running struct {
	// Cwd is the directory that it runs in; empty for the root.
	Cwd string `json:"cwd"`
	// Timeout is how long one try may take, Retries how often a command that fails is tried again, and Interval how long
	// is waited before.
	Timeout  length `json:"timeout"`
	Retries  count  `json:"retries"`
	Interval length `json:"interval"`
}

// How long commands of tasks may take that do not say so, and how long a retry waits.
const (
	taskTimeout  = time.Hour
	taskInterval = time.Second
)

// maxLength and maxRetries bound what a task may ask for.
const (
	maxLength  = 366 * 24 * time.Hour
	maxRetries = 1000
)

// length is a length of time: a number of seconds, also as text, or a text as "10m". It is kept whether it was said.
type length struct {
	time.Duration

	said bool
}

// UnmarshalJSON refuses what is no length, and what no command lasts.
func (l *length) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	text := strings.Trim(string(b), `"`)
	seconds, err := strconv.ParseFloat(text, 64)
	d := time.Duration(math.Min(seconds, maxLength.Seconds()+1) * float64(time.Second))
	if err != nil {
		d, err = time.ParseDuration(text)
	}
	if err != nil || math.IsNaN(seconds) || d < 0 {
		return fault.New(fault.Invalid, "a time of a task is a number of seconds, or a text such as \"10m\", not %s", fault.Clip(string(b), 100))
	}
	if d > maxLength {
		return fault.New(fault.Invalid, "a time of a task is %.0f seconds at most, not %s", maxLength.Seconds(), fault.Clip(string(b), 100))
	}
	*l = length{d, true}
	return nil
}

func (l length) or(d time.Duration) time.Duration {
	if !l.said {
		return d
	}
	return l.Duration
}

// limit is how long a task may take.
func (l length) limit() (time.Duration, error) {
	if l.said && l.Duration == 0 {
		return 0, fault.New(fault.Invalid, "the parameter timeout is 0: a task needs some time").At("parameters.timeout").
			WithHint("leave it out for %s", taskTimeout)
	}
	return l.or(taskTimeout), nil
}

// word is an argument or a variable of a command: a text, or what else there is as JSON. No shell reads it.
type word string

// UnmarshalJSON refuses what no program can be given.
func (w *word) UnmarshalJSON(b []byte) error {
	text := string(b)
	switch {
	case text == "null":
		return fault.New(fault.Invalid, "null is no argument and no variable of a command").WithHint("an empty text is one")
	case b[0] == '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	case b[0] == '[' || b[0] == '{':
		compact := &bytes.Buffer{}
		if err := json.Compact(compact, b); err != nil {
			return err
		}
		text = compact.String()
	}
	if strings.ContainsRune(text, 0) {
		return fault.New(fault.Invalid, "an argument or variable of a command cannot hold the character NUL")
	}
	*w = word(text)
	return nil
}

// variable is the name of a variable of a command's environment.
type variable string

// UnmarshalText refuses what a shell could not name.
func (v *variable) UnmarshalText(b []byte) error {
	if !variableName.Match(b) {
		return fault.New(fault.Invalid, "%q is no name of a variable: these are of letters, digits and _, and do not begin with a digit", fault.Clip(string(b), 100))
	}
	*v = variable(b)
	return nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environ are variables as programs get them.
func environ(of map[variable]word) (out []string) {
	for name, value := range of {
		out = append(out, string(name)+"="+string(value))
	}
	return out
}

// withArguments is the text of a script whose $1, $2 and so on are arguments. They stand in it, and not among those of its shell, which
// everybody on the machine can read.
func withArguments(script string, args []word) string {
	if len(args) == 0 {
		return script
	}
	b := &strings.Builder{}
	b.WriteString("set --")
	for _, a := range args {
		b.WriteString(" '" + strings.ReplaceAll(string(a), "'", `'\''`) + "'")
	}
	return b.String() + "\n" + script
}

// count is a number of retries, also as text.
type count int

// UnmarshalJSON refuses what is no such number.
func (c *count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err != nil || n != math.Trunc(n) || n < 0 || n > maxRetries {
		return fault.New(fault.Invalid, "a task is tried again 0 to %d times, not %s", maxRetries, fault.Clip(string(b), 100))
	}
	*c = count(n)
	return nil
}

// mode are permissions of a file, in octal digits. It is kept whether they were said.
type mode struct {
	bits uint32
	said bool
}

// UnmarshalJSON reads "0644", and 644 as the same.
func (m *mode) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	const all = 0o7777
	n, err := strconv.ParseUint(strings.Trim(string(b), `"`), 8, 32)
	if err != nil || n > all {
		return fault.New(fault.Invalid, "permissions are up to four octal digits, such as \"0644\", not %s", fault.Clip(string(b), 100))
	}
	*m = mode{uint32(n), true}
	return nil
}

// or is the mode as Go has it, which keeps the three bits above those of owner, group and others elsewhere.
func (m mode) or(d fs.FileMode) fs.FileMode {
	if !m.said {
		return d
	}
	out := fs.FileMode(m.bits) & fs.ModePerm
	for bit, its := range map[uint32]fs.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if m.bits&bit != 0 {
			out |= its
		}
	}
	return out
}

// text is a text; other values are their JSON.
type text string

// UnmarshalJSON reads any value.
func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = text(s)
	return nil
}
