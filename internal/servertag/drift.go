package servertag

import (
	"fmt"
	"slices"
	"time"
)

// Difference is one thing about tags in which what is wanted, what was seen
// last and what the cluster shows do not agree.
type Difference struct {
	// Namespace and Name are empty for a tag that stands for no name.
	Namespace Namespace `json:"namespace,omitempty"`
	Name      string    `json:"tag,omitempty"`
	Raw       string    `json:"raw"`
	// What is one of the kinds below, Why says it for a person, and Do what is
	// done about it.
	What Kind   `json:"what"`
	Why  string `json:"why"`
	Do   string `json:"do"`
}

// Kind is a kind of difference.
type Kind string

// The kinds of differences.
const (
	// UnderWay: a job is changing the tag, so nothing can be said before it ended.
	UnderWay Kind = "under-way"
	// Waits: another job about tags of the server is under way, and has to end first.
	Waits Kind = "waits"
	// Lacking: it is wanted, and the cluster does not have it yet.
	Lacking Kind = "lacking"
	// Lingering: it is to go, and the cluster still has it.
	Lingering Kind = "lingering"
	// Unconfirmed: the cluster is as wanted, and was not looked at since the change.
	Unconfirmed Kind = "unconfirmed"
	// TakenAway: it was in force and somebody removed it on the cluster.
	TakenAway Kind = "taken-away"
	// Stranger: it is on the cluster with a prefix of ours and not known here.
	Stranger Kind = "stranger"
	// Misspelt: it has a prefix of ours and is not written as we would write it.
	Misspelt Kind = "misspelt"
	// GivenUp: it is wanted, or to go, and another try would fail like the last.
	GivenUp Kind = "given-up"
)

// IsDrift reports whether something is to be done about a difference, or needs a
// person. What a job is at already is none.
func (d *Difference) IsDrift() bool { return d.What != UnderWay }

// Compare tells in what three sides differ: what is wanted and what was seen
// last, which are in the set, and what the cluster shows. It decides nothing:
// Settle and Next do, and Do says what they would. Nothing is said of a cluster
// that does not have the instance. The tags of the set come first, in its order.
func (s *Set) Compare(p *Policy, sight Sight) []Difference {
	if !sight.Instance {
		return nil
	}
	var out []Difference
	for i := range s.Tags {
		t := &s.Tags[i]
		if d := s.difference(t, slices.Contains(sight.Tags, t.Raw), sight); d.What != "" {
			d.Namespace, d.Name, d.Raw = t.Namespace, t.Name, t.Raw
			out = append(out, d)
		}
	}
	for _, raw := range sight.Tags {
		ns, name, origin := p.Prefixes.Parse(raw)
		switch {
		case origin == Odd:
			out = append(out, Difference{Raw: raw, What: Misspelt, Why: "it has the prefix of the " + string(ns) + " namespace, and stands for no name there",
				Do: "nothing: somebody wrote it who has to remove it or to write it otherwise"})
		case origin == Ours && s.Find(ns, name) == nil:
			out = append(out, Difference{Namespace: ns, Name: name, Raw: raw, What: Stranger, Why: "somebody added it on the cluster", Do: "it is adopted"})
		}
	}
	return out
}

// difference is what is to be said of one tag of the set.
func (s *Set) difference(t *Tag, there bool, sight Sight) Difference {
	doing := sight.open(s.Changing(t.Raw))
	before := sight.open(s.UnderWay(map[bool]Action{true: Add, false: Remove}[t.Wanted]))
	agree := there == t.Wanted
	switch {
	case doing != nil:
		return Difference{What: UnderWay, Why: s.WaitOf(t).Why, Do: "nothing before it has ended" + doing.explained()}
	case agree && t.Wanted && t.Seen == Present:
		return Difference{}
	case agree && t.Wanted:
		return Difference{What: Unconfirmed, Why: "the cluster has it, and was not looked at since it was asked for", Do: "it becomes " + string(Active)}
	case agree:
		return Difference{What: Unconfirmed, Why: "the cluster does not have it any more, and was not looked at since", Do: "it is forgotten"}
	case t.Wanted && t.Seen == Present:
		return Difference{What: TakenAway, Why: "it was in force, and somebody removed it on the cluster", Do: "it is forgotten: the cluster is right about what nobody asked to change"}
	case t.Failure != nil && t.Failure.Final:
		return Difference{What: GivenUp, Why: "the cluster refuses it for good: " + t.Failure.Text, Do: "nothing: somebody has to ask for something else"}
	case before != nil && before.ID != 0:
		return Difference{What: Waits, Why: fmt.Sprintf("job %d about other tags of this server has to end first", before.ID),
			Do: "nothing before that" + before.explained()}
	case t.Wanted:
		return Difference{What: Lacking, Why: "it is wanted since " + when(t) + ", and the cluster does not have it" + t.failures(), Do: "a job adds it"}
	}
	return Difference{What: Lingering, Why: "it is to go since " + when(t) + ", and the cluster still has it" + t.failures(), Do: "a job removes it"}
}

// explained is which command tells what the job waits for: a rule may hold it. It is
// empty for a job that has no id yet.
func (j *Job) explained() string {
	if j.ID == 0 {
		return ""
	}
	return fmt.Sprintf(": drover job explain %d tells what it waits for", j.ID)
}

// open is a job unless the sight shows that it has ended.
func (sight *Sight) open(j *Job) *Job {
	if j == nil {
		return nil
	}
	if _, ended := sight.Ended[j.ID]; ended && j.ID != 0 {
		return nil
	}
	return j
}

func when(t *Tag) string {
	const layout = "2006-01-02 15:04:05"
	return time.UnixMicro(int64(t.Asked.Time)).UTC().Format(layout)
}

// failures tells of the tries so far.
func (t *Tag) failures() string {
	if t.Failure == nil {
		return ""
	}
	return fmt.Sprintf("; %d tries failed, the last with: %s", t.Tries, t.Failure.Text)
}
