// Package top is `drover top`: what a cluster does, kept in place on a terminal: what runs, what waits and what holds it,
// how much of it there is, and the nodes. A picture is what the controller showed at one moment; the screen is a function
// of the picture, of what was chosen with keys, and of the size.
package top

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/jobs"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// View is what the rows are.
type View int

// The views.
const (
	Jobs View = iota
	Holds
	Nodes
	views // how many there are
)

// viewNames are their names.
var viewNames = []string{"jobs", "holds", "nodes"}

func (v View) String() string { return viewNames[v] }

// order is a way to sort the rows of a view, by fields as the controller sorts.
type order struct {
	name   string
	fields []string
}

// orders are those of each view, the usual one first.
var orders = [views][]order{
	Jobs:  {{"turn", []string{"priority", "id"}}, {"id", []string{"id"}}, {"since", []string{"waits_since", "id"}}, {"why", []string{"wait_reason", "id"}}},
	Holds: {{"jobs", []string{"-jobs"}}, {"first", []string{"first"}}, {"name", []string{"what"}}},
	Nodes: {{"name", []string{"name"}}, {"free memory", []string{"mfree", "name"}}, {"instances", []string{"-pinst_cnt", "name"}}},
}

// chosenFilter is a filter as it was typed and as it is asked.
type chosenFilter struct {
	text string
	node qlang.Node
}

// State is what was chosen, and the last picture.
type State struct {
	ask     jobs.Asking
	now     func() time.Time
	every   time.Duration
	paint   func(colour, text string) string
	view    View
	cursor  [views]int
	chosen  job.ID // the job of the chosen row, which the cursor follows
	sorts   [views]int
	reverse [views]bool
	filters [views]chosenFilter
	typing  bool
	typed   string
	wrong   error // what is wrong with what was typed
	help    bool
	still   bool
	picture *Picture
	failed  error // what went wrong with the last question
}

// Next asks for the next picture; for none while it is held still.
func (s *State) Next() (func(context.Context) (any, error), time.Duration) {
	if s.still {
		return func(context.Context) (any, error) { return nil, nil }, s.every
	}
	w := Wish{View: s.view, Sort: s.sort(), Filter: s.filters[s.view].node, Chosen: s.chosen}
	if w.Filter == nil {
		w.Filter = &qlang.All{}
	}
	rest := s.every
	if s.picture != nil && s.picture.wish.Chosen != s.chosen {
		rest = 0
	}
	return func(ctx context.Context) (any, error) {
		p, err := look(ctx, s.ask, s.now(), w)
		if p == nil {
			return w, err
		}
		return p, err
	}, rest
}

// Take shows a picture, unless another view was chosen in the meantime. What went wrong
// is shown over the last one, if there is one: the controller may be back at the next
// question. A filter that it refuses is taken back.
func (s *State) Take(answer any, err error) error {
	refused := fault.Is(err, fault.Invalid) || fault.Is(err, fault.NotFound)
	if asked, ok := answer.(Wish); ok && refused && s.filters[asked.View].text != "" {
		s.filters[asked.View], s.wrong = chosenFilter{}, err
		return nil
	}
	if s.failed = err; err != nil && s.picture == nil {
		return err
	}
	if p, ok := answer.(*Picture); ok && p.wish.View == s.view && !s.still {
		s.picture = p
		s.follow()
	}
	return nil
}

// sort is the order of the rows, for the controller.
func (s *State) sort() []string {
	fields := slices.Clone(orders[s.view][s.sorts[s.view]].fields)
	if !s.reverse[s.view] {
		return fields
	}
	if field, down := strings.CutPrefix(fields[0], "-"); down {
		fields[0] = field
	} else {
		fields[0] = "-" + field
	}
	return fields
}

// sortName is the order in words.
func (s *State) sortName() string {
	name := orders[s.view][s.sorts[s.view]].name
	if s.reverse[s.view] {
		name += ", reversed"
	}
	return name
}

// jobAt is the job of a row, 0 if it is none's.
func (s *State) jobAt(row int) job.ID {
	if s.picture == nil || row < 0 {
		return 0
	}
	p := s.picture
	switch {
	case s.view == Holds && row < len(p.Holds):
		return p.Holds[row].First
	case s.view == Jobs && row < len(p.Running):
		return job.ID(p.Running[row].ID)
	case s.view == Jobs && row < len(p.Running)+len(p.Waiting):
		return job.ID(p.Waiting[row-len(p.Running)].ID)
	default:
		return 0
	}
}

// count is how many rows the view has.
func (s *State) count() int {
	if s.picture == nil {
		return 0
	}
	switch s.view {
	case Jobs:
		return len(s.picture.Running) + len(s.picture.Waiting)
	case Holds:
		return len(s.picture.Holds)
	default:
		return len(s.picture.Nodes)
	}
}

// follow has the cursor stay with its job where that still has a row.
func (s *State) follow() {
	for row := range s.count() {
		if s.chosen != 0 && s.jobAt(row) == s.chosen {
			s.cursor[s.view] = row
			return
		}
	}
	s.moveTo(s.cursor[s.view])
}

