package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// mostCancelled is how many jobs are cancelled at once.
const mostCancelled = 1000

// manyWish is a wish to cancel all jobs that a filter lets through.
type manyWish struct {
	Filter string `json:"filter"`
	Reason string `json:"reason"`
	// IDs are the jobs that a preview named. If others fit by now, nothing is done; those that have ended meanwhile are left out.
	IDs []job.ID `json:"ids"`
}

// meant is a job that would be cancelled, and what would become of it.
type meant struct {
	ID      job.ID     `json:"id"`
	Status  job.Status `json:"status"`
	Summary []string   `json:"summary"`
	Text    string     `json:"text"`
	// ends: it ends at once, as it has not begun.
	ends bool
}

// meantBy returns the jobs that have not ended and that a filter lets through, oldest first.
func (s *Server) meantBy(r *http.Request, filter string) ([]meant, error) {
	if strings.TrimSpace(filter) == "" { // a filter that was forgotten is not everything
		return nil, fault.New(fault.Invalid, "say which jobs are to be cancelled").At("filter").WithHint(`id > 0, if it is all of them`)
	}
	wanted, err := typed(filter)
	if err != nil {
		return nil, err
	}
	open, err := qlang.ParseText(unfinished)
	if err != nil {
		return nil, err
	}
	result, err := s.cfg.Querier.Query(r.Context(), query.Request{What: "job", Fields: []string{"id", "status", "summary"}, Filter: &qlang.And{Args: []qlang.Node{open, wanted}},
		Options: query.Options{Sort: query.ParseSort([]string{"id"}), Limit: mostCancelled + 1}})
	if err != nil {
		return nil, err
	}
	if result.Len() > mostCancelled {
		return nil, fault.New(fault.TooLarge, "more than %d jobs fit", mostCancelled).WithHint("narrow the filter; drover job cancel --filter has no limit")
	}
	jobs := []meant{}
	for row := range result.Rows() {
		id, known := row[0].Value.(int64)
		if !known {
			continue // one that cannot be read, which nobody can cancel
		}
		m := meant{ID: job.ID(id), Summary: []string{}}
		status, _ := row[1].Value.(string)
		m.Status = job.Status(status)
		m.Summary, _ = row[2].Value.([]string)
		f := job.ForecastCancel(m.ID, m.Status, false)
		m.Text, m.ends = f.Message, f.OK
		jobs = append(jobs, m)
	}
	return jobs, nil
}

// manyMeant is what cancelling many jobs would do.
type manyMeant struct {
	Headline string   `json:"headline"`
	IDs      []job.ID `json:"ids"`
	// Jobs are the first of them.
	Jobs []meant `json:"jobs"`
}

func previewCancel(s *Server, w http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	var wish manyWish
	if err := read(w, r, &wish); err != nil {
		return nil, err
	}
	jobs, err := s.meantBy(r, wish.Filter)
	if err != nil {
		return nil, err
	}
	out, at := manyMeant{IDs: []job.ID{}}, 0
	for i := range jobs {
		out.IDs = append(out.IDs, jobs[i].ID)
		if jobs[i].ends {
			at++
		}
	}
	out.Headline = fmt.Sprintf("%d of them would end at once", at)
	if left := len(jobs) - at; left > 0 {
		out.Headline += fmt.Sprintf(", and %d after the opcode that runs", left)
	}
	if len(jobs) == 0 {
		out.Headline = "no job that has not ended fits"
	}
	out.Jobs = jobs[:min(len(jobs), mostForecasts)]
	return out, nil
}

// cancelMany cancels the jobs that a preview named and that fit still. If others fit, too, it does nothing: nobody has seen them.
func cancelMany(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	var wish manyWish
	if err := read(w, r, &wish); err != nil {
		return nil, err
	}
	by, err := s.because(v, wish.Reason)
	if err != nil {
		return nil, err
	}
	if len(wish.IDs) == 0 {
		return nil, fault.New(fault.Invalid, "cancelling many jobs needs those that a preview named").At("ids")
	}
	jobs, err := s.meantBy(r, wish.Filter)
	if err != nil {
		return nil, err
	}
	seen := map[job.ID]bool{}
	for _, id := range wish.IDs {
		seen[id] = true
	}
	unseen := slices.IndexFunc(jobs, func(m meant) bool { return !seen[m.ID] })
	if unseen >= 0 {
		return nil, fault.New(fault.Conflict, "job %d fits by now, too, which the preview did not show", jobs[unseen].ID).WithHint("look at the jobs again; none was cancelled")
	}
	done := 0
	for _, m := range slices.Backward(jobs) { // jobs that depend on others go with them: first those
		a, err := s.cfg.Queue.Cancel(r.Context(), m.ID, false, by)
		if err != nil {
			return nil, fault.New(fault.CodeOf(err), "%d were cancelled, and then: %w", done, err)
		}
		if a.OK {
			done++
		}
	}
	text := fmt.Sprintf("%d were cancelled.", done)
	if left := len(jobs) - done; left > 0 {
		text += fmt.Sprintf(" %d run, and end after their opcode.", left)
	}
	if left := len(wish.IDs) - len(jobs); left > 0 {
		text += fmt.Sprintf(" %d had ended already.", left)
	}
	return outcome{done > 0, text}, nil
}
