package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// class is an entry of the ledger: a kind of difference that users are told of.
type class struct {
	// Name is what the account of a run calls it.
	Name string `json:"class"`
	// Aside marks what is not compared at all, for it is each side's own: times,
	// figures of the machine. The other classes are differences.
	Aside bool `json:"aside"`
	// Call, At, Reference and Drover are patterns of the call, the place and the two
	// values there. A missing one fits everything.
	Call      pattern `json:"call"`
	At        pattern `json:"at"`
	Reference pattern `json:"reference"`
	Drover    pattern `json:"drover"`
	// Same is a pattern of which both values must have the same match.
	Same pattern `json:"same"`
	// Hint says that Drover's text is the reference's, with a hint behind it.
	Hint bool `json:"hint"`
	// Longer says that Drover's text goes on behind the reference's.
	Longer bool `json:"longer"`
	// Trail says that both are reason trails that differ by what is each side's own: times
	// that the system gave, and the accounts that Drover adds.
	Trail bool `json:"trail"`
	// Fields says that both are lists of fields, and that Drover has all of the reference's.
	Fields bool `json:"fields"`
	// Page is the page of docs/compat that names it, Says the sentence there.
	Page string `json:"page"`
	Says string `json:"says"`
}

// pattern is a regular expression in JSON.
type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalJSON(data []byte) error {
	var text string
	err := json.Unmarshal(data, &text)
	if err == nil {
		p.Regexp, err = regexp.Compile(text)
	}
	return err
}

func (p pattern) fits(text string) bool { return p.Regexp == nil || p.MatchString(text) }

// fits tells whether a difference is one of the class. about is the call, or the look at
// the state with the call that it comes after.
func (k *class) fits(about string, d difference) bool {
	return k.At.fits(d.at) && k.Reference.fits(d.reference) && k.Drover.fits(d.drover) && k.Call.fits(about) &&
		(!k.Hint || hinted(d)) && (!k.Longer || strings.HasPrefix(d.drover, d.reference)) && (!k.Trail || sameTrail(d)) && (!k.Fields || moreFields(d)) && (k.Same.Regexp == nil || sameMatch(k.Same, d))
}

// hinted tells whether a text is another with a hint behind it.
func hinted(d difference) bool {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(d.drover, `"`), strings.TrimSuffix(d.reference, `"`))
	return ok && strings.HasPrefix(rest, " (") && strings.HasSuffix(rest, ")")
}

// sameTrail tells whether two trails are one but for accounts and for the times of what
// the system added.
func sameTrail(d difference) bool {
	var trails [2][][]any
	for i, text := range []string{d.reference, d.drover} {
		var whole [][]any
		if json.Unmarshal([]byte(text), &whole) != nil {
			return false
		}
		for _, hop := range whole {
			source, _ := hop[0].(string)
			if strings.HasPrefix(source, "gnt:account:") {
				continue
			}
			if source == "luxid" || strings.HasPrefix(source, "gnt:opcode:") || strings.HasPrefix(source, "gnt:library:") {
				hop = hop[:2]
			}
			trails[i] = append(trails[i], hop)
		}
	}
	return reflect.DeepEqual(trails[0], trails[1])
}

// moreFields tells whether one list of fields has all of another.
func moreFields(d difference) bool {
	type field struct{ Name, Title, Kind string }
	var theirs, ours []field
	if json.Unmarshal([]byte(d.reference), &theirs) != nil || json.Unmarshal([]byte(d.drover), &ours) != nil {
		return false
	}
	return !slices.ContainsFunc(theirs, func(f field) bool { return !slices.Contains(ours, f) })
}

func sameMatch(p pattern, d difference) bool {
	found := p.FindString(d.reference)
	return found != "" && found == p.FindString(d.drover)
}

type ledger []*class

// classify returns the class of a difference, nil when it has none.
func (l ledger) classify(about string, d difference) *class {
	for _, k := range l {
		if k.fits(about, d) {
			return k
		}
	}
	return nil
}

func readLedger(t testing.TB) ledger {
	t.Helper()
	text, err := os.ReadFile("ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	var l ledger
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		t.Fatalf("ledger.json: %v", err)
	}
	return l
}

