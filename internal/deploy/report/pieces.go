package report

import (
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/plan"
)

// stepsOfPiece is how many steps a piece tells of.
const stepsOfPiece = 64

// piece is a part of a long list that is being written: entries, each behind a comma. Pieces are made at the same time,
// and put together in their order.
type piece struct {
	*writer

	text    []byte
	walker  *plan.Walker
	found   []int32 // ranks of the steps at the other ends
	reasons map[*expression.Decision][]byte
}

// order asks for the text of some of the sorted steps.
type order struct {
	from, to int
	text     chan []byte
}

// steps writes the entries that tell of steps, in the order of their names.
func (j *writer) steps(tell func(*piece, int32)) {
	workers := runtime.GOMAXPROCS(0)
	orders, line := make(chan order), make(chan order, 2*workers)
	spare := make(chan []byte, 4*workers) // texts that were written and can be used again
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			p := &piece{writer: j, walker: j.plan.Walker(), reasons: map[*expression.Decision][]byte{}}
			for o := range orders {
				select {
				case p.text = <-spare:
				default:
					p.text = nil
				}
				for _, s := range j.sorted[o.from:o.to] {
					tell(p, s)
				}
				o.text <- p.text
			}
		})
	}
	all.Go(func() {
		for from := 0; from < len(j.sorted); from += stepsOfPiece {
			o := order{from, min(from+stepsOfPiece, len(j.sorted)), make(chan []byte, 1)}
			line <- o
			orders <- o
		}
		close(orders)
		close(line)
	})
	first := true
	for o := range line {
		text := <-o.text
		if first && len(text) > 0 { // there is nothing that its comma divides it from
			_, _ = j.w.Write(text[1:])
			first = false
		} else {
			_, _ = j.w.Write(text)
		}
		select {
		case spare <- text[:0]:
		default:
		}
	}
	all.Wait()
}

func (p *piece) raw(s string) { p.text = append(p.text, s...) }

func (p *piece) value(v any) { p.text = plan.AppendCanonical(p.text, v) }

// edges writes the relations of a step in one direction, sorted.
func (p *piece) edges(step int32, required bool) {
	p.found = p.found[:0]
	p.walker.Edges(step, required, func(other int32) { p.found = append(p.found, p.ranks[other]) })
	slices.Sort(p.found)
	from := p.quoted[step]
	for _, r := range p.found {
		p.raw(",\n\"")
		p.raw(from)
		p.raw(" -> ")
		p.raw(p.quoted[p.sorted[r]])
		p.raw(`"`)
	}
}

// step writes one task on one node.
func (p *piece) step(i int32) {
	s := &p.plan.Steps[i]
	p.raw(",\n" + `{"fail_on_error": `)
	p.value(s.FailOnError)
	p.raw(`, "id": `)
	p.value(s.ID())
	p.raw(`, "node": `)
	p.value(p.plan.Nodes[s.Node])
	if s.Run {
		p.raw(`, "parameters": `)
		p.value(s.Parameters)
	}
	p.raw(`, "run": `)
	p.text = strconv.AppendBool(p.text, s.Run)
	p.raw(`, "type": `)
	p.value(s.Type)
	p.raw(`, "why": `)
	p.why(s)
	p.raw("}")
}

func (p *piece) why(s *plan.Step) {
	p.raw(`{"reason": `)
	p.value(s.Why.Kind)
	if s.Why.Kind == plan.ByCondition {
		p.raw(`, "condition": `)
		p.value(s.Why.Condition)
		p.raw(`, "value": `)
		p.text = append(p.text, bounded(s.Why.Value)...)
		p.raw(`, "compared": [`)
		for i, d := range s.Why.Decisions {
			if i > 0 {
				p.raw(",")
			}
			p.decision(d)
		}
		p.raw("]")
	}
	if s.Why.Event != "" {
		p.raw(`, "event": `)
		p.value(s.Why.Event)
	}
	p.raw("}")
}

// decision writes a comparison, which many steps may share.
func (p *piece) decision(d *expression.Decision) {
	text, done := p.reasons[d]
	if !done {
		text = appendDecision(nil, d)
		p.reasons[d] = text
	}
	p.text = append(p.text, text...)
}
