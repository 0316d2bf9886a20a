package history

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// Each object of a history has a kind and a name. What is asked of it, what
// was answered, and what it is after that:
//
//	rule NAME   put priority, delete, read: absent, or its priority
//	job NAME    submit, cancel, read: absent, queued or canceled, and its id
//	tag NAME    add, remove, read: absent or there
//
// The outcome of what was not answered is not known: it may take effect at any
// time after it was asked, or never.

// input is what was asked of an object.
type input struct {
	object string // kind and name
	do     string
	value  int // the priority of a rule
}

// output is what was answered.
type output struct {
	unknown bool
	is      string // what a reader saw, or how a job was cancelled
	value   int    // the priority of a rule, the id of a job
	// revision is one that shows what was answered.
	revision int64
}

// object is the state of one object.
type object struct {
	is    string
	value int
}

const absent = "absent"

// never is when what is not known returns.
const never = math.MaxInt64

// transitions of each kind of object: whether an answer is right, and what the
// object is afterwards.
var transitions = map[string]func(o object, out output, value int) (right bool, next object){
	"rule put": func(_ object, _ output, value int) (bool, object) { return true, object{"there", value} },
	"rule delete": func(o object, out output, _ int) (bool, object) {
		return out.unknown || out.is == o.is, object{is: absent}
	},
	"rule read": read,

	"job submit": func(o object, out output, _ int) (bool, object) {
		switch {
		case o.is == absent: // the id of a submission that was not answered is not known yet
			return true, object{"queued", out.value}
		case out.unknown:
			return true, o
		case o.value == 0:
			o.value = out.value
		}
		return o.value == out.value, o
	},
	"job cancel": func(o object, out output, _ int) (bool, object) {
		if o.is == absent {
			return out.unknown, o // only what was acknowledged is cancelled
		}
		right := out.unknown || out.is == map[bool]string{true: "done", false: "too late"}[o.is == "queued"]
		o.is = "canceled"
		return right, o
	},
	"job read": read,

	"tag add": func(object, output, int) (bool, object) { return true, object{is: "there"} },
	"tag remove": func(o object, out output, _ int) (bool, object) {
		return out.unknown || out.is == o.is, object{is: absent}
	},
	"tag read": read,
}

// read is what a reader sees.
func read(o object, out output, _ int) (bool, object) {
	return out.unknown || out.is == o.is && (o.is != "there" || out.value == o.value), o
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		place := map[string]int{}
		for _, op := range history {
			name := op.Input.(input).object
			i, known := place[name]
			if !known {
				i = len(parts)
				place[name] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	},
	Init: func() any { return object{is: absent} },
	Step: func(state, in, out any) (bool, any) {
		i := in.(input)
		return transitions[kindOf(i.object)+" "+i.do](state.(object), out.(output), i.value)
	},
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		if o.unknown {
			return fmt.Sprintf("%s %s %d: ?", i.do, i.object, i.value)
		}
		return fmt.Sprintf("%s %s %d: %s %d", i.do, i.object, i.value, o.is, o.value)
	},
}
