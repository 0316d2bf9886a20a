package cluster

import (
	"reflect"
	"slices"
	"strconv"
)

// sharer makes equal values of many objects one value in memory: most
// instances have the same few parameters, hypervisors, nodes and tags. This
// keeps a large inventory small, and what a scan looks at in the processor's
// cache. It is safe because objects of a snapshot are never altered.
type sharer struct {
	texts  map[string]string
	params map[string]Params
	key    []byte
}

func newSharer() *sharer {
	return &sharer{texts: map[string]string{}, params: map[string]Params{}}
}

func (s *sharer) object(o Object) {
	switch o := o.(type) {
	case *Instance:
		s.instance(o)
	case *Node:
		s.text(&o.Group)
		s.some(&o.NDParams)
		s.list(o.Tags)
	}
}

func (s *sharer) instance(i *Instance) {
	s.text(&i.PrimaryNode, &i.OS, &i.Hypervisor, &i.AdminState, &i.AdminStateSource)
	s.some(&i.HVParams, &i.BEParams, &i.OSParams, &i.OSParamsPrivate)
	s.list(i.Tags)
	for n := range i.NICs {
		s.text(&i.NICs[n].Network)
		s.some(&i.NICs[n].Params)
	}
	for n := range i.Disks {
		d := &i.Disks[n]
		s.text(&d.Type, &d.Mode, &d.IVName)
		s.some(&d.Params)
		s.list(d.Nodes)
	}
}

func (s *sharer) text(texts ...*string) {
	for _, t := range texts {
		shared, ok := s.texts[*t]
		if !ok {
			shared = *t
			s.texts[shared] = shared
		}
		*t = shared
	}
}

func (s *sharer) list(texts []string) {
	for i := range texts {
		s.text(&texts[i])
	}
}

func (s *sharer) some(params ...*Params) {
	for _, p := range params {
		*p = s.shared(*p)
	}
}

// shared returns the first parameters that were equal to p.
func (s *sharer) shared(p Params) Params {
	if p == nil || !s.flatKey(p) {
		return p
	}
	if known, ok := s.params[string(s.key)]; ok && reflect.DeepEqual(known, p) {
		return known
	}
	s.params[string(s.key)] = p
	return p
}

// flatKey makes a key of parameters whose values are plain; it reports false
// for others, which are rare and stay as they are.
func (s *sharer) flatKey(p Params) bool {
	var room [16]string
	names := room[:0]
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	s.key = s.key[:0]
	for _, name := range names {
		s.key = append(append(s.key, name...), 0)
		switch v := p[name].(type) {
		case nil:
			s.key = append(s.key, 'n')
		case bool:
			s.key = strconv.AppendBool(s.key, v)
		case int64:
			s.key = strconv.AppendInt(s.key, v, 10)
		case string:
			s.key = strconv.AppendQuote(s.key, v)
		default:
			return false
		}
		s.key = append(s.key, 0)
	}
	return true
}
