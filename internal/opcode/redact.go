package opcode

import "slices"

// redacted takes the place of a value that may not be stored or shown.
const redacted = "<redacted>"

// ForStore returns the opcode as it may be stored: secret values are
// replaced. An opcode without any is returned as it is.
func (o *Opcode) ForStore() *Opcode { return o.without(Secret) }

// ForDisplay returns the opcode as it may be shown to clients: private and
// secret values are replaced. An opcode without any is returned as it is.
func (o *Opcode) ForDisplay() *Opcode { return o.without(Private) }

// LostSecret returns the name of a parameter whose secret values are no longer
// there, because the opcode was read from a store; empty if there is none.
func (o *Opcode) LostSecret() string {
	d := o.Definition()
	if d == nil || d.secrecy < Secret {
		return ""
	}
	for i := range d.Params {
		if p := &d.Params[i]; lostSecret(p.Type, o.Params[p.Name]) {
			return p.Name
		}
	}
	return ""
}

func lostSecret(t Type, v any) bool {
	if t.Secrecy() < Secret {
		return false
	}
	if t.nested {
		return lostNested(v)
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return lostSecret(t.part(""), item) })
	case map[string]any:
		for k, item := range v {
			if lostSecret(t.part(k), item) {
				return true
			}
		}
	}
	return t.secrecy == Secret && v == redacted
}

func (o *Opcode) without(level Secrecy) *Opcode {
	d := o.Definition()
	if d == nil || d.secrecy < level {
		return o
	}
	out := o
	for i := range d.Params {
		p := &d.Params[i]
		v, ok := o.Params[p.Name]
		if !ok || p.Type.Secrecy() < level {
			continue
		}
		out = out.With(p.Name, redact(p.Type, v, level))
	}
	return out
}

// redact keeps the keys of objects, which tell which values were given.
func redact(t Type, v any, level Secrecy) any {
	if t.secrecy >= level {
		return redacted
	}
	if t.Secrecy() < level {
		return v
	}
	if t.nested {
		return redactNested(v, level)
	}
	switch v := v.(type) {
	case []any:
		return toList(v, func(item any) any { return redact(t.part(""), item, level) })
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = redact(t.part(k), item, level)
		}
		return out
	}
	return v
}

// part returns the type of the value under a key, or of a list's items.
func (t Type) part(key string) Type {
	if field, ok := t.fields[key]; ok {
		return field
	}
	if t.elem != nil {
		return *t.elem
	}
	return Any
}

// nestedSecrets are the keys of opcodes whose values are private or secret. The
// catalogue's tests hold them to the parameters of all opcodes.
var nestedSecrets = map[string]Secrecy{
	"osparams_private": Private, "osparams_private_cluster": Private, "osparams_secret": Secret,
}

// redactNested is redact for a value that holds whole opcodes.
func redactNested(v any, level Secrecy) any {
	switch v := v.(type) {
	case []any:
		return toList(v, func(item any) any { return redactNested(item, level) })
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if secrecy, ok := nestedSecrets[key]; ok && secrecy >= level {
				out[key] = redactAll(item)
			} else {
				out[key] = redactNested(item, level)
			}
		}
		return out
	}
	return v
}

// redactAll keeps nothing but the keys of an object.
func redactAll(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return redacted
	}
	out := make(map[string]any, len(m))
	for key := range m {
		out[key] = redacted
	}
	return out
}

func lostNested(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, lostNested)
	case map[string]any:
		for key, item := range v {
			if nestedSecrets[key] == Secret && holdsRedacted(item) || lostNested(item) {
				return true
			}
		}
	}
	return false
}

func holdsRedacted(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return v == redacted
	}
	for _, item := range m {
		if item == redacted {
			return true
		}
	}
	return false
}
