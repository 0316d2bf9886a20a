package opcode

// redacted takes the place of a value that may not be stored or shown.
const redacted = "<redacted>"

// ForStore returns the opcode as it may be stored: secret values are
// replaced. An opcode without any is returned as it is.
func (o *Opcode) ForStore() *Opcode { return o.without(Secret) }

// ForDisplay returns the opcode as it may be shown to clients: private and
// secret values are replaced. An opcode without any is returned as it is.
func (o *Opcode) ForDisplay() *Opcode { return o.without(Private) }

func (o *Opcode) without(level Secrecy) *Opcode {
	d := o.Definition()
	if d == nil {
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
	m, ok := v.(map[string]any)
	if !ok || t.elem == nil {
		return v
	}
	out := make(map[string]any, len(m))
	for k, item := range m {
		out[k] = redact(*t.elem, item, level)
	}
	return out
}
