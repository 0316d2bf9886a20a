package app

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
)

// Keep says what stays in the archive: jobs that ended within a time, and so many of the newest. The zero value has all stay.
type Keep struct {
	For  time.Duration
	Jobs int
}

// from is what that means at a moment.
func (k Keep) from(now time.Time) queue.Retention {
	r := queue.Retention{Before: job.Never, Keep: k.Jobs}
	if k.For > 0 {
		r.Before = job.At(now.Add(-k.For))
	}
	return r
}

// ageUnits are those of ages, beside Go's.
var ageUnits = map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// parseKeep reads the setting archive-keep. A number alone is refused: it would keep 90 jobs where somebody means 90 days.
func parseKeep(text string) (k Keep, err error) {
	wrong := func(why string) error {
		return fault.New(fault.Invalid, "archive-keep: %s in %q", why, text).At("archive-keep").
			WithHint(`an age such as "90d", a number of jobs such as "100000 jobs", or both: "90d, 100000 jobs"`)
	}
	if strings.TrimSpace(text) == "" {
		return k, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if count, jobs := strings.CutSuffix(word, " jobs"); jobs {
			n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 32)
			if err != nil || n < 1 || k.Jobs > 0 {
				return Keep{}, wrong("there is no one number of jobs, 1 at least,")
			}
			k.Jobs = int(n)
			continue
		}
		age, ok := parseAge(word)
		if !ok || age <= 0 || k.For > 0 {
			return Keep{}, wrong("there is no one age")
		}
		k.For = age
	}
	return k, nil
}

// parseAge reads an age: a number of days or weeks, or what Go takes for a time.
func parseAge(word string) (time.Duration, bool) {
	if n := len(word); n > 0 && ageUnits[word[n-1]] > 0 {
		count, err := strconv.ParseInt(word[:n-1], 10, 16)
		return time.Duration(count) * ageUnits[word[n-1]], err == nil
	}
	age, err := time.ParseDuration(word)
	return age, err == nil
}
