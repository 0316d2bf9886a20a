package sqlite

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/groupcommit"
)

// A commit that changes an object and adds another touches pages for both, for their
// index and for the feed, and who works alone waits for all of them. So a commit
// is written as rows of the table recent, each with a page of its own, as many
// transactions to a row as it has room for. The tables object and feed take in what has
// gathered there when there is no more room, with the commit that finds none: each object
// once, however often it was changed.
//
// How far the tables reach is told by the newest revision of the feed. A row of
// recent is live while it is newer. So rows are not deleted: they are written over,
// from the first on.
//
// Readers lay the commits that the writer remembers over what they find in the
// tables; nobody but the start reads the table recent. They take the commits first and
// then begin to read the tables, of which the feed tells how much of the
// commits they have taken in meanwhile. So the two never lack something together.

const (
	// slots is how many rows there are.
	slots = 128
	// slotSize is the size of each row, in bytes. They are all of one size, so that a row is
	// written over where it is, and a page of 4096 bytes has room for one.
	slotSize = 4000
)

// recent is what was committed and is not in the tables, oldest first, as far as the
// writer knows: a commit for each row. It does not change.
type recent struct {
	commits []commit
}

// commit is what a row holds: some transactions that were committed together.
type commit struct {
	first, last store.Revision
	changes     []store.Change
	writes      []groupcommit.Write
}

// with returns what is recent after one more commit. The slices share their array, of
// which nobody reads more than his own slice shows.
func (r *recent) with(c commit) *recent {
	if r.commits == nil {
		return &recent{commits: append(make([]commit, 0, slots), c)}
	}
	return &recent{commits: append(r.commits, c)}
}

// revision is the newest one; zero if there is none.
func (r *recent) revision() store.Revision {
	if len(r.commits) == 0 {
		return 0
	}
	return r.commits[len(r.commits)-1].last
}

// find returns the last write of an object, nil if there is none.
func (r *recent) find(key store.Key) *groupcommit.Write {
	for _, c := range slices.Backward(r.commits) {
		for i := range c.writes {
			if c.writes[i].Key == key {
				return &c.writes[i]
			}
		}
	}
	return nil
}

// after leaves out what the tables have that reach up to a revision.
func (r *recent) after(folded store.Revision) *recent {
	for i := range r.commits {
		if r.commits[i].first > folded {
			return &recent{commits: r.commits[i:]}
		}
	}
	return &recent{}
}

// follow adds the changes that come behind those of the feed, if they are fewer than the limit.
func (r *recent) follow(changes []store.Change, last store.Revision, limit int) ([]store.Change, store.Revision) {
	for _, c := range r.commits {
		if len(changes) >= limit {
			break
		}
		for _, one := range c.changes {
			if one.Revision > last {
				changes = append(changes, one)
			}
		}
		last = max(last, c.last)
	}
	return changes, last
}

// last returns the last write of each object, of a kind or of all if that is empty, those
// that were written first before the others.
func (r *recent) last(kind store.Kind) []*groupcommit.Write {
	var found []*groupcommit.Write
	seen := map[store.Key]bool{}
	for _, c := range slices.Backward(r.commits) {
		for i := range slices.Backward(c.writes) {
			w := &c.writes[i]
			if kind != "" && w.Key.Kind != kind || seen[w.Key] {
				continue
			}
			seen[w.Key] = true
			found = append(found, w)
		}
	}
	slices.Reverse(found)
	return found
}

// has tells whether there is any write of a kind.
func (r *recent) has(kind store.Kind) bool {
	for i := range r.commits {
		for j := range r.commits[i].writes {
			if r.commits[i].writes[j].Key.Kind == kind {
				return true
			}
		}
	}
	return false
}

// A row's data are, in numbers as encoding/binary writes those of variable length:
//
//	the sum of all that follows, in four bytes
//	the first revision, and how many follow it
//	the lines of the feed
//	how many objects; of each its revision counted from the first, its time, kind,
//	id, and its value with what it is: 0 deleted, 1 there
//	zeros up to the size of a row
//
// where texts have their length in front.

// encode appends a commit's row to an empty buffer; ok is false if it is too large for one.
func (c *commit) encode(buf []byte) (data []byte, ok bool) {
	size := 0
	for i := range c.writes {
		size += len(c.writes[i].Value)
	}
	if size > slotSize {
		return buf, false
	}
	b := slices.Grow(buf, slotSize)
	b = append(b, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(c.first))
	b = binary.AppendUvarint(b, uint64(c.last-c.first))
	b = appendText(b, groupcommit.Entries(c.first, c.changes))
	b = binary.AppendUvarint(b, uint64(len(c.writes)))
	for i := range c.writes {
		w := &c.writes[i]
		b = binary.AppendUvarint(b, uint64(w.Revision-c.first))
		b = binary.AppendVarint(b, w.At)
		b = appendText(b, w.Key.Kind)
		b = appendText(b, w.Key.ID)
		if w.Deleted {
			b = append(b, 0)
			continue
		}
		b = appendText(append(b, 1), w.Value)
	}
	if len(b) > slotSize {
		return b, false
	}
	used := len(b)
	b = slices.Grow(b, slotSize-used)[:slotSize]
	clear(b[used:])
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b, true
}

func appendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decodeCommit reads a row; ok is false if it is not what was written.
func decodeCommit(data []byte) (c commit, ok bool) {
	if len(data) != slotSize || binary.LittleEndian.Uint32(data) != crc32.Checksum(data[4:], castagnoli) {
		return commit{}, false
	}
	d := decoder{rest: data[4:]}
	return d.commit()
}

// decoder reads what encode wrote. After it met something else it is bad, and returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) commit() (c commit, ok bool) {
	c.first = store.Revision(d.number())
	c.last = c.first + store.Revision(d.number())
	entries := string(d.text())
	for n := d.number(); n > 0 && !d.bad; n-- {
		w := groupcommit.Write{Revision: c.first + store.Revision(d.number()), At: d.signed()}
		w.Key = store.Key{Kind: store.Kind(d.text()), ID: string(d.text())}
		if w.Deleted = d.number() == 0; !w.Deleted {
			w.Value = slices.Clone(d.text())
		}
		c.writes = append(c.writes, w)
	}
	var err error
	c.changes, err = groupcommit.ParseEntries(nil, entries, c.first, 0)
	return c, !d.bad && err == nil
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.rest) {
		d.bad = true
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if d.take(size); size == 0 || d.bad {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.rest)
	if d.take(size); size == 0 || d.bad {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) text() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad = true
		return nil
	}
	return d.take(int(n))
}

// loadRecent reads the live commits behind those that the tables have. Together
// they lack no revision; where one is missing, or a row is not what was
// written, the store is damaged.
func loadRecent(c *conn, folded store.Revision) (*recent, error) {
	s, err := c.prepare("SELECT slot, data FROM recent")
	if err != nil {
		return nil, err
	}
	var commits []commit
	var bad error
	err = s.rows(func(row []driver.Value) {
		data, _ := row[1].([]byte)
		one, ok := decodeCommit(data)
		if !ok {
			bad = damaged("the table of recent changes in row", row[0])
			return
		}
		if one.first > folded {
			commits = append(commits, one)
		}
	})
	if err = errors.Join(err, s.raw.Close()); err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(commits, func(a, b commit) int { return cmp.Compare(a.first, b.first) })
	before := folded
	for i := range commits {
		if commits[i].first != before+1 {
			return nil, fault.New(fault.WrongState, "the store is damaged: its recent changes lack revision %d", before+1).WithHint("restore a backup")
		}
		before = commits[i].last
	}
	return &recent{commits: slices.Grow(commits, slots)}, nil
}

// put writes a batch into rows, if there is room for all of it.
func (w *writer) put(r *recent, b *groupcommit.Batch) (*recent, error) {
	commits := split(b)
	if len(r.commits)+len(commits) > slots {
		return nil, nil
	}
	next := r
	for i := range commits {
		var small bool
		if w.slot, small = commits[i].encode(w.slot[:0]); !small {
			return nil, nil
		}
		if err := w.sql.slot.exec(int64(len(next.commits)), w.slot); err != nil {
			return nil, err
		}
		next = next.with(commits[i])
	}
	return next, nil
}

// split makes of a batch commits that each fit into a row, so far as its transactions do.
func split(b *groupcommit.Batch) []commit {
	const overhead = 100 // of an object: its line in the feed, and numbers
	writes := b.Writes
	if !slices.IsSortedFunc(writes, byRevision) {
		writes = slices.Clone(writes)
		slices.SortStableFunc(writes, byRevision)
	}
	changes := b.Changes()
	var all []commit
	now := commit{first: b.First}
	size := 0
	for rev := b.First; rev <= b.Revision; rev++ {
		n, c, more := 0, 0, 0
		for ; n < len(writes) && writes[n].Revision == rev; n++ {
			more += len(writes[n].Value) + overhead
		}
		for ; c < len(changes) && changes[c].Revision == rev; c++ {
			more += overhead
		}
		if size > 0 && size+more > slotSize {
			all, now, size = append(all, now), commit{first: rev}, 0
		}
		size += more
		now.last = rev
		now.writes, writes = append(now.writes, writes[:n]...), writes[n:]
		now.changes, changes = append(now.changes, changes[:c]...), changes[c:]
	}
	return append(all, now)
}

func byRevision(a, b groupcommit.Write) int { return cmp.Compare(a.Revision, b.Revision) }

// fold writes into the tables what the recent commits and the batch come to.
func (w *writer) fold(r *recent, b *groupcommit.Batch) error {
	first, changes := b.First, b.Changes()
	if len(r.commits) > 0 {
		first = r.commits[0].first
		var all []store.Change
		for i := range r.commits {
			all = append(all, r.commits[i].changes...)
		}
		changes = append(all, changes...)
	}
	for _, o := range r.last("") {
		if err := w.write(o); err != nil {
			return err
		}
	}
	for i := range b.Writes {
		if err := w.write(&b.Writes[i]); err != nil {
			return err
		}
	}
	if err := w.writeRow(b.Revision, first, string(groupcommit.Entries(first, changes))); err != nil {
		return fmt.Errorf("write the feed: %w", err)
	}
	return nil
}
