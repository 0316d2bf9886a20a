package qlang

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// maxValues is how many JSON values a filter may hold.
const maxValues = 100_000

// ParseJSON reads the JSON form of a filter. An error has code Invalid (or
// TooLarge, over a limit), the reference's reason as its message, and as its
// Field the place of the fault as a path ("[1][2]", "" for the whole filter).
func ParseJSON(data []byte) (Node, error) {
	if len(data) > MaxBytes {
		return nil, tooLong(len(data))
	}
	if err := intake.CheckValues(data, maxValues); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fault.New(fault.Invalid, "the filter is not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fault.New(fault.Invalid, "the filter is not JSON: there is more behind its end")
	}
	return FromValue(v)
}

// FromValue reads a filter from decoded JSON: nil, string, []any and the
// number types json.Number, int, int64 and float64. Its errors are those of
// ParseJSON.
func FromValue(v any) (Node, error) {
	return readNode(v, "", room{levels: MaxDepth, patterns: &allowance{left: maxProgram}})
}

// room is how much more a filter may hold: levels below a node, and patterns in
// the whole of it.
type room struct {
	levels   int
	patterns *allowance
}

func (r room) deeper() room {
	r.levels--
	return r
}

func tooLong(n int) error {
	return fault.New(fault.TooLarge, "the filter has %d bytes; the limit is %d", n, MaxBytes)
}

func tooDeep() *fault.Error {
	return fault.New(fault.TooLarge, "the filter is nested too deep; the limit is %d levels", MaxDepth)
}

func invalid(path, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, format, args...).At(path)
}

// A reader turns the operands of one operator into a node.
type reader func(op, path string, args []any, left room) (Node, error)

func readers(op string) reader {
	switch op {
	case "&", "|":
		return readMany
	case "!":
		return readNot
	case "?":
		return readTrue
	case "==", "=", "!=", "<", "<=", ">", ">=":
		return readCompare
	case "=~":
		return readMatch
	case "=[]":
		return readContains
	case "missing":
		return readMissing
	}
	return nil
}

func readNode(v any, path string, left room) (Node, error) {
	if v == nil {
		return &All{}, nil
	}
	if left.levels == 0 {
		return nil, tooDeep().At(path)
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, notFilter(v, path)
	}
	op, ok := list[0].(string)
	if !ok {
		return nil, notFilter(v, path)
	}
	read := readers(op)
	if read == nil {
		return nil, unknownOperator(op, path)
	}
	return read(op, path, list[1:], left)
}

func notFilter(v any, path string) error {
	return invalid(path, "Cannot deserialise filter: expected array [string, args], got %s", show(v))
}

// otherSpellings maps what people write for an operator to the operator.
var otherSpellings = map[string]string{
	"and": "&", "&&": "&", "or": "|", "||": "|", "not": "!", "===": "==", "eq": "==", "<>": "!=", "ne": "!=",
	"=<": "<=", "=>": ">=", "~": "=~", "~=": "=~", "match": "=~", "in": "=[]",
}

func unknownOperator(op, path string) error {
	err := invalid(step(path, 0), "Unknown filter operand '%s'", op)
	switch {
	case op == "=*" || op == "!*":
		return err.WithHint("globs exist in text filters only; use =~ with a regular expression")
	case op == "!~":
		return err.WithHint(`write ["!", ["=~", field, pattern]]`)
	case otherSpellings[op] != "":
		return err.WithHint("did you mean %q?", otherSpellings[op])
	}
	return err
}

func readMany(op, path string, args []any, left room) (Node, error) {
	nodes := make([]Node, len(args))
	for i, arg := range args {
		n, err := readNode(arg, step(path, i+1), left.deeper())
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	if op == "&" {
		return &And{Args: nodes}, nil
	}
	return &Or{Args: nodes}, nil
}

func readNot(_, path string, args []any, left room) (Node, error) {
	if len(args) != 1 {
		return nil, invalid(path, "Cannot deserialise field, expected [filter] but got %s", show(args))
	}
	n, err := readNode(args[0], step(path, 1), left.deeper())
	if err != nil {
		return nil, err
	}
	return &Not{Arg: n}, nil
}

func readTrue(_, path string, args []any, _ room) (Node, error) {
	if len(args) != 1 {
		return nil, invalid(path, "Cannot deserialise field, expected [fieldname] but got %s", show(args))
	}
	field, err := readString(args[0], step(path, 1))
	if err != nil {
		return nil, err
	}
	return &True{Field: field}, nil
}

func readMissing(_, path string, args []any, _ room) (Node, error) {
	if len(args) != 1 {
		return nil, invalid(path, "Cannot deserialise field, expected [fieldname] but got %s", show(args))
	}
	field, err := readString(args[0], step(path, 1))
	if err != nil {
		return nil, err
	}
	return &Missing{Field: field}, nil
}

func readCompare(op, path string, args []any, _ room) (Node, error) {
	field, value, err := readPair(path, args)
	if err != nil {
		return nil, err
	}
	if op == "=" {
		op = string(Eq)
	}
	return &Compare{Op: Op(op), Field: field, Value: value}, nil
}

func readContains(_, path string, args []any, _ room) (Node, error) {
	field, value, err := readPair(path, args)
	if err != nil {
		return nil, err
	}
	return &Contains{Field: field, Value: value}, nil
}

func readMatch(_, path string, args []any, left room) (Node, error) {
	field, err := readField(path, args)
	if err != nil {
		return nil, err
	}
	pattern, err := readString(args[1], step(path, 2))
	if err != nil {
		return nil, err
	}
	re, err := left.patterns.compile(pattern)
	if large, ok := errors.AsType[*fault.Error](err); ok {
		return nil, large.At(step(path, 2))
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err).At(step(path, 2))
	}
	return &Match{Field: field, Regex: re}, nil
}

