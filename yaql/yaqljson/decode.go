package yaqljson

import (
	"bytes"
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
func Decode(text []byte) (any, error) {
	d := decoder{jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	value, err := d.value()
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("at byte %d: there is more than one value", d.InputOffset())
	}
	return value, nil
}

type decoder struct{ *jsontext.Decoder }

func (d decoder) value() (any, error) {
	switch d.PeekKind() {
	case '[':
		return d.array()
	case '{':
		return d.object()
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
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
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

func (d decoder) array() (any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	items := []any{}
	for d.PeekKind() != ']' {
		item, err := d.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.ReadToken()
	return items, err
}

// usualKeys is room for as many keys as most objects have.
const usualKeys = 8

func (d decoder) object() (any, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	dict := yaql.NewDict(usualKeys)
	last, lastValue := "", any(nil)
	for d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		last = key.String()
		if lastValue, err = d.value(); err != nil {
			return nil, err
		}
		if err := dict.Set(last, lastValue); err != nil {
			return nil, err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	read, ok := special[last]
	if !ok || dict.Len() != 1 {
		return dict, nil
	}
	value, err := read(lastValue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", last, err)
	}
	return value, nil
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
