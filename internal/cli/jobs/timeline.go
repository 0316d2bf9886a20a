package jobs

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

// explainTimeline tells what became of a job, a line for each stretch of time.
func explainTimeline(sh *shell.Shell, b *strings.Builder, spans []job.Span) {
	if len(spans) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", sh.Paint(shell.Bold, "Timeline"))
	t := &shell.Table{}
	for i := range spans {
		s := &spans[i]
		took := ""
		switch {
		case s.To == 0:
			took = "for " + shell.Span(sh.Now().Sub(time.UnixMicro(int64(s.From))).Seconds()) + " until now"
		case s.To > s.From:
			took = "for " + shell.Span(float64(s.To-s.From)/1e6)
		}
		text := s.Text
		if word := s.Kind.Led(); word != "" {
			text = word + ": " + text
		}
		t.Add(" ", clock(s.From), took, text)
	}
	b.WriteString(t.String())
}

// clock shows a moment to the millisecond.
func clock(t job.Time) string { return time.UnixMicro(int64(t)).Format("2006-01-02 15:04:05.000") }
