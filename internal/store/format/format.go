// Package format says in which forms what is stored can be written. A store has one
// format at a time, a number that only grows; it is raised when every controller that
// might lead can read and write the next one, so that programs of two versions can
// take turns on one store for as long as an upgrade takes.
//
// Engines ask before they write what programs of before could not read:
//
//	if cfg.Format() >= format.Identities { ... } else { as before }
//
// The answer may change from one call to the next, upwards, while a controller leads:
// they ask each time, and hold no answer for longer than one decision. What they read may
// be of any format that Own reads, whatever the present one is: nothing is written anew
// when the format is raised.
//
// Invariants:
//   - Each format has a sentence that says what it brought (TestEachFormatSaysWhatItBrought).
//   - A raise goes to a format that every program heard of within Grace reads and writes, and
//     that whoever decides does, and says of the next one who keeps the group from it
//     (TestDecide, TestARaiseLeavesNobodyBehind).
//   - A program that tells nothing of formats is of before: it knows the first one
//     (TestAProgramThatTellsNothingKnowsTheFirst).
package format

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/drover-project/drover/internal/fault"
)

// The formats.
const (
	// First is that of programs which know of no formats, and of a store that names none.
	First = 1
	// Identities has jobs about tags that say by UUID which instance is meant (instance_uuid), and nodes that keep what
	// they have under UUIDs: who raises the format lets them lay that out in a way that programs of before cannot read.
	Identities = 2
	// Steps has opcodes of which is kept what they do, so that another controller goes on with them (kinds work and step). It came with
	// Identities.
	Steps = Identities
	// Agents has nodes whose agents are elsewhere (agent, of a node): programs of before would run an agent of their own in their
	// place.
	Agents = 3
	// Images has images that machines are installed from (image), in the inventory.
	Images = 4
	// Mirrors has mirrored disks: what each consists of on its nodes, and whose copy was left behind (children, stale, of a disk). Programs of before
	// that change such an instance would forget it, and take a copy for a good one that is not. With it come the steps that move instances, and jobs
	// that say which node they wait for.
	Mirrors = 5
	// Guests has servers that say which networks they are in and what their machines are told at the first start (nets, guest, of a
	// server). Programs of before that change such a server before it is made would forget that, and make another one. Key pairs and flavors,
	// which came with it, are objects of their own, which they pass over; so are quotas, which they would not hold, and which are set from here on. What was done to a server (done) they would forget, too, and nothing is
	// done by that: it is written at any format.
	Guests = 6
	// Disks has disks that no instance has (disk), in the inventory. Programs of before would take what nodes keep of them for something that jobs have
	// left, and remove it. It came with Guests.
	Disks = Guests
	// Sizes has servers that are given another size, which their users have not confirmed (before, of a server). Programs of before would forget the size that
	// can be had again, and not know what is being done.
	Sizes = 7
	// Uploads has images that users uploaded, in the inventory (a source upload:ID), and beside it who may see each (upload). Programs of before would show them to
	// all users.
	Uploads = 8
	// Rebuilds has servers that are rebuilt (anew, of a task; broken, of a server). Programs of before would forget that a job may be with its cluster already, so
	// that the next one hands it in again, and take a server for whole that could not be rebuilt.
	Rebuilds = 9
	// Groups has groups of servers (server-group), which the tags of their servers have placement hold apart or together. Programs of before would place them anywhere.
	Groups = 10
	// Captures has images that are made of the disks of servers (captured, of an upload), by jobs that take a disk for their file. Programs of before know no such job, and
	// would take another file for such an image.
	Captures = 11
)

// Newest is the greatest that this program knows.
const Newest = Captures

