package cluster

import (
	"encoding/json"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// Limits of tags, as the reference has them.
const (
	// MaxTagLength is in characters.
	MaxTagLength = 128
	// MaxTags is per object.
	MaxTags = 4096
)

// Tags is a set of tags, sorted and without repeats. The zero value is the
// empty set; it is written as [].
type Tags []string

// NewTags returns the set of the given tags.
func NewTags(tags ...string) Tags {
	return Tags(nil).With(tags...)
}

// MarshalJSON writes a list, [] for the empty set.
func (t Tags) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads a list in any order.
func (t *Tags) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*t = NewTags(list...)
	return nil
}

// Has reports whether the tag is in the set.
func (t Tags) Has(tag string) bool {
	_, found := slices.BinarySearch(t, tag)
	return found
}

// With returns the set with the tags added; t stays as it is.
func (t Tags) With(tags ...string) Tags {
	out := slices.Concat(t, tags)
	slices.Sort(out)
	return slices.Compact(out)
}

// Without returns the set with the tags removed, and those of them that were
// not in it; t stays as it is.
func (t Tags) Without(tags ...string) (rest Tags, missing []string) {
	rest = slices.Clone(t)
	for _, tag := range tags {
		i, found := slices.BinarySearch(rest, tag)
		if !found {
			missing = append(missing, tag)
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return rest, missing
}

var tagSyntax = regexp.MustCompile(`^[\p{L}\p{N}_.+*/:@-]+$`)

// CheckTag refuses a tag that the reference would refuse: empty, too long, or
// with a character that is no letter or digit and none of "_.+*/:@-".
func CheckTag(tag string) error {
	switch {
	case tag == "":
		return fault.New(fault.BadTag, "Tags cannot be empty")
	case utf8.RuneCountInString(tag) > MaxTagLength:
		return fault.New(fault.BadTag, "Tag too long (>%d characters)", MaxTagLength)
	case !tagSyntax.MatchString(tag):
		return fault.New(fault.BadTag, "Tag contains invalid characters").
			WithHint("%q: letters, digits and _ . + * / : @ - are allowed", tag)
	}
	return nil
}

// AddTags returns the set with the tags added, after checking each and the
// number of tags per object.
func AddTags(t Tags, tags []string) (Tags, error) {
	for _, tag := range tags {
		if err := CheckTag(tag); err != nil {
			return nil, err
		}
	}
	out := t.With(tags...)
	if len(out) > MaxTags {
		return nil, fault.New(fault.BadTag, "Too many tags").WithHint("an object has %d at most", MaxTags)
	}
	return out, nil
}
