package yaql

import (
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/yaql/internal/pyre"
	"github.com/drover-project/drover/yaql/internal/pytime"
)

// large are values with which it shows what a function does that grows with its arguments. They are made once.
type large struct {
	texts, collections, keys, numbers, dicts, sets, patterns []any
}

func largeValues(t *testing.T) *large {
	t.Helper()
	const items, deep = 10_000, 20
	list, pairs, host := make([]any, items), make([]any, items), map[string]any{}
	d, keyed := NewDict(items), NewDict(2)
	for i := range items {
		word := fmt.Sprint("word", i)
		list[i], pairs[i], host[word] = int64(i), []any{int64(i), word}, int64(i)
		_ = d.Set(word, int64(i))
	}
	text := strings.Repeat("a", 1<<20)
	nested := []any{list, pairs, text}
	for range deep {
		nested = []any{nested}
	}
	_ = keyed.Set(nested, nested)
	_ = keyed.Set([]any{text}, text)
	set, err := NewSet(pairs...)
	if err != nil {
		t.Fatal(err)
	}
	hosted := make(stringSeq, items)
	huge := new(big.Int).Lsh(big.NewInt(3), 1<<21)
	huger := new(big.Int).Add(huge, big.NewInt(1))
	v := &large{
		texts:       []any{text, strings.Repeat("ä ", 1<<18), strings.Repeat("ab,", 1<<17), strings.Repeat("9", 1<<19)},
		collections: []any{list, pairs, &List{Items: pairs}, hosted, []any{text, text, huge}},
		keys:        []any{nested, []any{text}, huge, text, pairs},
		numbers:     []any{huge, huger, new(big.Int).Lsh(big.NewInt(5), 1<<20), int64(7), int64(300_000)},
		dicts:       []any{d, host, keyed},
		sets:        []any{set, &View{kind: itemsView, dict: d}, &View{kind: keysView, dict: host}},
	}
	for _, text := range []string{"a+", "(?=a)a", "(a)(b)?", strings.Repeat("(a?)", 50)} {
		re, err := pyre.Compile(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		v.patterns = append(v.patterns, re)
	}
	return v
}

// of are the values for a parameter; nil where there are none, or what it takes does not grow.
func (v *large) of(p *param, c *Context) []any {
	body := func(text string) *Lambda {
		x, err := testEngine.Compile(text)
		if err != nil {
			panic(err)
		}
		return &Lambda{code: x.slow.get(testEngine), c: c}
	}
	lazy := []any{&Iterator{src: &sliceSource{items: v.collections[1].([]any), run: c.run}, run: c.run}, &View{kind: valuesView, dict: v.dicts[1]}}
	switch p.typ {
	case tAny:
		return append(append(append([]any{}, v.keys...), v.dicts...), v.sets...)
	case tString:
		return v.texts
	case tInt, tInteger, tNumber:
		return v.numbers
	case tIterable, tUnordered:
		return append(append(lazy, v.collections...), v.sets...)
	case tIterator:
		return lazy[:1]
	case tSequence, tTuple:
		return v.collections
	case tMapping:
		return v.dicts
	case tSet:
		return v.sets
	case tOrdering:
		return []any{&ordering{c: c, coll: v.collections[1], keys: []orderKey{{selector: body("$[1]")}}}}
	case tRegex:
		return v.patterns
	case tRuleValue:
		return []any{Pair{Key: v.keys[0], Value: v.keys[0]}, Pair{Key: v.keys[1], Value: int64(1)}, Pair{Key: v.texts[0], Value: nil}}
	case tLambda:
		return []any{body("$"), body("true"), body("not $")}
	case tDateTime, tTime:
		d, _ := pytime.New(pytime.Fields{Year: 2020, Month: 2, Day: 3}, pytime.UTC())
		return []any{d}
	case tTimespan:
		return []any{pytime.Microseconds(5)}
	case tBool:
		return []any{true, false}
	case tNull:
		return []any{nil}
	}
	return nil
}

var testEngine, _ = New(StepBudget(budgetOfTest), AllowDelegates())

const budgetOfTest = 100_000

// cost is what a call has cost, and what was counted for it.
type cost struct {
	took  time.Duration // of the processor
	bytes uint64
	steps int64
}

// threadTime is how long this thread has had a processor.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	const thisThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// callOf calls a function with the values of a variant, and walks through what it gives.
func callOf(t *testing.T, e *Engine, fn *Function, v *large, variant int) (k cost, ok bool) {
	t.Helper()
	x := &Expression{engine: e}
	ev := x.begin(t.Context(), nil)
	c := &ev.c
	c.item, c.hasItem = v.collections[0], true
	var args []any
	params := fn.params
	if fn.variadic != nil {
		params = append(append([]param{}, params...), *fn.variadic, *fn.variadic)
	}
	for i := range params {
		values := v.of(&params[i], c)
		if len(values) == 0 {
			return k, false
		}
		// Each parameter goes through its values at a pace of its own.
		args = append(args, values[(variant+variant*i/2+i)%len(values)])
	}
	if fn.keywords != nil {
		args = append(args, []named(nil))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := threadTime(t)
	func() {
		var err error
		defer rescue(&err)
		var out any
		if out, err = fn.call(c, args); err == nil && isIterable(c.run.cfg, out) && !isSequence(out) {
			err = each(c, out, func(any) error { return nil })
		}
	}()
	k.took = threadTime(t) - begun
	runtime.ReadMemStats(&after)
	k.bytes, k.steps = after.TotalAlloc-before.TotalAlloc, budgetOfTest-c.run.steps
	return k, true
}

// TestWhatIsSpentIsInProportion calls every function of the library with large arguments: what a call takes, of time and of
// memory, is bounded by the steps that it counts.
func TestWhatIsSpentIsInProportion(t *testing.T) {
	if testing.Short() { // with the race detector all takes ten times as long
		t.Skip("times are measured")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const (
		freeTime, timeOfStep   = 4 * time.Millisecond, 8 * time.Microsecond // of a machine that others use: what is not counted takes a hundred times that
		freeBytes, bytesOfStep = 64 << 10, 3000
		variants               = 7
	)
	legacy, err := New(StepBudget(budgetOfTest), Legacy())
	if err != nil {
		t.Fatal(err)
	}
	v := largeValues(t)
	called := 0
	for _, e := range []*Engine{testEngine, legacy} {
		for _, fn := range e.lib.all {
			if e == legacy && fn.module != "legacy" {
				continue
			}
			for variant := range variants {
				within := func(k cost) bool {
					return k.took <= freeTime+time.Duration(k.steps)*timeOfStep && k.bytes <= freeBytes+uint64(k.steps)*bytesOfStep
				}
				k, ok := callOf(t, e, fn, v, variant)
				if !ok {
					continue
				}
				called++
				for try := 0; try < 4 && !within(k); try++ { // the collector of garbage may have had its turn
					if again, _ := callOf(t, e, fn, v, variant); again.took < k.took {
						k = again
					}
				}
				if !within(k) {
					t.Errorf("%s with variant %d of the arguments took %v and %d bytes for %d steps", fn.Signature(), variant, k.took, k.bytes, k.steps)
				}
			}
		}
	}
	if called < 1000 {
		t.Errorf("only %d calls were made", called)
	}
}
