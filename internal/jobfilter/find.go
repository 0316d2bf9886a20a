package jobfilter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// minPrefix is how much of a UUID or a name has to be given to mean a rule.
const minPrefix = 4

// Find returns the rule that a person means: the one with this UUID or this
// name, or the only one whose UUID or name begins with it (at least four
// characters). Errors: fault.NotFound, fault.Ambiguous with the candidates.
func Find(rules []*Rule, ref string) (*Rule, error) {
	for _, r := range rules {
		if ref != "" && (r.UUID == ref || r.Name == ref) {
			return r, nil
		}
	}
	var found []*Rule
	if len(ref) >= minPrefix {
		for _, r := range rules {
			if strings.HasPrefix(r.UUID, ref) || strings.HasPrefix(r.Name, ref) {
				found = append(found, r)
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, notFound(rules, ref)
	}
	names := make([]string, len(found))
	for i, r := range found {
		names[i] = r.UUID
		if r.Name != "" {
			names[i] = r.Name + " (" + r.UUID + ")"
		}
	}
	return nil, fault.New(fault.Ambiguous, "%q means more than one filter rule", clip(ref)).
		WithHint("it is the beginning of %s", strings.Join(names, ", "))
}

// notFound words the absence of a rule as the reference does.
func notFound(rules []*Rule, ref string) error {
	err := fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", clip(ref))
	var names []string
	for _, r := range rules {
		if r.Name != "" {
			names = append(names, r.Name)
		}
	}
	if near := qlang.Suggest(ref, slices.Values(names)); near != "" {
		return err.WithHint("did you mean %q?", near)
	}
	if ref != "" && len(ref) < minPrefix {
		return err.WithHint("give at least %d characters of its UUID or name", minPrefix)
	}
	return err
}

// Claims are the hops of a trail that somebody sends with a rule, but for those of the
// system that a rule has which was read and is sent back: hops that tell an account, or
// that the queue made, as they stand in one of the rules here, which nobody can have made
// up; and hops of the queue that say nothing, which claim nothing.
func Claims(rules []*Rule, t reason.Trail) reason.Trail {
	return slices.DeleteFunc(slices.Clone(t), func(e reason.Entry) bool {
		switch {
		case e.Source == reason.SourceQueue && e.Reason == "":
			return true
		case e.Source != reason.SourceQueue && !strings.HasPrefix(e.Source, reason.SourceAccount):
			return false
		}
		return slices.ContainsFunc(rules, func(r *Rule) bool { return slices.Contains(r.Reason, e) })
	})
}

// Digest is a short text that is the same as long as the rules are: what a
// preview was made of, and what a change can demand to still be so.
func Digest(rules []*Rule) string {
	sorted := slices.Clone(rules)
	slices.SortFunc(sorted, Compare)
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, r := range sorted {
		if err := enc.Encode(r); err != nil {
			panic(fault.New(fault.Internal, "a filter rule that cannot be written: %w", err))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:digestDigits]
}

// digestDigits are enough for two sets of rules never to be confused by chance.
const digestDigits = 16