// formats are all of them, the first one first.
var formats = [...]string{
	First:      "as of the first version: jobs about tags name the instance",
	Identities: "jobs about tags may say by its UUID which instance is meant, nodes keep what they have under UUIDs, and what opcodes do is kept as steps",
	Agents:     "nodes may have agents of their own, in processes elsewhere",
	Images:     "the inventory may have images that machines are installed from",
	Mirrors:    "instances may have mirrored disks, and be moved; jobs say which node they wait for",
	Guests:     "servers of the Compute API may be in networks that their users choose, with keys and user data, and disks may belong to no instance",
	Sizes:      "servers of the Compute API may be given another size, which their users confirm or take back",
	Uploads:    "users of the Image API may upload images, each of its project alone or of all",
	Rebuilds:   "servers of the Compute API may be rebuilt, each once for each time that it is asked for",
	Groups:     "servers of the Compute API may be in groups that keep them apart or together",
	Captures:   "users of the Compute API may have images made of the disks of their servers",
}

// Brought says what a format brought; nothing of one that this program does not know.
func Brought(n int) string {
	if n < First || n > Newest {
		return ""
	}
	return formats[n]
}

// Range are formats from the oldest to the newest, both among them.
type Range struct {
	Oldest int `json:"oldest"`
	Newest int `json:"newest"`
}

// Has tells whether a format is among them.
func (r Range) Has(n int) bool { return n >= r.Oldest && n <= r.Newest }

// String is how people read it: 1-2, or 2.
func (r Range) String() string {
	if r.Oldest == r.Newest {
		return strconv.Itoa(r.Oldest)
	}
	return fmt.Sprintf("%d-%d", r.Oldest, r.Newest)
}

// Program is what a program tells of itself.
type Program struct {
	Reads  Range `json:"reads"`
	Writes Range `json:"writes"`
}

// Own is this program.
func Own() Program { return Program{Reads: Range{First, Newest}, Writes: Range{First, Newest}} }

// Told is a program as it tells of itself; one that tells nothing is of before.
func Told(p *Program) Program {
	if p == nil {
		return Program{Reads: Range{First, First}, Writes: Range{First, First}}
	}
	return *p
}

// Newest is the greatest format at which the program can lead.
func (p Program) Newest() int { return min(p.Reads.Newest, p.Writes.Newest) }

// CanRead refuses a store whose format the program cannot read: it has no picture of it.
func (p Program) CanRead(present int) error {
	if p.Reads.Has(present) {
		return nil
	}
	return fault.New(fault.Unsupported, "the store has format %d, and this program reads %s", present, p.Reads).WithHint("%s", mend(present, p.Reads))
}

// CanLead refuses a store whose format the program cannot keep: it may stand by, and never lead.
func (p Program) CanLead(present int) error {
	if err := p.CanRead(present); err != nil {
		return err
	}
	if p.Writes.Has(present) {
		return nil
	}
	return fault.New(fault.Unsupported, "the store has format %d, and this program writes %s", present, p.Writes).WithHint("%s", mend(present, p.Writes))
}

// mend says what to do about a store of a format that a program does not know.
func mend(present int, known Range) string {
	if present < known.Oldest {
		return "let a program of a version between raise it first: drover cluster format"
	}
	return "use the program version that raised it, or a newer one"
}

// stored is the object that holds the format. Programs of later versions may add to it.
type stored struct {
	Format int `json:"format"`
}

// Encode is a format as it is stored.
func Encode(n int) []byte { return fmt.Appendf(nil, `{"format":%d}`, n) }

// Parse reads a stored format, also one that this program does not know.
func Parse(value []byte) (n int, err error) {
	var s stored
	err = json.Unmarshal(value, &s)
	if err == nil && s.Format < First {
		err = fmt.Errorf("there is no format %d", s.Format)
	}
	if err != nil {
		return 0, fault.New(fault.Unsupported, "the format of the store cannot be read: %w", err).WithHint("restore a backup, or use the program version that wrote it")
	}
	return s.Format, nil
}

// Present is the format of a store as the controller that leads on it knows it. It may be
// asked from any goroutine, as often as anybody likes.
type Present struct{ n atomic.Int64 }

// Format returns the present format, First before anything was set.
func (p *Present) Format() int { return max(First, int(p.n.Load())) }

// Set is for whoever has raised the format, or has read it at the beginning of a term:
// after that was durable.
func (p *Present) Set(n int) { p.n.Store(int64(n)) }
