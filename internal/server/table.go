package server

import (
	"iter"

	"github.com/tidwall/btree"
)

// Table holds servers by id, with an index by number, by instance and by
// project. Its changes are not safe for concurrent use; Copy makes a picture
// that may be read from any number of goroutines while the original goes on. A
// copy costs the same at any size.
type Table struct {
	byID     *btree.Map[string, *Server]
	byNumber *btree.Map[int64, *Server]
	// byInstance has those whose instance is known, by its UUID, and byName all of them by
	// what it was called last: names are for whoever tells nothing better.
	byInstance *btree.Map[string, *Server]
	byName     *btree.BTreeG[called]
	byProject  *btree.BTreeG[owned]
}

// place is the key of an instance of a cluster. No name has a NUL.
func place(backend, instance string) string { return backend + "\x00" + instance }

// called is a place in the list of the servers of a name on a cluster.
type called struct{ place, id string }

// owned is a place in the list of a project's servers, the newest first.
type owned struct {
	project string
	number  int64
}

// NewTable returns a table of servers.
func NewTable(servers ...*Server) *Table {
	unlocked := btree.Options{NoLocks: true}
	t := &Table{byID: &btree.Map[string, *Server]{}, byNumber: &btree.Map[int64, *Server]{}, byInstance: &btree.Map[string, *Server]{},
		byName: btree.NewBTreeGOptions(func(a, b called) bool {
			return a.place < b.place || a.place == b.place && a.id < b.id
		}, unlocked),
		byProject: btree.NewBTreeGOptions(func(a, b owned) bool {
			return a.project < b.project || a.project == b.project && a.number > b.number
		}, unlocked)}
	for _, s := range servers {
		t.Put(s)
	}
	return t
}

// Copy returns the table as it is now.
func (t *Table) Copy() *Table {
	return &Table{byID: t.byID.Copy(), byNumber: t.byNumber.Copy(), byInstance: t.byInstance.Copy(), byName: t.byName.Copy(), byProject: t.byProject.Copy()}
}

// Put sets a server, in place of the one with its id. Its number, cluster and project
// never change.
func (t *Table) Put(s *Server) {
	if old, replaced := t.byID.Set(s.ID, s); replaced && old.Ref() != s.Ref() {
		t.forgetInstance(old)
	}
	t.byNumber.Set(s.Number, s)
	if s.UUID != "" {
		t.byInstance.Set(place(s.Backend, s.UUID), s)
	}
	t.byName.Set(called{place(s.Backend, s.Instance), s.ID})
	t.byProject.Set(owned{s.Project, s.Number})
}

// Remove takes a server out.
func (t *Table) Remove(id string) {
	s, found := t.byID.Delete(id)
	if !found {
		return
	}
	t.byNumber.Delete(s.Number)
	t.forgetInstance(s)
	t.byProject.Delete(owned{s.Project, s.Number})
}

// forgetInstance takes a server out of the lists of instances.
func (t *Table) forgetInstance(s *Server) {
	if at, _ := t.byInstance.Get(place(s.Backend, s.UUID)); at != nil && at.ID == s.ID {
		t.byInstance.Delete(place(s.Backend, s.UUID))
	}
	t.byName.Delete(called{place(s.Backend, s.Instance), s.ID})
}

// Len is how many there are.
func (t *Table) Len() int { return t.byID.Len() }

// Get finds a server by id; nil if there is none.
func (t *Table) Get(id string) *Server { s, _ := t.byID.Get(id); return s }

// Numbered finds a server by number; nil if there is none.
func (t *Table) Numbered(n int64) *Server { s, _ := t.byNumber.Get(n); return s }

// At finds the server that an instance is, by its UUID; nil if it is none.
func (t *Table) At(backend, uuid string) *Server {
	s, _ := t.byInstance.Get(place(backend, uuid))
	return s
}

// Called returns the servers whose instance had a name when it was seen last, or is to get it: the one that it is now may be
// any of them, or none.
func (t *Table) Called(backend, name string) iter.Seq[*Server] {
	first := called{place: place(backend, name)}
	return func(yield func(*Server) bool) {
		t.byName.Ascend(first, func(c called) bool { return c.place == first.place && yield(t.Get(c.id)) })
	}
}

// All returns all servers, by id.
func (t *Table) All() iter.Seq[*Server] {
	return func(yield func(*Server) bool) {
		t.byID.Scan(func(_ string, s *Server) bool { return yield(s) })
	}
}

// Numbers returns all servers, by number.
func (t *Table) Numbers() iter.Seq[*Server] {
	return func(yield func(*Server) bool) {
		t.byNumber.Scan(func(_ int64, s *Server) bool { return yield(s) })
	}
}

// Of returns the servers of a project, the newest first.
func (t *Table) Of(project string) iter.Seq[*Server] {
	const newest = int64(1<<63 - 1)
	return func(yield func(*Server) bool) {
		t.byProject.Ascend(owned{project, newest}, func(o owned) bool {
			if o.project != project {
				return false
			}
			return yield(t.Numbered(o.number))
		})
	}
}

// Count is how many servers a project has.
func (t *Table) Count(project string) int {
	n := 0
	for range t.Of(project) {
		n++
	}
	return n
}
