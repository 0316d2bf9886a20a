//go:build ganeti

package wire

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// draw makes the random calls of one seed.
type draw struct {
	*rand.Rand

	scene *scene
	count int
}

// scene is what is there on both sides, as far as calls want to know.
type scene struct {
	jobs   []string // calls whose jobs are there on both sides and have ended
	rules  []string // calls whose filter rules are there on both sides
	made   []string // calls that made a rule on either
	fields map[string][]field
}

// field is a field of queries.
type field struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Source string `json:"source"`
}

func newDraw(seed uint64, s *scene) *draw {
	return &draw{Rand: rand.New(rand.NewPCG(seed, 1)), scene: s}
}

// object and list are what arguments are made of.
type (
	object = map[string]any
	list   = []any
)

// id gives the next call its name.
func (d *draw) id() string {
	d.count++
	return strconv.Itoa(d.count)
}

// luxi is a call of a method.
func (d *draw) luxi(class, method string, args ...any) *call {
	if args == nil {
		args = list{}
	}
	return &call{ID: d.id(), Class: class, LUXI: &luxiCall{Method: method, Args: encode(args)}}
}

// raw is a message as it stands.
func (d *draw) raw(class, text string) *call {
	return &call{ID: d.id(), Class: class, LUXI: &luxiCall{Raw: &text}}
}

// submit is a job of these opcodes.
func (d *draw) submit(class string, ops ...object) *call {
	return d.luxi(class, "SubmitJob", asList(ops))
}

func asList(ops []object) list {
	out := make(list, len(ops))
	for i, o := range ops {
		out[i] = o
	}
	return out
}

// rapi is a request without a body.
func (d *draw) rapi(class, method, path string) *call {
	return &call{ID: d.id(), Class: class, RAPI: &rapiCall{Method: method, Path: path}}
}

// with is one with a body of JSON.
func (d *draw) with(class, method, path string, body any) *call {
	c := d.rapi(class, method, path)
	c.RAPI.Type, c.RAPI.Body = "application/json", string(encode(body))
	return c
}

// op is an opcode with an empty trail.
func op(id string, params object) object {
	out := object{"OP_ID": id, "reason": list{}}
	for name, v := range params {
		out[name] = v
	}
	return out
}

func encode(v any) json.RawMessage {
	return json.RawMessage(text(v))
}

// chance is true in so many of a hundred cases.
func (d *draw) chance(percent int) bool { return d.IntN(100) < percent }

// few is how many things of a request are odd: mostly one, for of several faults either
// side tells another first.
func (d *draw) few() int {
	if d.chance(5) {
		return 0
	}
	return 1
}

// pick chooses one.
func pick[T any](d *draw, from ...T) T { return from[d.IntN(len(from))] }

// some chooses a few, perhaps one twice, perhaps none.
func some[T any](d *draw, most int, from ...T) []T {
	out := make([]T, d.IntN(most+1))
	for i := range out {
		out[i] = pick(d, from...)
	}
	return out
}

// job names a job, now and then one that is not there.
func (d *draw) job() any {
	if len(d.scene.jobs) == 0 || d.chance(8) {
		return pick[any](d, 987654320, 0, "987654320", "7x", -1)
	}
	return "{job:" + d.recent(d.scene.jobs) + "}"
}

// oddJob stands where a job is meant. It is none that there is: under a number that is not
// that of a call each side has a job of its own, or none.
func (d *draw) oddJob() any {
	switch v := d.odd(); v {
	case 1, 7, "1":
		return noJob
	default:
		return v
	}
}

// rule names a filter rule.
func (d *draw) rule() any {
	if len(d.scene.rules) == 0 || d.chance(15) {
		return pick[any](d, noRule, "x", "")
	}
	return "{rule:" + d.recent(d.scene.rules) + "}"
}

func (d *draw) recent(names []string) string {
	last := min(len(names), 12)
	return names[len(names)-1-d.IntN(last)]
}

// odd is a value of any type.
func (d *draw) odd() any {
	return pick[any](d, nil, true, false, 0, 1, -1, 7, 1.5, "", "x", "1", list{}, list{"x"}, object{}, object{"x": 1})
}

// maker makes calls of a class that belong together; how often it is asked is its weight.
type maker struct {
	weight int
	make   func(d *draw) []*call
}

func one(make func(d *draw) *call) func(d *draw) []*call {
	return func(d *draw) []*call { return []*call{make(d)} }
}

// next makes the next calls.
func (d *draw) next(from []maker) []*call {
	sum := 0
	for _, m := range from {
		sum += m.weight
	}
	n := d.IntN(sum)
	for _, m := range from {
		if n -= m.weight; n < 0 {
			return m.make(d)
		}
	}
	return nil
}
