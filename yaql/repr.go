package yaql

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/drover-project/drover/yaql/internal/pyre"
	"github.com/drover-project/drover/yaql/internal/pytext"
)

// text is the text of v as str() and join() write it.
func (r *run) text(v any) (string, error) {
	switch x := v.(type) {
	case nil:
		return "null", nil
	case string:
		return x, nil
	case bool:
		if x {
			return "true", nil
		}
		return "false", nil
	case *big.Int:
		s, err := pytext.FormatBigInt(x)
		if err != nil {
			return "", errorf(ValueError, "%s", err)
		}
		return s, nil
	case DateTime:
		return x.String(), dateFault(x)
	case noValueType:
		return "", errorf(NoMatchingFunctionException, "No function \"str\" matches supplied arguments")
	case Timespan:
		return x.String(), nil
	}
	return r.repr(v), nil
}

// repr is the text of v in the notation of the reference's host language.
func repr(v any) string { return (*run)(nil).repr(v) }

func (r *run) repr(v any) string {
	var b strings.Builder
	writeRepr(&b, v, textWalk(r))
	return b.String()
}

// writeRepr appends the text of v.
func writeRepr(b *strings.Builder, v any, w *walk) {
	switch x := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if x {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		fmt.Fprint(b, x)
	case *big.Int:
		writeBig(b, x, w)
	case float64:
		b.WriteString(pytext.FormatFloat(x))
	case complex128:
		writeComplex(b, x)
	case string:
		w.writes(len(x))
		b.WriteString(pytext.Quote(x))
	case []any:
		writeTuple(b, x, w)
	case *List:
		b.WriteByte('[')
		writeItems(b, x.Items, w)
		b.WriteByte(']')
	case *Set:
		writeSet(b, x, w)
	case *View:
		writeView(b, x, w)
	case map[string]any, *Dict, Mapping:
		writeDict(b, v, w)
	case intRange:
		fmt.Fprintf(b, "range(%d, %d)", x.start, x.start+x.count)
	case Sequence:
		items, _ := seqItems(x)
		writeTuple(b, items, w)
	case DateTime:
		b.WriteString(x.Repr())
	case Timespan:
		b.WriteString(x.Repr())
	case *Regex:
		writeRegex(b, x, w)
	case Pair:
		writeRepr(b, x.Key, w)
		b.WriteString("=>")
		writeRepr(b, x.Value, w)
	case *Iterator:
		writeIterator(b, x, w)
	default:
		writeOpaque(b, v)
	}
}

func writeBig(b *strings.Builder, x *big.Int, w *walk) {
	w.payer().multiplies(x.BitLen(), x.BitLen())
	w.writes(x.BitLen() / 3) //nolint:mnd // bits of a decimal digit
	fmt.Fprint(b, x)
}

// writeIterator shows what the reference shows of lazy values without an address.
func writeIterator(b *strings.Builder, it *Iterator, w *walk) {
	switch src := it.src.(type) {
	case *repeater:
		b.WriteString("repeat(")
		writeRepr(b, src.value, w)
		if src.left >= 0 {
			fmt.Fprintf(b, ", %d", src.left)
		}
		b.WriteString(")")
	case *counter:
		b.WriteString("count(")
		writeRepr(b, src.at, w)
		if src.step != int64(1) {
			b.WriteString(", ")
			writeRepr(b, src.step, w)
		}
		b.WriteString(")")
	default:
		b.WriteString("<generator object>")
	}
}

// shownPattern is how many characters of a pattern are written.
const shownPattern = 200

func writeRegex(b *strings.Builder, r *Regex, w *walk) {
	w.pays(len(r.Pattern()) / bytesOfStep)
	pattern := []rune(pytext.Quote(r.Pattern()))
	b.WriteString("re.compile(" + string(pattern[:min(len(pattern), shownPattern)]))
	separator := ", "
	for _, f := range []struct {
		flag pyre.Flags
		name string
	}{{IgnoreCase, "IGNORECASE"}, {MultiLine, "MULTILINE"}, {DotAll, "DOTALL"}, {pyre.Verbose, "VERBOSE"}} {
		if r.Flags()&f.flag != 0 {
			b.WriteString(separator + "re." + f.name)
			separator = "|"
		}
	}
	b.WriteString(")")
}

func writeOpaque(b *strings.Builder, v any) {
	switch v.(type) {
	case *memo:
		b.WriteString("<generator object>")
	case *ordering:
		b.WriteString("<ordered collection>")
	case *Context:
		b.WriteString("<context>")
	case *callable, *Function:
		b.WriteString("<function>")
	case noValueType:
		b.WriteString("<NoValue>")
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

func writeComplex(b *strings.Builder, x complex128) {
	im := strings.TrimSuffix(pytext.FormatFloat(imag(x)), ".0") + "j"
	re := strings.TrimSuffix(pytext.FormatFloat(real(x)), ".0")
	switch {
	case real(x) == 0:
		b.WriteString(im)
	case strings.HasPrefix(im, "-"):
		b.WriteString("(" + re + im + ")")
	default:
		b.WriteString("(" + re + "+" + im + ")")
	}
}

func writeItems(b *strings.Builder, items []any, w *walk) {
	w.enter(len(items))
	defer w.leave()
	for i, x := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		writeRepr(b, norm(x), w)
	}
}

func writeTuple(b *strings.Builder, items []any, w *walk) {
	b.WriteByte('(')
	writeItems(b, items, w)
	if len(items) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
}

func writeSet(b *strings.Builder, s *Set, w *walk) {
	if s.Len() == 0 {
		b.WriteString("frozenset()")
		return
	}
	b.WriteString("frozenset({")
	writeItems(b, s.Items(), w)
	b.WriteString("})")
}

func writeView(b *strings.Builder, v *View, w *walk) {
	b.WriteString(typeName(v))
	b.WriteByte('(')
	if isHashableDict(v.dict) {
		writeDict(b, v.dict, w)
	} else {
		b.WriteByte('[')
		writeItems(b, v.Items(), w)
		b.WriteByte(']')
	}
	b.WriteByte(')')
}

func writeDict(b *strings.Builder, d any, w *walk) {
	w.enter(dictLen(d))
	defer w.leave()
	b.WriteByte('{')
	first := true
	dictRange(d, func(k, x any) bool {
		if !first {
			b.WriteString(", ")
		}
		first = false
		writeRepr(b, k, w)
		b.WriteString(": ")
		writeRepr(b, x, w)
		return true
	})
	b.WriteByte('}')
}
