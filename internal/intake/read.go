package intake

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/drover-project/drover/internal/fault"
)

// MaxDepth bounds how deep lists and objects of a text may be nested. What is in it has bounds of its own: an opcode (opcode.MaxDepth), a filter (qlang.MaxDepth).
const MaxDepth = 250

// Read reads a JSON text from outside into what a pointer leads to, as encoding/json does, and refuses what that would take without a word: a key
// that is there twice, a key that nothing has a meaning for, or that is written in other capitals than ours, strings that are no text, what follows
// the value, and lists and objects that are nested deeper than MaxDepth. The error has code fault.Invalid, and its field is the
// place: a key, or a path as "auth.identity.methods[1]".
//
// How many bytes and values there may be is for whoever takes the text in (CheckValues), who knows how much it has a use for.
func Read(text []byte, into any) error {
	return read(text, into, json.NewDecoder(bytes.NewReader(text)), false)
}

// ReadOpen is Read for a text that may hold more than is known here: of a newer program, or where Object says what becomes of all other keys. What is not
// known counts for nothing; a key in other capitals than one that is known is refused all the same.
func ReadOpen(text []byte, into any) error {
	return read(text, into, json.NewDecoder(bytes.NewReader(text)), true)
}

// ReadNumbers is Read that keeps the digits of numbers where they have no type.
func ReadNumbers(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return read(text, into, d, false)
}

func read(text []byte, into any, d *json.Decoder, open bool) error {
	if err := CheckText(text); err != nil {
		return err
	}
	w := walk{tokens: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)), open: open}
	err := w.value(reflect.TypeOf(into), "", 0)
	if err == nil {
		err = w.end()
	}
	if err != nil {
		return err
	}
	if err := d.Decode(into); err != nil {
		return unfit(err)
	}
	return nil
}

// unfit says which value of a JSON text is of another kind than is wanted. What it is may be a secret.
func unfit(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return fault.New(fault.Invalid, "%w", err)
	}
	at := ""
	if wrong.Field != "" {
		at = wrong.Field + ": "
	}
	kind, _, _ := strings.Cut(wrong.Value, " ") // a number is told with its digits
	return fault.New(fault.Invalid, "%s%s is not what is expected here", at, kind).At(wrong.Field)
}

// walk goes through a JSON text and what it is to be read into, side by side.
type walk struct {
	tokens *jsontext.Decoder
	open   bool
}

// end refuses what follows the value.
func (w *walk) end() error {
	if _, err := w.tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "there is more after the end of the JSON text")
	}
	return nil
}

// next reads a token.
func (w *walk) next() (jsontext.Token, error) {
	t, err := w.tokens.ReadToken()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return t, fault.New(fault.Invalid, "the JSON text ends too early")
	}
	if err != nil {
		return t, fault.New(fault.Invalid, "it is not JSON, at byte %d", w.tokens.InputOffset())
	}
	return t, nil
}

// value goes through a value at a place, which is to be read into a type; nil for one that nothing is known of.
func (w *walk) value(into reflect.Type, at string, depth int) error {
	t, err := w.next()
	if err != nil {
		return err
	}
	if kind := t.Kind(); kind != '{' && kind != '[' {
		return nil
	}
	if depth >= MaxDepth {
		return fault.New(fault.Invalid, "lists and objects are nested deeper than %d", MaxDepth).At(at)
	}
	if t.Kind() == '[' {
		return w.list(into, at, depth)
	}
	return w.object(into, at, depth)
}

func (w *walk) list(into reflect.Type, at string, depth int) error {
	var of reflect.Type
	if into = transparent(into); into != nil && (into.Kind() == reflect.Slice || into.Kind() == reflect.Array) {
		of = into.Elem()
	}
	for i := 0; w.tokens.PeekKind() != ']'; i++ {
		if err := w.value(of, at+"["+strconv.Itoa(i)+"]", depth+1); err != nil {
			return err
		}
	}
	_, err := w.next()
	return err
}

func (w *walk) object(into reflect.Type, at string, depth int) error {
	known := keysOf(into)
	seen := map[string]bool{}
	for w.tokens.PeekKind() != '}' {
		t, err := w.next()
		if err != nil {
			return err
		}
		key := t.String()
		place := key
		if at != "" {
			place = at + "." + key
		}
		place = fault.Clip(place, maxPlace)
		of, err := known.of(key, place, w.open)
		if err != nil {
			return err
		}
		if seen[of.name] {
			return fault.New(fault.Invalid, "the key '%s' is there twice", fault.Clip(of.name, maxKey)).At(place)
		}
		seen[of.name] = true
		if err := w.value(of.is, place, depth+1); err != nil {
			return err
		}
	}
	_, err := w.next()
	return err
}

// How much of a key, and of a place, an error repeats, in bytes.
const (
	maxKey   = 100
	maxPlace = 300
)

// keys are those that an object may have: fields of a struct by name, or any, with values of one type.
type keys struct {
	fields map[string]field
	any    reflect.Type
}

// field is what is known of a key: the name that it goes by, and the type of its value; nil if nothing is known of that.
type field struct {
	name string
	is   reflect.Type
}

// of returns what is known of a key at a place.
func (k keys) of(key, place string, open bool) (field, error) {
	if k.fields == nil {
		return field{key, k.any}, nil
	}
	if f, ok := k.fields[key]; ok {
		return f, nil
	}
	for known, f := range k.fields {
		if strings.EqualFold(known, key) {
			return f, fault.New(fault.Invalid, "the key '%s' is not written so", fault.Clip(key, maxKey)).At(place).WithHint("it is '%s'", f.name)
		}
	}
	if open {
		return field{key, nil}, nil
	}
	return field{}, fault.New(fault.Invalid, "the key '%s' means nothing here", fault.Clip(key, maxKey)).At(place)
}

// keysOf are the keys of an object that is to be read into a type.
func keysOf(into reflect.Type) keys {
	into = transparent(into)
	switch {
	case into == nil:
		return keys{}
	case into.Kind() == reflect.Map:
		return keys{any: into.Elem()}
	case into.Kind() != reflect.Struct:
		return keys{}
	}
	out := keys{fields: map[string]field{}}
	for _, f := range reflect.VisibleFields(into) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Tag.Get("json") == "-", f.Anonymous && name == "", !f.IsExported():
		case name != "":
			out.fields[name] = field{name, f.Type}
		default: // people write it in small letters, and encoding/json as Go does
			small := strings.ToLower(f.Name)
			out.fields[f.Name], out.fields[small] = field{small, f.Type}, field{small, f.Type}
		}
	}
	return out
}

// The ways in which a type reads itself.
var (
	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// transparent is a type behind its pointers; nil for one that reads itself, or says nothing of what it holds.
func transparent(t reflect.Type) reflect.Type {
	for t != nil {
		if t.Implements(readsJSON) || reflect.PointerTo(t).Implements(readsJSON) || t.Implements(readsText) || reflect.PointerTo(t).Implements(readsText) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}
