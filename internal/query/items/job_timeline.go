package items

import (
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/query"
)

// jobTimelineFields tell what a job waited for until it ended, and where it ran.
// What a job waits for at the moment is in its explanation alone.
func jobTimelineFields() []query.Field[jobRow] {
	return []query.Field[jobRow]{
		{Def: def("timeline", "Timeline", query.KindOther, "What the job waited for, from when to when, and when and where it ran"), From: query.InMemory,
			Get: ofWhole(func(j *job.Job) query.Cell { return known(timeline(j)) })},
		{Def: def("waited", "Waited", query.KindFloat, "Seconds that it waited in all, as far as they are over; a filter may give 90s or 1h30m"), From: query.InMemory, Mode: query.ModeDuration,
			Get: ofWhole(func(j *job.Job) query.Cell { return known(float64(j.Waited()) / 1e6) })},
		{Def: def("waited_for", "Waited_for", query.KindOther, "What it waited for, each once: "+job.WaitNames(true)), From: query.InMemory,
			Get: ofWhole(func(j *job.Job) query.Cell { return known(waitedFor(j)) })},
		{Def: def("ran_on", "Ran_on", query.KindOther, "Names of the nodes that its opcodes worked with"), From: query.InMemory,
			Get: ofWhole(func(j *job.Job) query.Cell { return known(ranOn(j)) })},
	}
}

func timeline(j *job.Job) []json.RawMessage {
	spans := j.Timeline()
	out := make([]json.RawMessage, len(spans))
	for i := range spans {
		out[i] = spans[i].Encode()
	}
	return out
}

func waitedFor(j *job.Job) []string {
	out := []string{}
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, s := range j.Timeline() {
		switch {
		case !s.Waiting():
		case s.Kind == job.WaitForDependency:
			for _, id := range s.Jobs {
				add("job " + id.String())
			}
		case s.On != "":
			add(string(s.Kind) + " " + s.On)
		default:
			add(string(s.Kind))
		}
	}
	return out
}

func ranOn(j *job.Job) []string {
	out := []string{}
	for i := range j.Ops {
		for _, n := range j.Ops[i].Nodes {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}
