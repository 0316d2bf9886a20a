package shell

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// A rewording says in the words of this command line what a controller says in those of
// the reference, which clients of the protocols know.
type rewording struct {
	theirs *regexp.Regexp
	ours   string
	// kind is the kind of item that the first group names, if there is none of that
	// name.
	kind string
}

func reword(theirs, ours string) rewording {
	return rewording{theirs: regexp.MustCompile("^" + theirs + "$"), ours: ours}
}

func noSuch(theirs, kind, thing string) rewording {
	r := reword(theirs, "there is no "+thing+" $1")
	r.kind = kind
	return r
}

// rewordings are asked in this order.
var rewordings = []rewording{
	noSuch(`Job (?:ID )?'?(\d+)'? not found(?: in queue)?`, "", "job"),
	noSuch(`Instance (?:name )?'?([^ ']+)'? not (?:found|known)`, "instance", "instance"),
	noSuch(`Node (?:name )?'?([^ ']+)'? not (?:found|known)`, "node", "node"),
	noSuch(`Node[gG]roup (?:name )?'?([^ ']+)'? not (?:found|known)`, "group", "node group"),
	noSuch(`Network (?:name )?'?([^ ']+)'? not (?:found|known)`, "network", "network"),
	noSuch(`Filter rule with UUID (\S+) does not exist`, "", "rule"),
	reword(`Can't find field named '(.*)'`, "there is no field $1"),
	reword(`malformed FilterAction JSON: (.*)`, "there is no action $1"),
	reword(`Invalid types in comparison, trying to compare (.*) with 'QuotedString (.*)'`, "$1 cannot be compared with the text $2"),
	reword(`Invalid types in comparison, trying to compare (.*) with 'NumericValue (.*)'`, "$1 cannot be compared with the number $2"),
	reword(`Unexpected value '(.*)' in boolean context`, "$1 is neither true nor false"),
	reword(`Cannot convert value '(.*)', error: Unable to read list`, "$1 is no list"),
	reword(`Invalid field value used in regexp matching, expecting string but got '(.*)'`, "$1 is no text, which a pattern could match"),
	reword(`Invalid job ID passed: invalid literal for int\(\) with base 10: '(.*)'`, `a job is named by its number, got "$1"`),
}

// Reworded is a message in our own words, if it is one in the reference's.
func Reworded(message string) string {
	for _, r := range rewordings {
		if r.theirs.MatchString(message) {
			return r.theirs.ReplaceAllString(message, r.ours)
		}
	}
	return message
}

// WithNearest adds to the error of an item that there is not the name of one that may
// have been meant. Without a controller there is nothing to add.
func (sh *Shell) WithNearest(ctx context.Context, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Hint != "" || sh.Classic() || sh.client == nil || ctx.Err() != nil {
		return err
	}
	for _, r := range rewordings {
		m := r.theirs.FindStringSubmatch(f.Message)
		if m == nil || r.kind == "" {
			continue
		}
		names, asked := sh.Column(ctx, r.kind, "name", &qlang.All{})
		if near := nearestName(m[1], names); asked == nil && near != "" {
			c := *f
			return c.WithHint("did you mean %s?", near)
		}
	}
	return err
}

// nearestName is the name that was probably meant: near as a whole, or in its first label,
// which is how people call it.
func nearestName(typed string, names []string) string {
	if near := qlang.Suggest(typed, slices.Values(names)); near != "" {
		return near
	}
	labels := make([]string, len(names))
	for i, name := range names {
		labels[i], _, _ = strings.Cut(name, ".")
	}
	if near := qlang.Suggest(typed, slices.Values(labels)); near != "" {
		return names[slices.Index(labels, near)]
	}
	return ""
}

// ownReason words why a filter cannot be read, whose place is shown.
func ownReason(line string) string {
	text, _, _ := strings.Cut(line, "  (at char ")
	for _, r := range filterReasons {
		if r.theirs.MatchString(text) {
			return r.theirs.ReplaceAllString(text, r.ours)
		}
	}
	return text
}

var filterReasons = []rewording{
	reword(`Expected end of text, found '(.*)'`, "from here it cannot be read on"),
	reword(`Expected Suppress:\('or'\) term, found end of text`, "a test is missing here"),
	reword(`Expected Suppress:\('or'\) term, found '(.*)'`, "a test begins with a field or a value, not with $1"),
	reword(`Expected Suppress:\('or'\) term`, "a test is missing here"),
}