func readPair(path string, args []any) (string, Value, error) {
	field, err := readField(path, args)
	if err != nil {
		return "", Value{}, err
	}
	value, err := readValue(args[1], step(path, 2))
	return field, value, err
}

func readField(path string, args []any) (string, error) {
	if len(args) != 2 {
		return "", invalid(path, "Cannot deserialise field/value pair, expected [fieldname, value] but got %s", show(args))
	}
	return readString(args[0], step(path, 1))
}

func readString(v any, path string) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", invalid(path, "Unable to read String").WithHint("got %s", show(v))
	}
	return s, nil
}

func readValue(v any, path string) (Value, error) {
	switch x := v.(type) {
	case string:
		return TextValue(x), nil
	case int:
		return IntValue(int64(x)), nil
	case int64:
		return IntValue(x), nil
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			break
		}
		return readNumber(strconv.FormatFloat(x, 'g', -1, 64), path)
	case json.Number:
		return readNumber(x.String(), path)
	}
	err := invalid(path, "Cannot deserialise filter value, expecting string or integer, got %s", show(v))
	if _, truth := v.(bool); truth {
		err = err.WithHint(`a truth value is tested by ["?", FIELD]`)
	}
	return Value{}, err
}

// readNumber accepts integers of any length and everything else that is whole,
// such as 5.0 or 1e3.
func readNumber(text, path string) (Value, error) {
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return Value{Int: n}, nil
	}
	// A huge exponent would make a number of as many digits.
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || e > 400 || e < -400) {
		return Value{}, invalid(path, "Cannot deserialise numeric filter value, the exponent of %s is out of range", clip(text))
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return Value{}, invalid(path, "Cannot deserialise filter value, expecting string or integer, got %s", clip(text))
	}
	if !r.IsInt() {
		return Value{}, invalid(path, "Cannot deserialise numeric filter value, expecting integral but got a fractional value: %s %% %s", clip(r.Num().String()), clip(r.Denom().String())).
			WithHint("values are compared with whole numbers")
	}
	return Value{Int: r.Num()}, nil
}

// show writes decoded JSON for an error message, as the reference spaces it,
// and shortens what is long.
func show(v any) string {
	var b strings.Builder
	showTo(&b, v)
	return clip(b.String())
}

const showLimit = 300

func showTo(b *strings.Builder, v any) {
	if b.Len() > showLimit {
		return
	}
	switch x := v.(type) {
	case []any:
		b.WriteByte('[')
		for i, e := range x {
			if i > 0 {
				b.WriteString(", ")
			}
			showTo(b, e)
		}
		b.WriteByte(']')
	default:
		b.Write(plainJSON(v))
	}
}

func clip(s string) string {
	if len(s) <= showLimit {
		return s
	}
	return strings.ToValidUTF8(s[:showLimit], "") + "..."
}

// plainJSON encodes without the escapes that json.Marshal adds for HTML.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null") // not reached: only JSON values come here
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// JSON returns the JSON form of a filter, compact.
func JSON(n Node) json.RawMessage { return appendNode(nil, n) }

func appendNode(b []byte, n Node) []byte {
	switch x := n.(type) {
	case *And:
		return appendMany(append(b, `["&"`...), x.Args)
	case *Or:
		return appendMany(append(b, `["|"`...), x.Args)
	case *Not:
		return appendMany(append(b, `["!"`...), []Node{x.Arg})
	case *True:
		return append(appendString(append(b, `["?",`...), x.Field), ']')
	case *Missing:
		return append(appendString(append(b, `["missing",`...), x.Field), ']')
	case *Compare:
		b = append(append(append(b, `["`...), x.Op...), `",`...)
		return appendPair(b, x.Field, x.Value)
	case *Match:
		b = appendString(append(b, `["=~",`...), x.Field)
		return append(appendString(append(b, ','), x.Regex.Pattern()), ']')
	case *Contains:
		return appendPair(append(b, `["=[]",`...), x.Field, x.Value)
	}
	return append(b, "null"...)
}

func appendMany(b []byte, args []Node) []byte {
	for _, a := range args {
		b = appendNode(append(b, ','), a)
	}
	return append(b, ']')
}

func appendPair(b []byte, field string, v Value) []byte {
	b = appendString(b, field)
	return append(v.appendJSON(append(b, ',')), ']')
}

func (v Value) appendJSON(b []byte) []byte {
	if v.IsInt() {
		return v.Int.Append(b, 10)
	}
	return appendString(b, v.Text)
}

func appendString(b []byte, s string) []byte { return append(b, plainJSON(s)...) }
