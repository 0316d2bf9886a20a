package cluster

import (
	"cmp"
	"iter"
	"sort"
	"strings"

	"github.com/tidwall/btree"

	"github.com/drover-project/drover/internal/fault"
)

// table holds the objects of one kind, by UUID and by name. Copying it costs
// the same at any size.
type table[T any] struct {
	word   string // what the kind is called in messages
	byUUID *btree.Map[string, T]
	byName *btree.BTreeG[named[T]]
}

// named is an entry of the name index; entries with equal names are told
// apart by UUID.
type named[T any] struct {
	name, uuid string
	item       T
}

func newTable[T any](word string) table[T] {
	return table[T]{
		word:   word,
		byUUID: &btree.Map[string, T]{},
		byName: btree.NewBTreeGOptions(lessNamed[T], btree.Options{NoLocks: true}),
	}
}

func lessNamed[T any](a, b named[T]) bool {
	if c := CompareNames(a.name, b.name); c != 0 {
		return c < 0
	}
	return a.uuid < b.uuid
}

func (t table[T]) copy() table[T] {
	t.byUUID = t.byUUID.Copy()
	t.byName = t.byName.Copy()
	return t
}

// put sets an object; old is what it replaced, if anything.
func (t table[T]) put(name, uuid string, item T, nameOf func(T) string) {
	if old, replaced := t.byUUID.Set(uuid, item); replaced {
		if oldName := nameOf(old); oldName != name {
			t.byName.Delete(named[T]{name: oldName, uuid: uuid})
		}
	}
	t.byName.Set(named[T]{name: name, uuid: uuid, item: item})
}

func (t table[T]) delete(uuid string, nameOf func(T) string) {
	if old, found := t.byUUID.Delete(uuid); found {
		t.byName.Delete(named[T]{name: nameOf(old), uuid: uuid})
	}
}

// all yields the objects in nice order of their names.
func (t table[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		t.byName.Scan(func(e named[T]) bool { return yield(e.item) })
	}
}

// exact returns the object with exactly this name.
func (t table[T]) exact(name string) (item T, found bool) {
	t.byName.Ascend(named[T]{name: name}, func(e named[T]) bool {
		if e.name == name {
			item, found = e.item, true
			return false
		}
		return CompareNames(e.name, name) == 0
	})
	return item, found
}

// short returns the first object whose name begins with the name and a dot,
// and how many such objects there are, counting no further than two.
func (t table[T]) short(name string) (item T, matches int) {
	prefix := name + "."
	// No name with the prefix sorts behind this one: '/' follows '.'.
	end := named[T]{name: name + "/"}
	t.byName.Ascend(named[T]{name: prefix}, func(e named[T]) bool {
		if !lessNamed(e, end) {
			return false
		}
		if strings.HasPrefix(e.name, prefix) {
			if matches == 0 {
				item = e.item
			}
			matches++
		}
		return matches < 2
	})
	return item, matches
}

// called yields the objects with a name, or with a name that begins with it and
// a dot, in nice order.
func (t table[T]) called(name string) iter.Seq[T] {
	prefix := name + "."
	end := named[T]{name: name + "/"} // as in short
	return func(yield func(T) bool) {
		more := true
		t.byName.Ascend(named[T]{name: name}, func(e named[T]) bool {
			if CompareNames(e.name, name) != 0 {
				return false
			}
			more = e.name != name || yield(e.item)
			return more
		})
		if !more {
			return
		}
		t.byName.Ascend(named[T]{name: prefix}, func(e named[T]) bool {
			return lessNamed(e, end) && (!strings.HasPrefix(e.name, prefix) || yield(e.item))
		})
	}
}

// find looks an object up by UUID, by its exact name, or by a unique beginning
// of its name that ends before a dot.
func (t table[T]) find(key string) (T, error) {
	if item, found := t.byUUID.Get(key); found {
		return item, nil
	}
	if item, found := t.exact(key); found {
		return item, nil
	}
	item, matches := t.short(key)
	switch matches {
	case 0:
		return item, fault.New(fault.NotFound, "%s name %s not found", t.word, key)
	case 1:
		return item, nil
	}
	return item, fault.New(fault.Ambiguous, "%s name %s has multiple matches", t.word, key)
}

// ref is an entry of an index from some key (a node, a network, a tag) to
// objects; entries of one key are in nice order of names.
type ref struct {
	key, name, uuid string
}

func lessRef(a, b ref) bool {
	if c := cmp.Compare(a.key, b.key); c != 0 {
		return c < 0
	}
	if c := CompareNames(a.name, b.name); c != 0 {
		return c < 0
	}
	return a.uuid < b.uuid
}

// refs is an index of refs.
type refs struct {
	tree *btree.BTreeG[ref]
}

func newRefs() refs {
	return refs{btree.NewBTreeGOptions(lessRef, btree.Options{NoLocks: true})}
}

func (r refs) copy() refs { return refs{r.tree.Copy()} }

func (r refs) add(key, name, uuid string)    { r.tree.Set(ref{key, name, uuid}) }
func (r refs) remove(key, name, uuid string) { r.tree.Delete(ref{key, name, uuid}) }

// of yields the UUIDs under a key, in nice order of names.
func (r refs) of(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		r.tree.Ascend(ref{key: key}, func(e ref) bool {
			return e.key == key && yield(e.uuid)
		})
	}
}

// count is the number of entries under a key.
func (r refs) count(key string) int {
	before := func(key string) int {
		return sort.Search(r.tree.Len(), func(i int) bool {
			e, _ := r.tree.GetAt(i)
			return e.key >= key
		})
	}
	return before(key+"\x00") - before(key)
}

// keys yields the keys that have entries, in order, at the cost of a look-up
// each.
func (r refs) keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for from, found := "", true; found; {
			found = false
			var key string
			r.tree.Ascend(ref{key: from}, func(e ref) bool {
				key, found = e.key, true
				return false
			})
			if found && !yield(key) {
				return
			}
			from = key + "\x00"
		}
	}
}
