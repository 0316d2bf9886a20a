package lists

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

// watchPage is a list that is followed on a terminal: a table that stays in place, in which
// rows change. Of jobs the unfinished ones come first, then the newest.
type watchPage struct {
	sh     *shell.Shell
	what   string
	ask    func(since int64) func(context.Context) (any, error)
	o      *Options
	hidden int   // columns at the end of rows that are not shown
	shown  []int // the columns that were shown last
	w      watched
	since  int64
	fields []listing.Field
	marks  map[string]mark // what became of a row last
	turns  map[string]turn // of jobs alone
	order  []string        // ids of the rows, as they are shown
	first  int             // the first row that is seen
}

// mark is what became of a row, and when.
type mark struct{ sign, at string }

// Next waits for news.
func (p *watchPage) Next() (func(context.Context) (any, error), time.Duration) {
	return p.ask(p.since), 0
}

// Take takes in what changed.
func (p *watchPage) Take(answer any, err error) error {
	u, ok := answer.(*update)
	if err != nil || !ok {
		return err
	}
	if u.Fields != nil {
		p.fields = u.Fields
	}
	if p.marks == nil {
		p.marks, p.turns = map[string]mark{}, map[string]turn{}
	}
	for _, e := range p.w.apply(u) {
		switch {
		case e.Type == "leave":
			delete(p.marks, e.ID)
			delete(p.turns, e.ID)
			p.order = slices.DeleteFunc(p.order, func(id string) bool { return id == e.ID })
			continue
		case e.Type == "enter":
			p.order = append(p.order, e.ID)
		}
		if p.what == "job" {
			p.turns[e.ID] = turnOf(e.Row)
		}
		if p.since > 0 {
			p.marks[e.ID] = mark{signs[e.Type], p.sh.Now().Format(time.TimeOnly)}
		}
	}
	p.since = u.Revision
	if p.what == "job" {
		slices.SortStableFunc(p.order, p.compareJobs)
	}
	return nil
}

// turn is where the row of a job stands: unfinished ones before others, newer ones before
// older ones.
type turn struct {
	ended bool
	id    int64
}

// turnOf reads it from the last two columns of a row, its status and its number.
func turnOf(row []listing.Cell) turn {
	t := turn{ended: job.Status(CellText(row[len(row)-2])).Final()}
	_ = json.Unmarshal(row[len(row)-1].Value, &t.id) // a number
	return t
}

func (p *watchPage) compareJobs(a, b string) int {
	x, y := p.turns[a], p.turns[b]
	if x.ended != y.ended {
		return map[bool]int{true: 1, false: -1}[x.ended]
	}
	return cmp.Compare(y.id, x.id)
}

// Key scrolls, or leaves.
func (p *watchPage) Key(name string, size screen.Size) screen.Action {
	page := max(size.Height-2, 1)
	switch name {
	case "q":
		return screen.Leave
	case "up", "k":
		p.first--
	case "down", "j":
		p.first++
	case "pgup":
		p.first -= page
	case "pgdown", "space":
		p.first += page
	case "home":
		p.first = 0
	case "end":
		p.first = len(p.order)
	}
	p.first = max(min(p.first, len(p.order)-page), 0)
	return screen.Stay
}

// columns are those that are shown, by their places: all that were asked for, but for those that
// have nothing to tell of any row now.
func (p *watchPage) columns() []int {
	var out []int
	for at := range len(p.fields) - p.hidden {
		told := !slices.Contains(p.o.brief, p.fields[at].Name)
		for id := range p.w.rows {
			if told {
				break
			}
			told = tells(p.w.rows[id][at])
		}
		if told {
			out = append(out, at)
		}
	}
	return out
}

// Lines are the heading, the rows that fit and the keys.
func (p *watchPage) Lines(size screen.Size) []string {
	if p.fields == nil {
		return []string{"asking the controller"}
	}
	room := max(size.Height-2, 1)
	p.first = max(min(p.first, len(p.order)-room), 0) // rows may have gone
	shown := p.columns()
	if !slices.Equal(shown, p.shown) {
		p.shown, p.w.columns = shown, nil
	}
	a := &listing.Answer{Fields: []listing.Field{{Name: "sign", Title: " ", Kind: "text"}, {Name: "at", Title: "Changed", Kind: "text"}}}
	for _, at := range shown {
		a.Fields = append(a.Fields, p.fields[at])
	}
	seen := p.order[min(p.first, len(p.order)):min(p.first+room, len(p.order))]
	for _, id := range seen {
		m := p.marks[id]
		row := []listing.Cell{{Value: json.RawMessage(`"` + m.sign + `"`)}, {Value: json.RawMessage(`"` + m.at + `"`)}}
		for _, at := range shown {
			row = append(row, p.w.rows[id][at])
		}
		a.Data = append(a.Data, row)
	}
	options := tableOptions(p.sh, p.o)
	options.Width, options.Columns = size.Width, &p.w.columns
	var b strings.Builder
	if err := listing.Write(&b, p.what, a, options); err != nil {
		return []string{listing.Cut(err.Error(), size.Width)}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for len(lines) < room+1 {
		lines = append(lines, "")
	}
	foot := "0 of 0"
	if len(seen) > 0 {
		foot = fmt.Sprintf("%d to %d of %d", p.first+1, p.first+len(seen), len(p.order))
	}
	return append(lines, listing.Cut(foot+"   q leave  ↑↓ pgup pgdown scroll", size.Width))
}