// moveTo chooses a row, or the nearest that there is.
func (s *State) moveTo(row int) {
	s.cursor[s.view] = max(min(row, s.count()-1), 0)
	s.chosen = s.jobAt(s.cursor[s.view])
}

// Key takes in a key.
func (s *State) Key(name string, size screen.Size) screen.Action {
	switch {
	case s.typing:
		return s.typedKey(name)
	case s.help:
		s.help = false
		return screen.Stay
	}
	s.wrong = nil
	if move, ok := moves[name]; ok {
		before := s.chosen
		s.moveTo(move(s.cursor[s.view], size.Height/2, s.count()))
		if s.chosen != before {
			return screen.Again
		}
		return screen.Stay
	}
	if act, ok := acts[name]; ok {
		return act(s)
	}
	return screen.Stay
}

// moves are the keys that choose another row.
var moves = map[string]func(row, page, count int) int{
	"up": func(row, _, _ int) int { return row - 1 }, "k": func(row, _, _ int) int { return row - 1 },
	"down": func(row, _, _ int) int { return row + 1 }, "j": func(row, _, _ int) int { return row + 1 },
	"pgup": func(row, page, _ int) int { return row - page }, "pgdown": func(row, page, _ int) int { return row + page },
	"home": func(_, _, _ int) int { return 0 }, "end": func(_, _, count int) int { return count - 1 },
}

// acts are the other keys.
var acts = map[string]func(*State) screen.Action{
	"q":     func(*State) screen.Action { return screen.Leave },
	"tab":   func(s *State) screen.Action { return s.show((s.view + 1) % views) },
	"1":     func(s *State) screen.Action { return s.show(Jobs) },
	"2":     func(s *State) screen.Action { return s.show(Holds) },
	"3":     func(s *State) screen.Action { return s.show(Nodes) },
	"enter": (*State).enter,
	"?":     func(s *State) screen.Action { s.help = true; return screen.Stay },
	"h":     func(s *State) screen.Action { s.help = true; return screen.Stay },
	"/": func(s *State) screen.Action {
		s.typing, s.typed = true, s.filters[s.view].text
		return screen.Stay
	},
	"esc": func(s *State) screen.Action {
		s.filters[s.view] = chosenFilter{}
		return screen.Again
	},
	"s": func(s *State) screen.Action {
		s.sorts[s.view] = (s.sorts[s.view] + 1) % len(orders[s.view])
		return screen.Again
	},
	"r": func(s *State) screen.Action {
		s.reverse[s.view] = !s.reverse[s.view]
		return screen.Again
	},
	"space": func(s *State) screen.Action {
		s.still = !s.still
		return screen.Again
	},
}

// show changes the view. The counts stay, its rows come with the next picture.
func (s *State) show(v View) screen.Action {
	s.view, s.still, s.chosen = v, false, 0
	if s.picture != nil {
		p := *s.picture
		p.Running, p.Waiting, p.Holds, p.Nodes, p.More, p.Chosen = nil, nil, nil, nil, 0, nil
		s.picture = &p
	}
	return screen.Again
}

// enter shows the jobs that what is chosen holds.
func (s *State) enter() screen.Action {
	row := s.cursor[Holds]
	if s.view != Holds || row >= s.count() {
		return screen.Stay
	}
	text := "wait_reason is missing and not status == \"running\""
	if what := s.picture.Holds[row].What; what != "" {
		var err error
		if text, err = qlang.Text(&qlang.Compare{Op: qlang.Eq, Field: "wait_reason", Value: qlang.TextValue(what)}); err != nil {
			s.wrong = err
			return screen.Stay
		}
	}
	s.cursor[Jobs] = 0
	s.setFilter(Jobs, text)
	return s.show(Jobs)
}

// typedKey takes in a key while a filter is typed.
func (s *State) typedKey(name string) screen.Action {
	switch {
	case name == "esc":
		s.typing = false
	case name == "enter":
		s.typing = false
		s.setFilter(s.view, strings.TrimSpace(s.typed))
		return screen.Again
	case name == "backspace":
		if letters := []rune(s.typed); len(letters) > 0 {
			s.typed = string(letters[:len(letters)-1])
		}
	case name == "ctrl+u":
		s.typed = ""
	case name == "space":
		s.typed += " "
	case len([]rune(name)) == 1:
		s.typed += name
	}
	return screen.Stay
}

// setFilter reads a filter, or says what is wrong with it and leaves the one before.
func (s *State) setFilter(v View, text string) {
	if text == "" {
		s.filters[v] = chosenFilter{}
		return
	}
	names := qlang.ArgOptions{NameField: "id", Numeric: true, Strict: true}
	if v == Nodes {
		names = qlang.ArgOptions{NameField: "name", Strict: true}
	}
	n, err := qlang.FromArguments([]string{text}, names)
	if s.wrong = err; err == nil {
		s.filters[v] = chosenFilter{text, n}
	}
}
