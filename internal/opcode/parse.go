package opcode

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Options says what Parse insists on.
type Options struct {
	// RequireReason refuses an opcode without the key "reason", as LUXI does;
	// otherwise the trail is then empty.
	RequireReason bool
}

// member is one key of an opcode's wire form.
type member struct {
	name  string
	value any
}

// Parse reads an opcode from its wire form and checks it. The error is a
// fault.Error with code Invalid whose Field names the parameter; its cause is
// a *ParamError unless the text is no JSON object at all.
func Parse(raw []byte, options Options) (*Opcode, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	members, err := readMembers(dec)
	if err == nil {
		err = expectEnd(dec)
	}
	if err != nil {
		return nil, syntaxFault("an opcode must be a JSON object", err)
	}
	return build(members, options)
}

// ParseValue reads any JSON value into the shapes that Params holds.
func ParseValue(raw []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	v, err := readValue(dec, 0)
	if err == nil {
		err = expectEnd(dec)
	}
	if err != nil {
		return nil, syntaxFault("not a JSON value", err)
	}
	return v, nil
}

// FromMap makes an opcode of an id and decoded parameters, own and common
// ones. Values may be of any Go type that JSON decoding yields, and of the
// plain Go types that mean the same ([]string, int, reason.Trail, ...).
func FromMap(id string, params map[string]any) (*Opcode, error) {
	members := make([]member, 1, len(params)+1)
	members[0] = member{"OP_ID", id}
	for _, name := range sortedKeys(params) {
		members = append(members, member{name, normalise(params[name])})
	}
	return build(members, Options{})
}

func syntaxFault(what string, err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	return fault.New(fault.Invalid, "%s: %w", what, err)
}

func readMembers(dec *jsontext.Decoder) ([]member, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if tok.Kind() != '{' {
		return nil, fault.New(fault.Invalid, "an opcode must be a JSON object, got %s", clip([]byte(tok.String())))
	}
	members := make([]member, 0, 12)
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if tok.Kind() == '}' {
			return members, nil
		}
		name := tok.String()
		value, err := readValue(dec, 0)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
}

func expectEnd(dec *jsontext.Decoder) error {
	_, err := dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fault.New(fault.Invalid, "there is more after the end of the JSON text")
}

// What an opcode may be. What is stored is read whatever its size.
const (
	// MaxBytes is how long the JSON text of one opcode from outside may be; whoever
	// takes it in checks it.
	MaxBytes = 1 << 20
	// MaxDepth bounds how deep lists and objects may be nested, so that no input
	// can exhaust the stack here or in whoever walks the value later.
	MaxDepth = 100
)

func readValue(dec *jsontext.Decoder, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fault.New(fault.Invalid, "lists and objects are nested deeper than %d", MaxDepth)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return readNumber(tok.String())
	case '[':
		return readList(dec, depth)
	}
	return readObject(dec, depth)
}

func readList(dec *jsontext.Decoder, depth int) (any, error) {
	list := []any{}
	for dec.PeekKind() != ']' {
		v, err := readValue(dec, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := dec.ReadToken()
	return list, err
}

func readObject(dec *jsontext.Decoder, depth int) (any, error) {
	m := map[string]any{}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		name := tok.String()
		if m[name], err = readValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return m, err
}

// readNumber gives an int64 for a whole number that fits, else a float64.
func readNumber(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the number %s is out of range", clip([]byte(text)))
	}
	return f, nil
}

// build checks the members against the catalogue. Of several faults it reports
// unknown parameters first, then wrong types, then missing parameters.
func build(members []member, options Options) (*Opcode, error) {
	d, err := definitionOf(members)
	if err != nil {
		return nil, err
	}
	op := &Opcode{ID: d.ID, Params: make(map[string]any, len(d.Params))}
	var wrong *ParamError
	reasonGiven := false
	for _, m := range members {
		if m.name == "OP_ID" {
			continue
		}
		p, own := d.Param(m.name)
		if !own {
			p = commonParam(m.name)
		}
		if p == nil {
			return nil, (&ParamError{Kind: Unknown, Opcode: d.ID, Param: m.name, Allowed: d.FieldNames()}).fault()
		}
		// A required parameter of type any may be null.
		if m.value == nil && !(p.Required && p.Type.name == Any.name) {
			continue
		}
		value, bad := p.Type.convert(m.value)
		switch {
		case bad != nil && wrong == nil:
			wrong = &ParamError{Kind: Mismatch, Opcode: d.ID, Param: m.name, Path: bad.path, Want: bad.want, Got: clip(appendValue(nil, bad.got))}
		case bad != nil:
		case own:
			op.Params[m.name] = value
		default:
			op.setCommon(m.name, value)
			reasonGiven = reasonGiven || m.name == "reason"
		}
	}
	if wrong != nil {
		return nil, wrong.fault()
	}
	if missing := op.fill(d); missing != "" {
		return nil, missingFault(d.ID, missing, members)
	}
	if options.RequireReason && !reasonGiven {
		return nil, missingFault(d.ID, "reason", members)
	}
	return op, nil
}

func definitionOf(members []member) (*Definition, error) {
	for _, m := range members {
		if m.name != "OP_ID" {
			continue
		}
		id, ok := m.value.(string)
		if !ok {
			return nil, (&ParamError{Kind: Mismatch, Opcode: "opcode", Param: "OP_ID", Want: String.name, Got: clip(appendValue(nil, m.value))}).fault()
		}
		if d, ok := Lookup(id); ok {
			return d, nil
		}
		return nil, (&ParamError{Kind: UnknownOpcode, Opcode: id, Param: "OP_ID"}).fault()
	}
	return nil, missingFault("", "OP_ID", members)
}

func missingFault(id, param string, members []member) error {
	given := make([]string, len(members))
	for i, m := range members {
		given[i] = m.name
	}
	return (&ParamError{Kind: Missing, Opcode: id, Param: param, Given: given}).fault()
}

func commonParam(name string) *Param {
	for i := range commonParams {
		if commonParams[i].Name == name {
			return &commonParams[i]
		}
	}
	return nil
}

// fill puts defaults in and returns the first required parameter that is not
// there.
func (o *Opcode) fill(d *Definition) (missing string) {
	for i := range d.Params {
		p := &d.Params[i]
		if _, ok := o.Params[p.Name]; ok {
			continue
		}
		switch {
		case p.Required:
			return p.Name
		case p.Default != nil:
			o.Params[p.Name] = fresh(p.Default)
		}
	}
	return ""
}

// fresh copies a default, so that two opcodes never share an object.
func fresh(v any) any {
	switch v.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return v
}

// setCommon stores a common parameter that its type has already converted.
func (o *Opcode) setCommon(name string, value any) {
	switch v := value.(type) {
	case bool:
		o.DryRun, o.dryRunGiven = v, true
	case string:
		o.Comment = &v
	case int64:
		if name == "priority" {
			o.Priority = int(v)
		} else {
			o.DebugLevel = int(v)
		}
	case []any:
		if name == "reason" {
			o.Reason = gather[reason.Entry](v)
		} else {
			o.Depends = gather[Dependency](v)
		}
	}
}

func gather[T any](list []any) []T {
	out := make([]T, 0, len(list))
	for _, item := range list {
		if t, ok := item.(T); ok {
			out = append(out, t)
		}
	}
	return out
}
