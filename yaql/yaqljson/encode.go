package yaqljson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/internal/pytext"
)

// Encode writes a result of an expression as JSON on one line. Maps of the host are sorted by key.
func Encode(value any) ([]byte, error) { return encode(value, false) }

// EncodeRaw is Encode for results that the engine was told not to convert: in them a []any is a tuple, and only
// *yaql.List is a list.
func EncodeRaw(value any) ([]byte, error) { return encode(value, true) }

// maxDepth bounds the nesting of values, here and in what Decode reads.
const maxDepth = 10000

func encode(value any, raw bool) ([]byte, error) {
	e := encoder{raw: raw}
	if err := e.value(value, 0); err != nil {
		return nil, err
	}
	return e.out.Bytes(), nil
}

type encoder struct {
	out bytes.Buffer
	raw bool
}

func (e *encoder) value(v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("values are nested more than %d deep", maxDepth)
	}
	switch x := v.(type) {
	case nil:
		e.out.WriteString("null")
	case bool:
		e.out.WriteString(strconv.FormatBool(x))
	case int64:
		e.out.Write(strconv.AppendInt(e.out.AvailableBuffer(), x, 10))
	case int:
		e.out.Write(strconv.AppendInt(e.out.AvailableBuffer(), int64(x), 10))
	case *big.Int:
		e.out.WriteString(x.String())
	case float64:
		e.float(x)
	case string:
		return e.string(x)
	case []any:
		if e.raw {
			return e.tagged("$tuple", x, depth)
		}
		return e.items(x, depth)
	case map[string]any:
		return e.hostMap(x, depth)
	default:
		return e.other(v, depth)
	}
	return nil
}

// other writes the kinds that are rarer.
func (e *encoder) other(v any, depth int) error {
	switch x := v.(type) {
	case yaql.Tuple:
		return e.tagged("$tuple", x, depth)
	case *yaql.List:
		return e.items(x.Items, depth)
	case *yaql.Dict:
		return e.dict(x, depth)
	case *yaql.Set:
		return e.set(x.Items(), depth)
	case yaql.DateTime:
		if err := x.Fault(); err != nil {
			return &yaql.Error{Class: yaql.ValueError, Message: err.Error(), Offset: -1}
		}
		return e.object("$datetime", x.ISOFormat())
	case yaql.Timespan:
		fmt.Fprintf(&e.out, `{"$timespan":%s}`, x.Total())
		return nil
	case *yaql.Regex:
		return e.regex(x)
	case yaql.Mapping:
		return e.mapping(x, depth)
	case yaql.Sequence:
		return e.sequence(x, depth)
	}
	return e.host(v, depth)
}

// host writes values of the host that the engine passed through, by way of their own JSON.
func (e *encoder) host(v any, depth int) error {
	if kind := opaqueKind(v); kind != "" {
		return e.object("$opaque", kind)
	}
	if t, ok := v.(time.Time); ok {
		return e.object("$datetime", t.Format("2006-01-02T15:04:05.999999Z07:00"))
	}
	text, err := json.Marshal(v)
	if err != nil {
		return e.object("$opaque", fmt.Sprintf("%T", v))
	}
	plain, err := Decode(text)
	if err != nil {
		return err
	}
	return e.value(plain, depth)
}

// opaqueKind names what cannot be written, or is empty.
func opaqueKind(v any) string {
	switch v.(type) {
	case *yaql.Context:
		return "context"
	case *yaql.Function, yaql.Pair:
		return "function"
	case complex128:
		return "complex"
	}
	if v == yaql.NoValue {
		return "noValue"
	}
	if strings.HasPrefix(fmt.Sprintf("%T", v), "*yaql.") {
		return "function"
	}
	return ""
}

func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		fmt.Fprintf(&e.out, `{"$float":%q}`, pytext.FormatFloat(f))
		return
	}
	e.out.WriteString(pytext.FormatFloat(f))
}

func (e *encoder) string(s string) error {
	w := json.NewEncoder(&e.out)
	w.SetEscapeHTML(false)
	if err := w.Encode(s); err != nil {
		return err
	}
	e.out.Truncate(e.out.Len() - 1) // the line end that an encoder adds
	return nil
}

func (e *encoder) object(key, value string) error {
	e.out.WriteString(`{"` + key + `":`)
	err := e.string(value)
	e.out.WriteByte('}')
	return err
}

func (e *encoder) tagged(key string, items []any, depth int) error {
	e.out.WriteString(`{"` + key + `":`)
	err := e.items(items, depth)
	e.out.WriteByte('}')
	return err
}

func (e *encoder) items(items []any, depth int) error {
	e.out.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			e.out.WriteByte(',')
		}
		if err := e.value(item, depth+1); err != nil {
			return err
		}
	}
	e.out.WriteByte(']')
	return nil
}

func (e *encoder) sequence(s yaql.Sequence, depth int) error {
	items := make([]any, s.Len())
	for i := range items {
		items[i] = s.At(i)
	}
	return e.items(items, depth)
}

// set sorts by the JSON of the items, so that equal sets have equal texts.
func (e *encoder) set(items []any, depth int) error {
	texts := make([]string, len(items))
	for i, item := range items {
		part := encoder{raw: e.raw}
		if err := part.value(item, depth+1); err != nil {
			return err
		}
		texts[i] = part.out.String()
	}
	slices.Sort(texts)
	e.out.WriteString(`{"$set":[` + strings.Join(texts, ",") + `]}`)
	return nil
}

func (e *encoder) hostMap(m map[string]any, depth int) error {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dict := yaql.NewDict(len(keys))
	for _, key := range keys {
		if err := dict.Set(key, m[key]); err != nil {
			return err
		}
	}
	return e.dict(dict, depth)
}

func (e *encoder) mapping(m yaql.Mapping, depth int) error {
	dict := yaql.NewDict(m.Len())
	var failed error
	m.Range(func(key, value any) bool {
		failed = dict.Set(key, value)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return e.dict(dict, depth)
}

// dict writes an object when all keys are plain strings, else a list of pairs.
func (e *encoder) dict(d *yaql.Dict, depth int) error {
	plain := true
	d.Range(func(key, _ any) bool {
		text, ok := key.(string)
		plain = ok && !strings.HasPrefix(text, "$")
		return plain
	})
	opening, between, closing := `{"$dict":[`, "],[", "]]}"
	if plain {
		opening, between, closing = "{", ",", "}"
	}
	if d.Len() == 0 {
		e.out.WriteString("{}")
		return nil
	}
	e.out.WriteString(opening)
	if !plain {
		e.out.WriteByte('[')
	}
	var failed error
	first := true
	d.Range(func(key, value any) bool {
		if !first {
			e.out.WriteString(between)
		}
		first = false
		failed = e.pair(key, value, plain, depth)
		return failed == nil
	})
	e.out.WriteString(closing)
	return failed
}

func (e *encoder) pair(key, value any, plain bool, depth int) error {
	if err := e.value(key, depth+1); err != nil {
		return err
	}
	if plain {
		e.out.WriteByte(':')
	} else {
		e.out.WriteByte(',')
	}
	return e.value(value, depth+1)
}

func (e *encoder) regex(r *yaql.Regex) error {
	e.out.WriteString(`{"$regex":{"pattern":`)
	if err := e.string(r.Pattern()); err != nil {
		return err
	}
	names := []any{}
	for _, f := range regexFlags {
		if r.Flags()&f.flag != 0 {
			names = append(names, f.name)
		}
	}
	e.out.WriteString(`,"flags":`)
	err := e.items(names, 0)
	e.out.WriteString("}}")
	return err
}
