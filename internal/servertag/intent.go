package servertag

import "slices"

// Want adds tags to what is wanted. It reports which of them were not wanted
// before. What is wanted already stays as it is; but a change that was given up
// is tried anew. Errors are fault.BadTag, and fault.Conflict for a tag that an
// existing one excludes; nothing is changed then.
func (s Set) Want(p *Policy, ns Namespace, names []string, by Asked) (next Set, created []string, err error) {
	if err := p.check(ns, names); err != nil {
		return s, nil, err
	}
	next = s.clone()
	for _, name := range names {
		old := next.Find(ns, name)
		switch {
		case old != nil && old.Wanted && (old.Failure == nil || old.Seen == Present):
			continue
		case old == nil || !old.Wanted:
			if err := p.against(&s, ns, name); err != nil {
				return s, nil, err
			}
			created = append(created, name)
		}
		next.change(p, ns, name, true, by)
	}
	if len(created) > 0 {
		if err := p.full(&next, ns); err != nil {
			return s, nil, err
		}
	}
	return next, created, nil
}

// Unwant takes a tag out of what is wanted; false if it was not wanted.
func (s Set) Unwant(p *Policy, ns Namespace, name string, by Asked) (Set, bool) {
	if !s.Has(ns, name) {
		return s, false
	}
	next := s.clone()
	next.change(p, ns, name, false, by)
	return next, true
}

// Replace makes the names all that is wanted in a namespace. Tags that are
// wanted before and after are not touched. It is judged by its result: what goes
// excludes nothing.
func (s Set) Replace(p *Policy, ns Namespace, names []string, by Asked) (Set, error) {
	if err := p.check(ns, names); err != nil {
		return s, err
	}
	rest := s
	for _, t := range s.Wanted(ns) {
		if !slices.Contains(names, t.Name) {
			rest, _ = rest.Unwant(p, ns, t.Name, by)
		}
	}
	next, _, err := rest.Want(p, ns, names, by)
	if err != nil {
		return s, err
	}
	return next, nil
}

// change sets what is wanted of one tag, in a set that is not shared yet. What
// was seen of it counts no more: a job may be about to change it.
func (s *Set) change(p *Policy, ns Namespace, name string, wanted bool, by Asked) {
	t := Tag{Namespace: ns, Name: name, Raw: p.Prefixes.Raw(ns, name)}
	if old := s.Find(ns, name); old != nil {
		t = *old
	}
	s.Generation++
	t.Wanted, t.Generation, t.Asked = wanted, s.Generation, by
	t.Seen, t.Tries, t.Retry, t.Failure, t.Alone = Unknown, 0, 0, nil, false
	what := WasUnwanted
	if wanted {
		what = WasWanted
	}
	s.put(t.with(Event{Time: by.Time, What: what, Text: by.String()}))
}

// String says it for a person: "alice over compute, request req-1".
func (a Asked) String() string {
	text := a.User + " over " + a.Front
	if a.Request != "" {
		text += ", request " + a.Request
	}
	return text
}
