package work

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

// Step is one of the things that an opcode does or would do.
type Step struct {
	Step  int           `json:"step"`
	Node  string        `json:"node"`
	Of    string        `json:"of"`
	State job.StepState `json:"state"`
	From  *shell.Pair   `json:"from"`
	To    *shell.Pair   `json:"to"`
	Text  string        `json:"text"`
}

// stepColors are those of the states of steps.
var stepColors = map[job.StepState]string{job.StepRunning: shell.Yellow, job.StepUndone: shell.Yellow, job.StepLeft: shell.Red}

// StepTable shows steps, each on a line.
func StepTable(sh *shell.Shell, steps []Step) string {
	t := &shell.Table{}
	for _, s := range steps {
		where := s.Node
		if where == "" {
			where = "inventory"
		}
		t.Add(" ", strconv.Itoa(s.Step), string(s.State), where, s.Text+s.took())
	}
	lines := strings.SplitAfter(t.String(), "\n")
	for i, s := range steps {
		if color := stepColors[s.State]; color != "" {
			lines[i] = sh.Paint(color, strings.TrimSuffix(lines[i], "\n")) + "\n"
		}
	}
	return strings.Join(lines, "")
}

// took says how long a step took.
func (s Step) took() string {
	if s.From == nil || s.To == nil {
		return ""
	}
	d := time.Duration(shell.Elapsed(s.From, s.To) * float64(time.Second))
	return " (" + d.Round(time.Millisecond).String() + ")"
}
