package yaqljson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/internal/pyre"
	"github.com/drover-project/drover/yaql/internal/pytime"
)

// Decode reads one JSON value. Objects become *yaql.Dict, which keeps their order, and arrays []any.
func Decode(text []byte) (any, error) { return decode(text, special) }

// DecodePlain is Decode for documents of maps, lists, texts and numbers that others write, too: {"$set": [1]} is a map like any other.
// What Encode writes of such documents is read as it was: {"$dict": [[key, value]]} for maps whose keys JSON, or Decode, would take
// for something else, and {"$float": "nan"}.
func DecodePlain(text []byte) (any, error) { return decode(text, plain) }

func decode(text []byte, special map[string]func(any) (any, error)) (any, error) {
	d := &decoder{
		special: special,
		Decoder: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		texts:   map[string]any{},
		shapes:  map[string]*yaql.Keys{},
	}
	value, err := d.value()
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("at byte %d: there is more than one value", d.InputOffset())
	}
	return value, nil
}

// decoder reads one document. Documents repeat their short texts and have many objects with the same keys; each
// text and each row of keys is kept once, so that a large document is small and quick to search.
type decoder struct {
	*jsontext.Decoder
	special map[string]func(any) (any, error) // the objects of one key that stand for something else
	texts   map[string]any                    // by how they are written
	shapes  map[string]*yaql.Keys             // by the keys, each with its length before it
	shape   []byte                            // the keys of the object at hand, likewise
	stack   []any                             // keys and values of the objects and arrays that are not at their end
}

const (
	sharedLength = 32   // texts up to this length, in bytes as written, are kept once
	maxShared    = 4096 // as many different texts and rows of keys
)

// text reads a string.
func (d *decoder) text() (any, error) {
	quoted, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	if shared, ok := d.texts[string(quoted)]; ok {
		return shared, nil
	}
	unquoted, _ := jsontext.AppendUnquote(nil, quoted) // that is not UTF-8 is replaced
	v := any(string(unquoted))
	if len(quoted) <= sharedLength && len(d.texts) < maxShared {
		d.texts[string(quoted)] = v
	}
	return v, nil
}

func (d *decoder) value() (any, error) {
	switch d.PeekKind() {
	case '[':
		return d.array()
	case '{':
		return d.object()
	case '"':
		return d.text()
	case '0':
		text, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		return number(text)
	}
	token, err := d.ReadToken()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if token.Kind() == 'n' {
		return nil, nil
	}
	return token.Bool(), nil
}

func number(text []byte) (any, error) {
	if bytes.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, nil
	}
	n, ok := new(big.Int).SetString(string(text), 10)
	if !ok {
		return nil, fmt.Errorf("%s is no number", text)
	}
	return n, nil
}

func (d *decoder) array() (any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	start := len(d.stack)
	for d.PeekKind() != ']' {
		item, err := d.value()
		if err != nil {
			return nil, err
		}
		d.stack = append(d.stack, item)
	}
	items := append([]any{}, d.stack[start:]...)
	d.drop(start)
	_, err := d.ReadToken()
	return items, err
}

