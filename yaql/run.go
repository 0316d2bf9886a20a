package yaql

import (
	"context"
	"math"
	"math/big"
	"unicode/utf8"
)

// run is the state of one evaluation. It belongs to one goroutine.
type run struct {
	cfg   *config
	ctx   context.Context
	steps int64 // left; negative when spent
	depth int   // of nested calls and of iterators that pull from iterators
	// patterns are the regular expressions compiled in this evaluation.
	patterns map[patternKey]*Regex
	spare    *Context // for takeFrame
	kept     bool     // the host got values that may refer to the evaluation
}

func (r *run) init(ctx context.Context, e *Engine) {
	if ctx == nil {
		ctx = context.Background()
	}
	r.cfg, r.ctx, r.steps = &e.cfg, ctx, math.MaxInt64
	if e.cfg.steps > 0 {
		r.steps = e.cfg.steps
	}
}

// evaluation is what an evaluation needs at its start, in one piece.
type evaluation struct {
	run    run
	c      Context
	frame  Context
	unseen bool // nothing outside can still use it, although the code might have let it out
}

// stepCheck is how many steps may pass between two looks at the deadline; a power of two.
const stepCheck = 256

// step counts one step and fails when the budget is spent or the deadline has passed.
func (r *run) step() error {
	r.steps--
	if r.steps&(stepCheck-1) == 0 || r.steps < 0 {
		return r.checkLimits()
	}
	return nil
}

// spend counts n steps at once, for operations whose cost grows with their arguments.
func (r *run) spend(n int) error {
	if n <= 0 {
		return nil
	}
	r.steps -= int64(n)
	if r.steps < 0 || n >= stepCheck {
		return r.checkLimits()
	}
	return nil
}

// What is done at once counts as a step for so many bytes of a text, or items of a list that are copied. An entry of a map or
// a set counts as one.
const (
	bytesOfStep = 64
	itemsOfStep = 4
)

// owe counts n steps for work that cannot fail any more: the step that comes next fails if they were not left.
func (r *run) owe(n int) {
	if r == nil || n <= 0 {
		return
	}
	r.steps -= int64(n)
	if n >= stepCheck {
		r.steps = r.steps&^(stepCheck-1) + 1 // and then looks at the deadline
	}
}

// reads counts what it takes to walk through n bytes of a text, or to make them.
func (r *run) reads(n int) {
	if n >= bytesOfStep {
		r.owe(n / bytesOfStep)
	}
}

// copies counts what it takes to copy n items of a list.
func (r *run) copies(n int) {
	if n >= itemsOfStep {
		r.owe(n / itemsOfStep)
	}
}

func (r *run) checkLimits() error {
	if r.steps < 0 {
		return errorf(StepBudgetExceeded, "Expression took too many steps")
	}
	if r.ctx.Err() != nil {
		return asError(context.Cause(r.ctx))
	}
	return nil
}

// enter counts one level of nesting; leave must follow.
func (r *run) enter() error {
	r.depth++
	if r.depth > r.cfg.depth {
		return errTooDeep
	}
	return nil
}

func (r *run) leave() { r.depth-- }

var errTooDeep = errorf(RecursionError, "maximum recursion depth exceeded")

// The bounds of the values that are compared, hashed, printed and converted: how deep they may be nested, and
// how many values they may consist of. A short expression can build a value that holds itself twice, the
// result of which holds that twice, and so on.
const (
	maxValueDepth = 10000
	maxValueNodes = 20_000_000
	maxTextNodes  = 2_000_000 // of values that are turned into text, which keys are as well
)

// unwound goes from the depths of a value to the start of the evaluation.
type unwound struct{ err error }

// walk counts what a walk through a value has met.
type walk struct {
	run          *run // that pays for it; nil for nobody
	depth, nodes int
	bytes        int // of the texts that were made
}

// textWalk is a walk that turns a value into text.
func textWalk(r *run) *walk { return &walk{run: r, nodes: maxValueNodes - maxTextNodes} }

// pays counts n steps of the evaluation that the walk is for, which ends there when they are not left.
func (w *walk) pays(n int) {
	if w == nil || w.run == nil || n <= 0 {
		return
	}
	if err := w.run.spend(n); err != nil {
		panic(unwound{err})
	}
}

// writes counts n bytes of a text that the walk makes.
func (w *walk) writes(n int) {
	if w.run == nil {
		return
	}
	w.bytes += n
	if w.bytes > maxString {
		panic(unwound{errQuota})
	}
	w.pays(n / bytesOfStep)
}

