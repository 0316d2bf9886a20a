package yaqljson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/internal/pyre"
	"github.com/drover-project/drover/yaql/internal/pytime"
)

// maxDepth bounds the nesting of values.
const maxDepth = 10000

// Decode reads one JSON value. Objects become *yaql.Dict, which keeps their order, and arrays []any.
func Decode(text []byte) (any, error) {
	d := decoder{tokens: json.NewDecoder(bytes.NewReader(text))}
	d.tokens.UseNumber()
	value, err := d.value(0)
	if err != nil {
		return nil, fmt.Errorf("at byte %d: %w", d.tokens.InputOffset(), err)
	}
	if _, err := d.tokens.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("at byte %d: there is more than one value", d.tokens.InputOffset())
	}
	return value, nil
}

type decoder struct{ tokens *json.Decoder }

func (d decoder) value(depth int) (any, error) {
	token, err := d.tokens.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	switch t := token.(type) {
	case json.Number:
		return number(string(t))
	case json.Delim:
		if t == '[' {
			return d.array(depth)
		}
		return d.object(depth)
	default:
		return t, nil
	}
}

func number(text string) (any, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, err
		}
		return f, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("%s is no number", text)
	}
	return n, nil
}

func (d decoder) array(depth int) (any, error) {
	items := []any{}
	for d.tokens.More() {
		item, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.tokens.Token()
	return items, err
}

func (d decoder) object(depth int) (any, error) {
	dict := yaql.NewDict(4)
	last, lastValue := "", any(nil)
	for d.tokens.More() {
		key, err := d.tokens.Token()
		if err != nil {
			return nil, err
		}
		last, _ = key.(string)
		if lastValue, err = d.value(depth + 1); err != nil {
			return nil, err
		}
		if err := dict.Set(last, lastValue); err != nil {
			return nil, err
		}
	}
	if _, err := d.tokens.Token(); err != nil {
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