func (d *decoder) object() (any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	start := len(d.stack)
	for d.PeekKind() != '}' {
		key, err := d.text()
		if err != nil {
			return nil, err
		}
		d.stack = append(d.stack, key)
		value, err := d.value()
		if err != nil {
			return nil, err
		}
		d.stack = append(d.stack, value)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	pairs := d.stack[start:]
	defer d.drop(start)
	if len(pairs) == 2 {
		name, _ := pairs[0].(string)
		if read, ok := d.special[name]; ok {
			value, err := read(pairs[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return value, nil
		}
	}
	return d.dict(pairs)
}

// drop takes what is above start off the stack, and lets go of it.
func (d *decoder) drop(start int) {
	clear(d.stack[start:])
	d.stack = d.stack[:start]
}

// dict makes a map of keys and values that take turns.
func (d *decoder) dict(pairs []any) (*yaql.Dict, error) {
	d.shape = d.shape[:0]
	for i := 0; i < len(pairs); i += 2 {
		key := pairs[i].(string)
		d.shape = append(binary.AppendUvarint(d.shape, uint64(len(key))), key...)
	}
	keys, ok := d.shapes[string(d.shape)]
	if !ok {
		names := make([]any, 0, len(pairs)/2)
		for i := 0; i < len(pairs); i += 2 {
			names = append(names, pairs[i])
		}
		var err error
		if keys, err = yaql.NewKeys(names...); err != nil {
			return repeatedKeys(pairs)
		}
		if len(d.shapes) < maxShared {
			d.shapes[string(d.shape)] = keys
		}
	}
	values := make([]any, 0, len(pairs)/2)
	for i := 1; i < len(pairs); i += 2 {
		values = append(values, pairs[i])
	}
	return keys.Dict(values)
}

// repeatedKeys makes a map of pairs in which the last one of a key counts.
func repeatedKeys(pairs []any) (*yaql.Dict, error) {
	dict := yaql.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		if err := dict.Set(pairs[i], pairs[i+1]); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

// special reads the kinds that JSON lacks.
var special = map[string]func(any) (any, error){
	"$float":    readFloat,
	"$set":      readSet,
	"$tuple":    readTuple,
	"$dict":     readDict,
	"$datetime": readDateTime,
	"$timespan": readTimespan,
	"$regex":    readRegex,
	"$opaque":   func(any) (any, error) { return nil, errors.New("an opaque value cannot be read") },
}

// plain are those without which a document of maps, lists, texts and numbers cannot be written.
var plain = map[string]func(any) (any, error){"$float": readFloat, "$dict": readDict}

var errShape = errors.New("the value has the wrong form")

func readFloat(v any) (any, error) {
	switch v {
	case "nan":
		return math.NaN(), nil
	case "inf":
		return math.Inf(1), nil
	case "-inf":
		return math.Inf(-1), nil
	}
	return nil, errShape
}

func readSet(v any) (any, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, errShape
	}
	return yaql.NewSet(items...)
}

func readTuple(v any) (any, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, errShape
	}
	return yaql.Tuple(items), nil
}

func readDict(v any) (any, error) {
	pairs, ok := v.([]any)
	if !ok {
		return nil, errShape
	}
	dict := yaql.NewDict(len(pairs))
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return nil, errShape
		}
		if err := dict.Set(pair[0], pair[1]); err != nil {
			return nil, err
		}
	}
	return dict, nil
}

func readDateTime(v any) (any, error) {
	text, ok := v.(string)
	if !ok {
		return nil, errShape
	}
	return pytime.ParseISO(text)
}

func readTimespan(v any) (any, error) {
	switch n := v.(type) {
	case int64:
		return pytime.Microseconds(n), nil
	case *big.Int:
		return pytime.SpanOf(n)
	}
	return nil, errShape
}

var regexFlags = []struct {
	name string
	flag pyre.Flags
}{{"ignoreCase", pyre.IgnoreCase}, {"multiLine", pyre.MultiLine}, {"dotAll", pyre.DotAll}}

func readRegex(v any) (any, error) {
	dict, ok := v.(*yaql.Dict)
	if !ok {
		return nil, errShape
	}
	p, _ := dict.Get("pattern")
	pattern, ok := p.(string)
	if !ok {
		return nil, errShape
	}
	var flags pyre.Flags
	names, _ := dict.Get("flags")
	list, _ := names.([]any)
	for _, name := range list {
		flag, err := regexFlag(name)
		if err != nil {
			return nil, err
		}
		flags |= flag
	}
	return pyre.Compile(pattern, flags)
}

func regexFlag(name any) (pyre.Flags, error) {
	for _, f := range regexFlags {
		if f.name == name {
			return f.flag, nil
		}
	}
	return 0, fmt.Errorf("%v is no flag of a regular expression", name)
}
