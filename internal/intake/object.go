package intake

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Object says of each key that an object of a request may have what becomes of it.
// What is not done is refused, or nobody would notice; also under keys that are not
// named here. A key that asks for nothing may always be there.
type Object map[string]Key

// Key is what becomes of one key. Of the zero value no wish is done.
type Key struct {
	// Done: what it asks for is done, or refused where it is read.
	Done bool
	// So are the values, as JSON, that ask for what is so anyway.
	So []string
	// Why tells who asks for something else what there is instead.
	Why string
	// In is the same of its value: an object, or a list of them. Without it the
	// value is not looked into.
	In Object
}

// Check refuses a JSON object that asks for something that is not done. The error
// has code fault.Invalid and names the key. What is no JSON is left to who decodes it.
func (o Object) Check(text []byte) error { return Key{Done: true, In: o}.Check("body", text) }

// Check refuses the value of a key, as Object does.
func (k Key) Check(name string, text []byte) error {
	value, err := decode(text)
	if err != nil {
		return nil //nolint:nilerr // who decodes it says so
	}
	return k.check(name, value)
}

func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

func (o Object) check(name string, value any) error {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := o.check(name, item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if _, known := o[key]; !known && o.resembles(key) {
				return fault.New(fault.Invalid, "Invalid input: '%s' is not written so", fault.Clip(key, 100)).At(key)
			}
			if err := o[key].check(key, v[key]); err != nil {
				return err
			}
		}
	default:
		if !nothing(value) {
			return fault.New(fault.Invalid, "Invalid input: '%s' must be an object", fault.Clip(name, 100)).At(name)
		}
	}
	return nil
}

// resembles reports whether a key is one of them but for capitals, which a decoder
// does not tell apart.
func (o Object) resembles(key string) bool {
	for known := range o {
		if strings.EqualFold(known, key) {
			return true
		}
	}
	return false
}

func (k Key) check(name string, value any) error {
	switch {
	case k.Done && k.In != nil:
		return k.In.check(name, value)
	case k.Done, nothing(value), slices.ContainsFunc(k.So, func(so string) bool { return same(so, value) }):
		return nil
	}
	err := fault.New(fault.Invalid, "Invalid input: '%s' asks for what is not done here", fault.Clip(name, 100)).At(name)
	if k.Why != "" {
		err = err.WithHint("%s", k.Why)
	}
	return err
}

// nothing reports whether a value asks for nothing, whatever its key is.
func nothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func same(text string, value any) bool {
	want, err := decode([]byte(text))
	return err == nil && reflect.DeepEqual(want, value)
}