// TestLedgerIsToldToUsers: every class of the ledger is narrow, and its sentence is on
// its page of docs/compat.
func TestLedgerIsToldToUsers(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range readLedger(t) {
		page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "compat", k.Page))
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		if len(k.Says) < 10 || !strings.Contains(oneLine(string(page)), oneLine(k.Says)) {
			t.Errorf("%s: %s does not say %q", k.Name, k.Page, k.Says)
		}
		if k.At.Regexp == nil {
			t.Errorf("%s has no place", k.Name)
		}
		if key := fmt.Sprint(k.Name, k.Call, k.At, k.Reference, k.Drover); seen[key] {
			t.Errorf("%s is there twice", k.Name)
		} else {
			seen[key] = true
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// accounts are what became of the calls of a run, and of looks at the state in between.
type accounts struct {
	calls, states *account
	ledger        ledger
	// apart says that the two did different things, as the answers said: the state then
	// differs, too, until it is mended.
	apart bool
	last  *call
}

func newAccounts(l ledger) *accounts {
	return &accounts{calls: newAccount(), states: newAccount(), ledger: l, last: &call{LUXI: &luxiCall{}}}
}

// add takes a call into the accounts.
func (a *accounts) add(c *call, found []difference) {
	switch {
	case c.State && (a.apart || c.Mends):
	case c.State:
		a.states.after = a.last.String()
		a.states.add(a.ledger, c, found)
	case a.apart && c.Follows && len(found) > 0:
		a.calls.follow(c)
	default:
		a.last = c
		same := a.calls.add(a.ledger, c, found)
		a.apart = !same || a.apart && c.Follows
	}
}

// account is what became of some calls.
type account struct {
	calls, equal, aside, classed, unnamed int
	asides, classes                       map[string]int
	examples                              map[string]string
	unknown                               map[string][]string // unnamed differences by their place
	after                                 string              // the call that they come after, of looks at the state
}

func newAccount() *account {
	return &account{asides: map[string]int{}, classes: map[string]int{}, examples: map[string]string{}, unknown: map[string][]string{}}
}

// add takes a call into the account, and tells whether the answers were the same, but for
// what is set aside.
func (a *account) add(l ledger, c *call, found []difference) bool {
	a.calls++
	asides, classes, unnamed := map[string]difference{}, map[string]difference{}, false
	for _, d := range found {
		switch k := l.classify(a.about(c), d); {
		case k == nil:
			unnamed = true
			a.unknown[c.Class+" "+d.at] = append(a.unknown[c.Class+" "+d.at], a.example(c, d))
		case k.Aside:
			asides[k.Name] = d
		default:
			classes[k.Name] = d
		}
	}
	for name, d := range asides {
		a.asides[name]++
		a.keep(name, c, d)
	}
	for name, d := range classes {
		a.classes[name]++
		a.keep(name, c, d)
	}
	switch {
	case unnamed:
		a.unnamed++
	case len(classes) > 0:
		a.classed++
	case len(asides) > 0:
		a.aside++
	default:
		a.equal++
	}
	return !unnamed && len(classes) == 0
}

// follow takes a call into the account that is about what one before it made or changed,
// where the two had done different things by then.
func (a *account) follow(c *call) {
	const name = "further calls about what was answered differently"
	a.calls++
	a.aside++
	a.asides[name]++
	if a.examples[name] == "" {
		a.examples[name] = clip(c.String())
	}
}

func (a *account) keep(name string, c *call, d difference) {
	if a.examples[name] == "" {
		a.examples[name] = a.example(c, d)
	}
}

// about is what a difference is about: a call, or a look after one.
func (a *account) about(c *call) string {
	if c.State {
		return c.Class + " after " + a.after
	}
	return c.String()
}

func (a *account) example(c *call, d difference) string {
	return fmt.Sprintf("%s (%s)\n      at %s\n      Ganeti %s\n      Drover %s", clip(a.about(c)), c.ID, d.at, clip(d.reference), clip(d.drover))
}

func clip(text string) string {
	const most = 700
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// report says what became of calls, and of looks at the state in between; it fails when
// something is not named.
func report(t *testing.T, a *accounts) {
	t.Helper()
	calls, states := a.calls, a.states
	t.Log(calls.text("calls") + states.text("looks at the state"))
	if calls.unnamed+states.unnamed > 0 {
		t.Errorf("%d calls and %d looks at the state differ in ways that no class of ledger.json names", calls.unnamed, states.unnamed)
	}
}

// text is the account for a person: counts, with an example of each.
func (a *account) text(what string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%d %s: %d equal, %d equal but for what is set aside, %d of named classes, %d not named\n", a.calls, what, a.equal, a.aside, a.classed, a.unnamed)
	for _, part := range []struct {
		title  string
		counts map[string]int
	}{{"set aside", a.asides}, {"named classes", a.classes}} {
		fmt.Fprintf(&out, "  %s:\n", part.title)
		for _, name := range slices.SortedFunc(maps.Keys(part.counts), func(x, y string) int { return cmp.Or(part.counts[y]-part.counts[x], strings.Compare(x, y)) }) {
			fmt.Fprintf(&out, "  %6d  %s\n          %s\n", part.counts[name], name, a.examples[name])
		}
	}
	const most = 12
	for _, place := range slices.Sorted(maps.Keys(a.unknown)) {
		list := a.unknown[place]
		fmt.Fprintf(&out, "  NOT NAMED: %d, at %s\n", len(list), place)
		for _, e := range list[:min(len(list), most)] {
			fmt.Fprintf(&out, "          %s\n", e)
		}
	}
	return out.String()
}
