package history

import (
	"fmt"
	"strings"

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

// Absent and There are what a reader sees of an object.
const (
	Absent = "absent"
	There  = "there"
)

// Input is what was asked of an object.
type Input struct {
	// Object is its kind and name.
	Object string
	// Do is put, delete, submit, cancel, add, remove or read, by its kind.
	Do string
	// Value is the priority of a rule.
	Value int
}

// Kind is the kind of the object.
func (i Input) Kind() string { return KindOf(i.Object) }

// KindOf is the kind of an object.
func KindOf(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	return kind
}

// Output is what was answered.
type Output struct {
	// Unknown: it was not, or with an error that does not say what happened.
	Unknown bool
	// Is is what a reader saw, what was there to delete, or how a job was cancelled: done or too late.
	Is string
	// Value is the priority of a rule, or the id of a job.
	Value int
	// Revision is one that shows what was answered; zero if none was told.
	Revision int64
}

// object is the state of one object.
type object struct {
	is    string
	value int
}

// transitions of each kind of object: whether an answer is right, and what the
// object is afterwards.
var transitions = map[string]func(o object, out Output, value int) (right bool, next object){
	"rule put": func(_ object, _ Output, value int) (bool, object) { return true, object{There, value} },
	"rule delete": func(o object, out Output, _ int) (bool, object) {
		return out.Unknown || out.Is == o.is, object{is: Absent}
	},
	"rule read": read,

	"job submit": func(o object, out Output, _ int) (bool, object) {
		switch {
		case o.is == Absent: // the id of a submission that was not answered is not known yet
			return true, object{"queued", out.Value}
		case out.Unknown:
			return true, o
		case o.value == 0:
			o.value = out.Value
		}
		return o.value == out.Value, o
	},
	"job cancel": func(o object, out Output, _ int) (bool, object) {
		if o.is == Absent {
			return out.Unknown, o // only what was acknowledged is cancelled
		}
		right := out.Unknown || out.Is == map[bool]string{true: "done", false: "too late"}[o.is == "queued"]
		o.is = "canceled"
		return right, o
	},
	"job read": read,

	"tag add": func(object, Output, int) (bool, object) { return true, object{is: There} },
	"tag remove": func(o object, out Output, _ int) (bool, object) {
		return out.Unknown || out.Is == o.is, object{is: Absent}
	},
	"tag read": read,
}

// read is what a reader sees.
func read(o object, out Output, _ int) (bool, object) {
	return out.Unknown || out.Is == o.is && (o.is != There || out.Value == o.value), o
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		place := map[string]int{}
		for _, op := range history {
			name := op.Input.(Input).Object
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
	Init: func() any { return object{is: Absent} },
	Step: func(state, in, out any) (bool, any) {
		i := in.(Input)
		return transitions[i.Kind()+" "+i.Do](state.(object), out.(Output), i.Value)
	},
	DescribeOperation: func(in, out any) string {
		i, o := in.(Input), out.(Output)
		if o.Unknown {
			return fmt.Sprintf("%s %s %d: ?", i.Do, i.Object, i.Value)
		}
		return fmt.Sprintf("%s %s %d: %s %d", i.Do, i.Object, i.Value, o.Is, o.Value)
	},
}
