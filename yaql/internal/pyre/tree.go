package pyre

// node is a part of a parsed pattern.
type node interface {
	// width returns the least and the greatest number of characters it matches.
	width() (low, high int)
	// write adds the part to a pattern for one of the engines.
	write(w *writer)
}

// unlimited is a repetition without an upper bound.
const unlimited = 1<<31 - 1

type (
	// literal is one character.
	literal struct {
		char  rune
		flags Flags
	}
	// anyChar is the dot.
	anyChar struct{ all bool }
	// position is an anchor: one of ^ $ A Z b B.
	position struct {
		kind  byte
		flags Flags
	}
	// set is a character class.
	set struct {
		ranges     []rune // pairs of first and last
		categories []byte // of d s w D S W
		negated    bool
		flags      Flags
	}
	// sequence matches its parts one after the other.
	sequence []node
	// alternation matches one of its parts.
	alternation []node
	// repeat matches its part again and again.
	repeat struct {
		part     node
		min, max int
		mode     byte // 0 greedy, ? lazy, + possessive
	}
	// group is a pair of parentheses.
	group struct {
		part   node
		number int // 0 when it does not capture
		atomic bool
		// low and high are its width, known once it is read.
		low, high int
	}
	// look is an assertion about what follows or precedes.
	look struct {
		part           node
		behind, negate bool
	}
	// reference matches what a group matched.
	reference struct {
		number int
		to     *group
		flags  Flags
	}
	// conditional matches yes when the group matched, else no.
	conditional struct {
		number  int
		yes, no node
	}
)

func (literal) width() (int, int)  { return 1, 1 }
func (anyChar) width() (int, int)  { return 1, 1 }
func (set) width() (int, int)      { return 1, 1 }
func (position) width() (int, int) { return 0, 0 }
func (look) width() (int, int)     { return 0, 0 }

func (n *group) width() (int, int) { return n.low, n.high }

func (n reference) width() (int, int) {
	if n.to == nil || n.to.part == nil {
		return 0, unlimited
	}
	return n.to.width()
}

func (n sequence) width() (int, int) {
	low, high := 0, 0
	for _, part := range n {
		l, h := part.width()
		low, high = capped(low+l), capped(high+h)
	}
	return low, high
}

func (n alternation) width() (int, int) {
	low, high := unlimited, 0
	for _, part := range n {
		l, h := part.width()
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

func (n repeat) width() (int, int) {
	low, high := n.part.width()
	return product(low, n.min), product(high, n.max)
}

func (n conditional) width() (int, int) {
	low, high := n.yes.width()
	l, h := 0, 0
	if n.no != nil {
		l, h = n.no.width()
	}
	return min(low, l), max(high, h)
}

func capped(n int) int { return min(n, unlimited) }

func product(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	if a > unlimited/b {
		return unlimited
	}
	return a * b
}
