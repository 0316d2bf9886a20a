// Package timeline draws a history: what happened where and when, as text and as a
// picture for browsers (SVG).
package timeline

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/sim/world"
)

// Text writes one line for each event. What the store does, and what became of each job in
// the end, is left out unless all is asked for.
func Text(w io.Writer, events []world.Event, all bool) error {
	var text strings.Builder
	for _, e := range events {
		if all || !aside(e) {
			fmt.Fprintln(&text, e)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// aside tells what is in the trace alone.
func aside(e world.Event) bool { return e.Lane == world.Store || e.Lane == world.End }

// Sizes of the picture, in pixels.
const (
	margin  = 90 // left of the lanes, for their names
	width   = 1500
	barHigh = 12
	laneGap = 8
	top     = 40
)

// bar is something that lasts.
type bar struct {
	lane, name, text string
	from, to         time.Duration
	row              int // below the lane's first
}

// lane is a row of the picture, or several where bars overlap.
type lane struct {
	name string
	bars []*bar
	rows []time.Duration // until when each is taken
	y    int
}

// SVG writes a picture: a lane for each controller, node and client; bars for lives, terms,
// scripts, pauses and cuts; marks for faults and, in red, for what broke.
func SVG(w io.Writer, title string, events []world.Event) error {
	d := &drawing{lanes: map[string]*lane{}}
	for _, e := range events {
		d.end = max(d.end, e.At)
		d.add(e)
	}
	d.close()
	_, err := io.WriteString(w, d.draw(title, events))
	return err
}

type drawing struct {
	lanes map[string]*lane
	open  []*bar
	end   time.Duration
}

func (d *drawing) lane(name string) *lane {
	l := d.lanes[name]
	if l == nil {
		l = &lane{name: name}
		d.lanes[name] = l
	}
	return l
}

// add takes an event in: bars are closed by the events that name them.
func (d *drawing) add(e world.Event) {
	if aside(e) {
		return
	}
	l := d.lane(e.Lane)
	switch e.Mark {
	case world.Opens:
		b := &bar{lane: e.Lane, name: e.Bar, text: e.Text, from: e.At}
		for b.row < len(l.rows) && l.rows[b.row] > b.from {
			b.row++
		}
		if b.row == len(l.rows) {
			l.rows = append(l.rows, 0)
		}
		l.rows[b.row] = 1<<63 - 1 // until it is closed
		l.bars = append(l.bars, b)
		d.open = append(d.open, b)
	case world.Closes:
		i := slices.IndexFunc(d.open, func(b *bar) bool { return b.lane == e.Lane && b.name == e.Bar })
		if i < 0 {
			return
		}
		d.open[i].to = e.At
		l.rows[d.open[i].row] = e.At
		d.open = slices.Delete(d.open, i, i+1)
	}
}

// close ends the bars that nothing ended.
func (d *drawing) close() {
	for _, b := range d.open {
		b.to = d.end
	}
}

// rank orders lanes: clients, controllers, nodes, and what is said of all.
func rank(name string) int {
	for i, prefix := range []string{"client", "c", "node"} {
		if strings.HasPrefix(name, prefix) && name != "check" {
			return i
		}
	}
	return 3
}

func (d *drawing) draw(title string, events []world.Event) string {
	var lanes []*lane
	for _, l := range d.lanes {
		lanes = append(lanes, l)
	}
	slices.SortFunc(lanes, func(a, b *lane) int {
		return cmp.Or(cmp.Compare(rank(a.name), rank(b.name)), cmp.Compare(a.name, b.name))
	})
	y := top
	var body strings.Builder
	for _, l := range lanes {
		l.y = y
		y += max(1, len(l.rows))*barHigh + laneGap
		fmt.Fprintf(&body, `<text x="4" y="%d">%s</text><line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#ddd"/>`+"\n", l.y+barHigh-2, html.EscapeString(l.name), margin, width, y-laneGap/2, y-laneGap/2)
		for _, b := range l.bars {
			d.bar(&body, l, b)
		}
	}
	for _, e := range events {
		if !aside(e) {
			d.mark(&body, d.lanes[e.Lane], e)
		}
	}
	d.axis(&body, y)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/><text x="4" y="16" font-size="13">%s</text>`+"\n%s</svg>\n", width+20, y+30, html.EscapeString(title), body.String())
}

func (d *drawing) x(at time.Duration) float64 {
	return margin + float64(width-margin)*at.Seconds()/max(d.end.Seconds(), 1)
}

// colours of bars, by the first word of their names.
var colours = map[string]string{"life": "#cfe3f5", "term": "#3b7dbb", "paused": "#f0b429", "cut": "#b4639c", "instance": "#6aa84f"}

func (d *drawing) bar(body *strings.Builder, l *lane, b *bar) {
	word, _, _ := strings.Cut(b.name, " ")
	fmt.Fprintf(body, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s, %v to %v</title></rect>`+"\n", d.x(b.from), l.y+b.row*barHigh,
		max(1, d.x(b.to)-d.x(b.from)), barHigh-2, cmp.Or(colours[word], "#999"), html.EscapeString(b.name+": "+b.text), b.from.Round(time.Millisecond), b.to.Round(time.Millisecond))
}

// mark draws what happened at a moment; what broke goes through all lanes.
func (d *drawing) mark(body *strings.Builder, l *lane, e world.Event) {
	x, title := d.x(e.At), html.EscapeString(strings.TrimSpace(e.String()))
	switch e.Mark {
	case world.Struck:
		fmt.Fprintf(body, `<path d="M%.1f %d l4 -8 l-8 0 z" fill="#d9480f"><title>%s</title></path>`+"\n", x, l.y+2, title)
	case world.Wrong:
		fmt.Fprintf(body, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="red" stroke-width="2"><title>%s</title></line>`+"\n", x, x, top-14, l.y+barHigh, title)
	case world.Point:
		fmt.Fprintf(body, `<circle cx="%.1f" cy="%d" r="2" fill="#555"><title>%s</title></circle>`+"\n", x, l.y+barHigh/2, title)
	}
}

// axis draws the time in seconds.
func (d *drawing) axis(body *strings.Builder, y int) {
	const steps = 15
	for i := range steps + 1 {
		at := d.end * time.Duration(i) / steps
		fmt.Fprintf(body, `<text x="%.1f" y="%d" fill="#777">%.1f s</text>`+"\n", d.x(at), y+14, at.Seconds())
	}
}