// enter counts a container of n values; leave must follow. A nil walk begins a new one.
func (w *walk) enter(n int) *walk {
	if w == nil {
		w = &walk{}
	}
	w.depth++
	w.nodes += n
	if w.depth > maxValueDepth || w.nodes > maxValueNodes {
		panic(unwound{errTooDeep})
	}
	w.pays(n)
	return w
}

func (w *walk) leave() { w.depth-- }

// rescue turns the panic of a walk that went too far into an error.
func rescue(err *error) {
	switch p := recover().(type) {
	case nil:
	case unwound:
		*err = p.err
	default:
		panic(p)
	}
}

// tooLarge is the error of a collection with more items than allowed.
func tooLarge(limit int) error {
	return errorf(CollectionTooLargeException, "Collection length exceeds %d elements", limit)
}

// charge fails if the value v is larger than the memory quota allows for a single value.
func (r *run) charge(v any) error {
	if r.cfg.memoryQuota <= 0 {
		return nil
	}
	if s, ok := v.(string); ok {
		if widestSize(len(s)) <= r.cfg.memoryQuota {
			return nil
		}
		r.reads(len(s))
	}
	if sizeOf(v) <= r.cfg.memoryQuota {
		return nil
	}
	return errQuota
}

var errQuota = errorf(MemoryQuotaExceededException, "Expression consumed too much memory")

// chargeItems fails if a list of n items would be too large.
func (r *run) chargeItems(n int) error {
	if r.cfg.memoryQuota > 0 && 56+8*int64(n) > r.cfg.memoryQuota {
		return errQuota
	}
	return nil
}

// chargeResult fails if the result is too large. Its lists and maps are new ones, with room to grow.
func (r *run) chargeResult(v any) error {
	if r.cfg.memoryQuota <= 0 {
		return nil
	}
	size := int64(0)
	switch x := v.(type) {
	case []any:
		size = 56 + 8*int64(max(8, len(x)+len(x)/8))
	case map[string]any:
		size = dictSize(len(x))
	case *Dict:
		size = dictSize(len(x.values))
	}
	if size > r.cfg.memoryQuota {
		return errQuota
	}
	return nil
}

// chargeSet fails if a set of n items would be too large.
func (r *run) chargeSet(n int) error {
	if r.cfg.memoryQuota > 0 && setSize(n) > r.cfg.memoryQuota {
		return errQuota
	}
	return nil
}

// sizeOf is roughly what the reference counts for a value, without the values inside it.
func sizeOf(v any) int64 {
	switch x := v.(type) {
	case nil:
		return 16
	case bool, int64:
		return 28
	case float64:
		return 24
	case *big.Int:
		return 24 + 4*int64((x.BitLen()+29)/30)
	case string:
		return stringSize(x)
	case []any:
		return 40 + 8*int64(len(x))
	case *List:
		return 56 + 8*int64(len(x.Items))
	case *Set:
		return setSize(x.Len())
	case *Dict:
		if x.mutable {
			return dictSize(len(x.values))
		}
		return 56 // the wrapper that makes a map immutable
	case map[string]any, Mapping:
		return 56
	case Sequence:
		return 40 + 8*int64(x.Len())
	}
	return 56
}

// setSize is that of a hash table of 8, 32, 128 ... places, of which three in five may be taken.
func setSize(n int) int64 {
	places := 8
	for n*5 >= (places-1)*3 {
		places *= 4
	}
	if places == 8 {
		return 216
	}
	return 216 + 16*int64(places)
}

// dictSize is that of a hash table of 8, 16, 32 ... places, of which two in three may be taken.
func dictSize(n int) int64 {
	if n == 0 {
		return 64
	}
	places := int64(8)
	for int64(n) > places*2/3 {
		places *= 2
	}
	index := places
	if places > 0xff {
		index *= 2
	}
	return 96 + index + places*2/3*24
}

// widestSize is what the size of a string of n bytes does not exceed, whatever they are.
func widestSize(n int) int64 { return 76 + 4*int64(n) }

// stringSize follows CPython's compact strings: one, two or four bytes for each character.
func stringSize(s string) int64 {
	widest, n := rune(0), int64(0)
	for _, r := range s {
		widest = max(widest, r)
		n++
	}
	switch {
	case widest < utf8.RuneSelf:
		return 49 + n
	case widest < 0x100:
		return 73 + n
	case widest < 0x10000:
		return 74 + 2*n
	}
	return 76 + 4*n
}
