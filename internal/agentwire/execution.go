package agentwire

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/drover-project/drover/internal/fault"
)

// execution is one call that was begun, until its answer is not needed any more.
type execution struct {
	name   string
	once   bool // it is in the journal
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	lines  []string // the newest of the output
	before int      // how many came before those
	bytes  int      // of lines
	end    *end     // nil while it goes on
	news   chan struct{}
}

func newExecution(name string, cancel context.CancelCauseFunc) *execution {
	return &execution{name: name, cancel: cancel, news: make(chan struct{})}
}

// log takes a line of output in. The oldest go when there are too many.
func (x *execution) log(line string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lines, x.bytes = append(x.lines, line), x.bytes+len(line)+1
	for x.bytes > maxOutput && len(x.lines) > 1 {
		x.bytes -= len(x.lines[0]) + 1
		x.lines, x.before = x.lines[1:], x.before+1
	}
	x.tell()
}

// ended takes in what the call came to.
func (x *execution) ended(e *end) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.end = e
	x.tell()
}

func (x *execution) tell() {
	close(x.news)
	x.news = make(chan struct{})
}

// since returns what came behind a number of lines, and what is closed when there is more.
func (x *execution) since(from int) (frames []frame, more <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if from < x.before {
		frames, from = append(frames, frame{Lost: x.before - from}), x.before
	}
	for i := from - x.before; i < len(x.lines); i++ {
		frames = append(frames, frame{Line: &x.lines[i]})
	}
	if x.end != nil {
		frames = append(frames, frame{End: x.end})
	}
	return frames, x.news
}

// executions are those of a handler.
type executions struct {
	node    Served
	journal journal
	self    string          // how the agent is called, among those that the node has had
	life    context.Context // of the handler
	all     sync.WaitGroup

	mu       sync.Mutex
	byID     map[string]*execution
	running  int
	answered []string // those that have ended, the oldest first
	gone     names    // those that are forgotten: a copy of one that was on its way over a connection that was cut may still come
}

// names remembers the newest names of calls, keptNames at least.
type names struct{ newer, older map[string]struct{} }

// keptNames is more than the calls of half a minute, behind which a connection that was cut is noticed by both ends.
const keptNames = 1 << 16

func (n *names) add(id string) {
	if len(n.newer) >= keptNames || n.newer == nil {
		n.older, n.newer = n.newer, map[string]struct{}{}
	}
	n.newer[id] = struct{}{}
}

func (n *names) has(id string) bool {
	_, newer := n.newer[id]
	_, older := n.older[id]
	return newer || older
}

// begin returns the execution of a call; it is begun if that was not done before.
func (e *executions) begin(r *request, name string, once bool, do func(context.Context, Served, func(string)) (any, error)) (*execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.had(r.Had)
	x := e.byID[r.ID]
	if x == nil && once && r.Repeat {
		var err error
		if x, err = e.former(r, name); x != nil || err != nil {
			return x, err
		}
	}
	switch {
	case x != nil && x.name != name:
		return nil, fault.New(fault.Conflict, "the call %s is another one, %s", r.ID, x.name)
	case x != nil:
	case e.gone.has(r.ID):
		return nil, fault.New(fault.Unavailable, "the call %s was carried out, and is forgotten: this is a copy that comes late", r.ID)
	case e.life.Err() != nil:
		return nil, fault.New(fault.Unavailable, "the agent of node %s is shut down", e.node.Node())
	case e.running >= maxCalls:
		return nil, fault.New(fault.Busy, "node %s carries out %d calls already", e.node.Node(), maxCalls)
	default:
		ctx, cancel := context.WithCancelCause(e.life)
		x = newExecution(name, cancel)
		x.once = once
		e.byID[r.ID] = x
		e.running++
		e.all.Go(func() { e.carryOut(ctx, r.ID, x, do) })
	}
	return x, nil
}

// former is a call that an agent of before may have got, and that may not be done twice: what came of it, if that is known. It returns nothing
// for one that was not begun. Who calls it holds mu.
func (e *executions) former(r *request, name string) (*execution, error) {
	unknown := fault.New(fault.Unavailable, "it is not known whether node %s carried %s out: its agent was started again", e.node.Node(), name)
	if !e.journal.keeps() {
		if r.Agent != "" && r.Agent != e.self {
			return nil, unknown
		}
		return nil, nil
	}
	came, begun, err := e.journal.find(r.ID)
	switch {
	case err != nil || !begun:
		return nil, err
	case came == nil:
		return nil, unknown
	}
	x := newExecution(name, func(error) {})
	x.once, x.end = true, came
	e.byID[r.ID], e.answered = x, append(e.answered, r.ID)
	return x, nil
}

// close ends the life of all, and waits for them. None begins from then on.
func (e *executions) close(end func()) {
	e.mu.Lock()
	end()
	e.mu.Unlock()
	e.all.Wait()
}

func (e *executions) carryOut(ctx context.Context, id string, x *execution, do func(context.Context, Served, func(string)) (any, error)) {
	defer x.cancel(nil)
	answer := e.noted(ctx, id, x, do)
	e.mu.Lock()
	defer e.mu.Unlock()
	x.ended(answer)
	e.running--
	e.answered = append(e.answered, id)
	if len(e.answered) > maxAnswers {
		e.had(e.answered[:1])
	}
}

// noted carries a call out; one that may not be done twice is in the journal before it begins, and with what came of it before that is told.
func (e *executions) noted(ctx context.Context, id string, x *execution, do func(context.Context, Served, func(string)) (any, error)) *end {
	if !x.once {
		return carry(ctx, e.node, x.log, do)
	}
	if err := e.journal.begin(id); err != nil {
		return &end{Error: failed(err)}
	}
	answer := carry(ctx, e.node, x.log, do)
	_ = e.journal.end(id, answer) // without it the next agent knows less, and says so
	return answer
}

// carry carries a call out, and makes its end. A panic costs that call alone: the agent has others, and instances to watch.
func carry(ctx context.Context, n Served, log func(string), do func(context.Context, Served, func(string)) (any, error)) (e *end) {
	defer func() {
		if p := recover(); p != nil {
			e = &end{Error: failed(fault.New(fault.Internal, "the agent of node %s panicked: %v", n.Node(), p))}
		}
	}()
	result, err := do(ctx, n, log)
	if err != nil {
		return &end{Error: failed(err)}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return &end{Error: failed(fault.New(fault.Internal, "the answer cannot be written: %w", err))}
	}
	return &end{Result: text}
}

// had forgets answers that have come, or that nobody has asked for, for long. Who calls it holds mu.
func (e *executions) had(ids []string) {
	if len(ids) == 0 {
		return
	}
	for _, id := range ids {
		x := e.byID[id]
		if x == nil || !x.over() {
			continue
		}
		delete(e.byID, id)
		if e.gone.add(id); x.once {
			e.journal.forget(id)
		}
	}
	kept := e.answered[:0]
	for _, id := range e.answered {
		if e.byID[id] != nil {
			kept = append(kept, id)
		}
	}
	clear(e.answered[len(kept):])
	e.answered = kept
}

func (x *execution) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.end != nil
}

// cancelCall ends a call; false if there is none of that name.
func (e *executions) cancelCall(id string, why error) (known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.byID[id]
	if x != nil {
		x.cancel(why)
	}
	return x != nil
}
