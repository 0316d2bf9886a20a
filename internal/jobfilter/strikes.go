package jobfilter

import (
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// A pattern that needs backtracking may take exponential time on a text that somebody
// wrote for that. What comes of it concerns who handed the text in, and nobody else.
const (
	// maxStrikes is how many matches of texts of one submitter may exceed their limit,
	// over all such patterns of all rules, before none of them is searched for in the texts
	// of that submitter any more, until the rules change.
	maxStrikes = 2
	// maxSubmitters is how many submitters are told apart; further ones count as one.
	maxSubmitters = 20
)

// strikes counts, by submitter, the matches that exceeded their limits.
type strikes struct {
	// mu also keeps two decisions from searching at the same time.
	mu sync.Mutex
	of map[string]int
	// left is how many matches may still exceed their limits in the decision that searches now.
	left int
}

// ask asks a test with such patterns. It does not know when searching took too long, or
// did so for others of the same submitter before.
func (s *strikes) ask(t test, id int64, ops []*opcode.Opcode) (holds, unsearched bool) {
	who := submitter(ops)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.of[who]; !known && len(s.of) >= maxSubmitters {
		who = ""
	}
	patience := maxStrikes - s.of[who]
	if patience <= 0 {
		return false, true
	}
	s.left = patience
	holds = t(id, ops)
	if more := patience - s.left; more > 0 {
		s.of[who] += more
		return holds, true
	}
	return holds, false
}

// errNoPatience is why a pattern is not searched for.
var errNoPatience = fault.New(fault.TooLarge, "%s", tooLong)

// search searches for a pattern in one of the texts of a job, of which there may be hundreds: those behind the ones with which patience ended are not searched. Nobody's patience has no end.
func (s *strikes) search(p *qlang.Regex, text string) (bool, error) {
	if s == nil || p.Linear() {
		return p.Search(text)
	}
	if s.left <= 0 {
		return false, errNoPatience
	}
	found, err := p.Search(text)
	if err != nil {
		s.left--
	}
	return found, err
}

// submitter is the account that handed the job in, as the surface that took it says; empty
// if nobody did.
func submitter(ops []*opcode.Opcode) string {
	if len(ops) == 0 {
		return ""
	}
	for _, hop := range ops[0].Reason {
		if strings.HasPrefix(hop.Source, reason.SourceAccount) {
			name, _, _ := strings.Cut(hop.Reason, " (") // where the request came from
			return hop.Source + " " + name
		}
	}
	return ""
}
