package shell

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
)

// Pair is a time of a job: seconds and microseconds since 1970. As data it is shown in
// RFC 3339.
type Pair [2]int64

// MarshalJSON writes the time.
func (p Pair) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Unix(p[0], p[1]*1000).UTC().Format(time.RFC3339Nano))
}

// StampLayout is how the classic tools write times.
const StampLayout = "2006-01-02 15:04:05.000000"

// Stamp shows a time of a job: [seconds, microseconds].
func Stamp(pair *Pair) string {
	if pair == nil {
		return "N/A"
	}
	return time.Unix(pair[0], pair[1]*1000).Format(StampLayout)
}

// Elapsed returns the seconds between two times, each [seconds, microseconds].
func Elapsed(from, to *Pair) float64 {
	return float64(to[0]-from[0]) + float64(to[1]-from[1])/1e6
}

// Moment shows a time to the second.
func Moment(t job.Time) string { return time.UnixMicro(int64(t)).Format(time.DateTime) }

// Span shows a length of time, given in seconds.
func Span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

// Ago is how long ago something was, as people say it.
func Ago(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := int(d / u.length); n > 0 {
			return Counted(n, u.name) + " ago"
		}
	}
	return "just now"
}

// Since is how long ago a moment was.
func (sh *Shell) Since(t job.Time) string {
	return Span(sh.Now().Sub(time.UnixMicro(int64(t))).Seconds())
}

// Expected says when something is expected, and upon what that rests.
func (sh *Shell) Expected(e *machine.Expectation) string {
	if e.At == 0 {
		return e.Text
	}
	if in := time.UnixMicro(int64(e.At)).Sub(sh.Now()).Round(time.Second); in > 0 {
		return fmt.Sprintf("in about %s (%s), %s", in, Moment(e.At), e.Text)
	}
	return "at any moment, " + e.Text
}

// Counted is a number of things: "1 job", "2 jobs".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// JoinIDs is a list of ids in words.
func JoinIDs(ids []job.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = id.String()
	}
	return strings.Join(parts, ", ")
}
