package app

import (
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
)

// Keep says what stays in the archive: jobs that ended within a time, and so many of the newest; and events and deployments of a time. The zero value has
// all jobs and deployments stay, and as many events as there are bounds for.
type Keep struct {
	For         time.Duration
	Jobs        int
	Events      time.Duration
	Deployments time.Duration
}

// ofJobs tells whether anything is said of jobs.
func (k Keep) ofJobs() bool { return k.For > 0 || k.Jobs > 0 }

// from is what that means at a moment.
func (k Keep) from(now time.Time) queue.Retention {
	r := queue.Retention{Before: job.Never, Keep: k.Jobs}
	if k.For > 0 {
		r.Before = job.At(now.Add(-k.For))
	}
	return r
}

// ageUnits are those of ages, beside Go's.
var ageUnits = map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour, 'y': 365 * 24 * time.Hour}

// parseKeep reads the setting archive-keep. A number alone is refused: it would keep 90 jobs where somebody means 90 days.
func parseKeep(text string) (k Keep, err error) {
	wrong := func(why string) error {
		return fault.New(fault.Invalid, "archive-keep: %s in %q", why, text).At("archive-keep").
			WithHint(`an age such as "90d", a number of jobs such as "100000 jobs", an age of events such as "events 2y", one of deployments such as "deployments 1y", or several: "90d, 100000 jobs, events 1y, deployments 1y"`)
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
		into, what := &k.For, ""
		for _, of := range []struct {
			kind string
			into *time.Duration
		}{{"events", &k.Events}, {"deployments", &k.Deployments}} {
			if age, named := strings.CutPrefix(word, of.kind+" "); named {
				into, what, word = of.into, " of "+of.kind, strings.TrimSpace(age)
				break
			}
		}
		age, ok := parseAge(word)
		if !ok || age <= 0 || *into > 0 {
			return Keep{}, wrong("there is no one age" + what)
		}
		*into = age
	}
	return k, nil
}

// longestAge is more than anybody keeps anything, and less than a time can be.
const longestAge = 200 * 365 * 24 * time.Hour

// parseAge reads an age: a number of days, weeks or years, or what Go takes for a time.
func parseAge(word string) (time.Duration, bool) {
	if n := len(word); n > 0 && ageUnits[word[n-1]] > 0 {
		count, err := strconv.ParseInt(word[:n-1], 10, 16)
		unit := ageUnits[word[n-1]]
		return time.Duration(count) * unit, err == nil && count < int64(longestAge/unit)
	}
	age, err := time.ParseDuration(word)
	return age, err == nil
}
