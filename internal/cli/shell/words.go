package shell

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// A rewording says in the words of this command line what a controller says in those of
// the reference, which clients of the protocols know.
type rewording struct {
	theirs func() *regexp.Regexp
	ours   string
	// kind is the kind of item that the first group names, and field the field by which, if
	// there is none of that name; list is the command that tells which there are.
	kind, field, list string
}

func reword(theirs, ours string) rewording {
	return rewording{theirs: whole(theirs), ours: ours}
}

// whole is the form of a whole text. Most processes show no text of them, so it is compiled by the first that is looked at.
func whole(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^" + text + "$") })
}

func noSuch(theirs, kind, thing string) rewording {
	r := reword(theirs, "there is no "+thing+" $1")
	if kind != "" {
		r.kind, r.field, r.list = kind, "name", "drover "+kind+" list"
	}
	return r
}

// rewordings are asked in this order.
var rewordings = []rewording{
	noSuch(`Job (?:ID )?'?(\d+)'? not found(?: in queue)?`, "", "job"),
	noSuch(`Instance (?:name )?'?([^ ']+)'? not (?:found|known)`, "instance", "instance"),
	noSuch(`Node (?:name )?'?([^ ']+)'? not (?:found|known)`, "node", "node"),
	noSuch(`Node[gG]roup (?:name )?'?([^ ']+)'? not (?:found|known)`, "group", "node group"),
	noSuch(`Network (?:name )?'?([^ ']+)'? not (?:found|known)`, "network", "network"),
	noSuch(`Image (?:name )?'?([^ ']+)'? not (?:found|known)`, "image", "image"),
	noSuch(`Filter rule with UUID (\S+) does not exist`, "", "rule"),
	{theirs: whole(`there is no environment "(.*)"`), ours: `there is no environment "$1"`, kind: "environment", field: "name", list: "drover deploy env list"},
	{theirs: whole(`there is no deployment (\d+)`), ours: "there is no deployment $1", list: "drover deploy history"},
	{theirs: whole(`there is no server "(.*)"`), ours: `there is no server "$1"`, list: "drover server list"},
	reword(`Can't find field named '(.*)'`, "there is no field $1"),
	reword(`malformed FilterAction JSON: (.*)`, "there is no action $1"),
	reword(`Invalid types in comparison, trying to compare (.*) with 'QuotedString (.*)'`, "$1 cannot be compared with the text $2"),
	reword(`Invalid types in comparison, trying to compare (.*) with 'NumericValue (.*)'`, "$1 cannot be compared with the number $2"),
	reword(`Unexpected value '(.*)' in boolean context`, "$1 is neither true nor false"),
	reword(`Cannot convert value '(.*)', error: Unable to read list`, "$1 is no list"),
	reword(`Invalid field value used in regexp matching, expecting string but got '(.*)'`, "$1 is no text, which a pattern could match"),
	reword(`Invalid job ID passed: invalid literal for int\(\) with base 10: '(.*)'`, `a job is named by its number, got "$1"`),
}

// unknownField is said of a field that a kind of item does not have.
var unknownField = regexp.MustCompile(`^Can't find field named '.*'$`)

// Reworded is a message in our own words, if it is one in the reference's.
func Reworded(message string) string {
	for _, r := range rewordings {
		if r.theirs().MatchString(message) {
			return r.theirs().ReplaceAllString(message, r.ours)
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
		m := r.theirs().FindStringSubmatch(f.Message)
		if m == nil || r.kind == "" {
			continue
		}
		names, asked := sh.Column(ctx, r.kind, r.field, &qlang.All{})
		if near := nearestName(m[1], names); asked == nil && near != "" {
			c := *f
			return c.WithHint("did you mean %s?", near)
		}
	}
	return err
}

// WithPlace adds where it can be looked up what there is, to what ends a command for want of it.
func (sh *Shell) WithPlace(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Hint != "" || sh.Classic() {
		return err
	}
	c := *f
	for _, r := range rewordings {
		if r.list != "" && r.theirs().MatchString(f.Message) {
			return c.WithHint("%s tells which there are", r.list)
		}
	}
	if unknownField.MatchString(f.Message) {
		return c.WithHint("drover query fields KIND tells which there are, for example drover query fields instance")
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
		if r.theirs().MatchString(text) {
			return r.theirs().ReplaceAllString(text, r.ours)
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
