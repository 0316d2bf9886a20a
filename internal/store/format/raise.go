package format

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Grace is for how long a controller that is not heard of any more keeps the others from a
// format that it does not know.
const Grace = 24 * time.Hour

// Member is a controller of the group.
type Member struct {
	Name    string
	Program Program
	// Heard is when it was last heard of.
	Heard time.Time
}

// Raise is what can be done about a format.
type Raise struct {
	// From is the present format, and To the one that it can be raised to; the same where
	// it cannot be.
	From, To int
	// Newest is the greatest that the program which decides can lead at.
	Newest int
	// Holds are those who keep it from the format behind To, by name; none where To is the
	// newest.
	Holds []Hold
}

// Hold is why a controller keeps the others from a format.
type Hold struct {
	Name string
	// Why is a sentence.
	Why string
	// Until is when it no longer counts, unless it is heard again.
	Until time.Time
}

// Wanted tells whether there is anything to raise.
func (r Raise) Wanted() bool { return r.To > r.From }

// Decide says to which format a store may be raised by a program, given who belongs to the group.
func Decide(present int, own Program, members []Member, now time.Time) Raise {
	r := Raise{From: present, To: present, Newest: present}
	for n := present + 1; own.CanLead(n) == nil; n++ {
		r.Newest = n
	}
	for r.To < r.Newest {
		if r.Holds = holds(r.To+1, members, now); len(r.Holds) > 0 {
			return r
		}
		r.To++
	}
	return r
}

// holds are those who keep the group from a format.
func holds(n int, members []Member, now time.Time) (out []Hold) {
	for _, m := range members {
		if m.Program.CanLead(n) == nil || now.Sub(m.Heard) >= Grace {
			continue
		}
		why := fmt.Sprintf("its program reads format %s and writes %s, not %d", m.Program.Reads, m.Program.Writes, n)
		out = append(out, Hold{Name: m.Name, Why: why, Until: m.Heard.Add(Grace)})
	}
	slices.SortFunc(out, func(a, b Hold) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
