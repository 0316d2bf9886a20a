package rollout

import "sync"

// What is kept of the output of a task that failed, beside the log of its job: enough to see what went wrong.
const (
	keptLines = 10
	keptRunes = 300 // of a line
)

// tail keeps the last lines of what a task prints. It is safe for concurrent use: a line may be on its way when the wait for the task is given up.
type tail struct {
	mu   sync.Mutex
	last []string
}

func (t *tail) add(line string) {
	if r := []rune(line); len(r) > keptRunes {
		line = string(r[:keptRunes-1]) + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last) == keptLines {
		t.last = append(t.last[:0], t.last[1:]...)
	}
	t.last = append(t.last, line)
}

// lines are those that are kept, the last one last.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.last...)
}
