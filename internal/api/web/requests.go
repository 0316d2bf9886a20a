package web

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
)

// request is one of the things that the page asks for, beside what views tell it.
type request struct {
	method, path string
	needs        rights.Right
	// serve returns what is answered as JSON, or nil where it has answered itself.
	serve func(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error)
}

// streamPath is where a tab's stream is.
const streamPath = "/stream"

// requests are all of them, with what they need of whoever asks.
var requests = []request{
	{"POST", "/session", rights.None, signIn},
	{"GET", "/session", rights.Known, whoAmI},
	{"DELETE", "/session", rights.Known, signOut},
	{"GET", streamPath, rights.Look, openTab},
	{"GET", "/api/fields/{item}", rights.Look, fieldsOf},
	{"GET", "/api/values/{item}", rights.Look, valuesOf},
	{"GET", "/api/catalogue", rights.Look, catalogue},
	{"GET", "/api/explain", rights.Look, explainQuery},
	{"GET", "/api/query.csv", rights.Look, csvOf},
	{"GET", "/api/deployments/{id}/plan", rights.Look, planOf},
	{"GET", "/api/deployments/{id}/compare/{other}", rights.Look, comparePlans},
	{"GET", "/api/plan", rights.Look, propose},
	// What is secret is hidden in what comes of an expression, but it can make of a secret what nobody recognizes: it is for who may see the state as it is.
	{"POST", "/api/environments/{id}/eval", rights.Change, evaluate},
	{"POST", "/api/deployments", rights.Change, deploy},
	{"POST", "/api/deployments/{id}/{do}", rights.Change, actOn},
	{"POST", "/api/instances/{id}/console", rights.Change, issueTicket},
	{"GET", consoles + "{kind}/{id}", rights.Change, openConsole},
	{"POST", "/api/jobs/cancel/preview", rights.Change, previewCancel},
	{"POST", "/api/jobs/cancel", rights.Change, cancelMany},
	{"POST", "/api/jobs/{id}/cancel", rights.Change, cancelJob},
	{"POST", "/api/jobs/{id}/priority", rights.Change, changePriority},
	{"GET", "/api/operations/{item}", rights.Look, operationsOf},
	{"POST", "/api/operations/{item}/{do}/preview", rights.Change, previewOperation},
	{"POST", "/api/operations/{item}/{do}", rights.Change, operate},
	{"POST", "/api/rules/preview", rights.Change, previewRule},
	{"POST", "/api/rules", rights.Change, changeRule},
}

// carryOut answers a request, if who asks may have it.
func (s *Server) carryOut(q request, w http.ResponseWriter, r *http.Request) {
	v, err := s.visitorOf(r)
	if q.needs != rights.None {
		if err == nil {
			err = permit(v, q.needs)
		}
		if err != nil {
			refuse(w, err)
			return
		}
	}
	switch out, err := q.serve(s, w, r, v); {
	case err != nil:
		refuse(w, err)
	case out != nil:
		tell(w, http.StatusOK, out)
	}
}

// permit says whether somebody may do something.
func permit(v *visitor, needs rights.Right) error {
	switch v.may.May(needs, rights.Of{}) {
	case rights.Allowed:
		return nil
	case rights.Unknown:
		return errUnknown
	}
	return fault.New(fault.Denied, "the account %s may not do this", v.name).WithHint("its line of the users file says read or write")
}

// Limits of a request's body.
const (
	maxBody   = 1 << 20
	maxValues = 10_000
)

// read reads the body of a request, a JSON object of known keys. Nothing but JSON is taken: a form of another site cannot send it.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return fault.New(fault.Invalid, "the body has to be application/json")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fault.New(fault.TooLarge, "the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return fault.New(fault.Invalid, "the body did not arrive: %w", err)
	}
	if err := intake.CheckValues(text, maxValues); err != nil {
		return err
	}
	if err := intake.Read(text, into); err != nil {
		return fault.New(fault.Invalid, "the body cannot be read: %w", err)
	}
	return nil
}

// because is who does something here and why, and that it was here: that hop says nothing, so that the words of it all are those that were typed. Without a reason nothing is done.
func (s *Server) because(v *visitor, why string) (queue.By, error) {
	if strings.TrimSpace(why) == "" {
		return queue.By{}, fault.New(fault.Invalid, "say why: it is kept with what is done").At("reason")
	}
	now := s.cfg.Now().UnixNano()
	trail := reason.Trail{{Source: reason.SourceUser, Reason: why, Time: now}, {Source: reason.SourceClient + ":drover-web", Time: now}}
	if len(why) > reason.MaxReason {
		return queue.By{}, fault.New(fault.TooLarge, "a reason has at most %d bytes", reason.MaxReason).At("reason")
	}
	return queue.By{Account: v.by, Trail: trail}, nil
}

// outcome is what became of a request about a job.
type outcome struct {
	Done    bool   `json:"done"`
	Message string `json:"message"`
}

func jobNumber(text string) (job.ID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, fault.New(fault.Invalid, "%q is no number of a job", fault.Clip(text, 50))
	}
	return job.ID(id), nil
}

// aboutJob reads the number of a job, what is asked for of it into wish, and who asks why, which wish has at reason when it is read.
func (s *Server) aboutJob(w http.ResponseWriter, r *http.Request, v *visitor, wish any, reason *string) (id job.ID, by queue.By, err error) {
	if id, err = jobNumber(r.PathValue("id")); err != nil {
		return id, by, err
	}
	if err = read(w, r, wish); err != nil {
		return id, by, err
	}
	by, err = s.because(v, *reason)
	return id, by, err
}

func cancelJob(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	var wish struct {
		Reason string `json:"reason"`
	}
	id, by, err := s.aboutJob(w, r, v, &wish, &wish.Reason)
	if err != nil {
		return nil, err
	}
	a, err := s.cfg.Queue.Cancel(r.Context(), id, false, by)
	return outcome{a.OK, a.Message}, err
}

func changePriority(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	var wish struct {
		Priority *int   `json:"priority"`
		Reason   string `json:"reason"`
	}
	id, by, err := s.aboutJob(w, r, v, &wish, &wish.Reason)
	if err == nil && wish.Priority == nil {
		err = fault.New(fault.Invalid, "say which priority the job is to have").At("priority")
	}
	if err != nil {
		return nil, err
	}
	a, err := s.cfg.Queue.ChangePriority(r.Context(), id, *wish.Priority, by)
	return outcome{a.OK, a.Message}, err
}

// ruleWish is a change of the filter rules: what package jobfilter takes as an edit, with its conditions as text, too.
type ruleWish struct {
	Edit json.RawMessage `json:"edit"`
	// When is the conditions as text, in place of those of the edit; empty for them.
	When   string `json:"when"`
	Reason string `json:"reason"`
	// Digest is that of the rules as a preview showed them.
	Digest string `json:"digest"`
}

// edit reads a change of the rules.
func (s *Server) edit(w http.ResponseWriter, r *http.Request, v *visitor, preview bool) (c queue.FilterChange, err error) {
	var wish ruleWish
	if err := read(w, r, &wish); err != nil {
		return c, err
	}
	if wish.Reason == "" && preview {
		wish.Reason = "a preview" // nothing comes of it
	}
	if c.By, err = s.because(v, wish.Reason); err != nil {
		return c, err
	}
	e, err := jobfilter.ParseEdit(wish.Edit)
	if err != nil {
		return c, err
	}
	if wish.When != "" {
		if e.Parts.Predicates, err = jobfilter.ParseWhen(wish.When); err != nil {
			return c, err
		}
	}
	if len(e.Parts.Reason) > 0 {
		return c, fault.New(fault.Invalid, "the reason stands beside the edit").At("edit.parts.reason")
	}
	if !preview && e.Verb == jobfilter.Put && wish.When == "" && len(e.Parts.Predicates) == 0 { // a field that was forgotten is not everything
		return c, fault.New(fault.Invalid, "say which jobs the rule concerns").At("when").WithHint("every job, if it is for all")
	}
	if e.Verb == jobfilter.Change {
		return c, fault.New(fault.Unsupported, "the page changes no part of a rule").WithHint("drover filter modify does")
	}
	e.Parts.Reason = c.By.Trail.Then(v.by.Entry(s.cfg.Now()))
	c.Edits, c.Digest = []jobfilter.Edit{e}, wish.Digest
	return c, nil
}

// previewDays is of how many days' jobs a preview tells what the rule would have done to them.
const previewDays = 7

func previewRule(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	c, err := s.edit(w, r, v, true)
	if err != nil {
		return nil, err
	}
	c.Digest = ""
	f, err := s.cfg.Queue.PreviewFilters(r.Context(), c, previewDays)
	if err != nil {
		return nil, err
	}
	return briefly(f), nil
}

// mostForecasts is how many jobs a preview names; it counts them all.
const mostForecasts = 50

// foreseen is a forecast with the first of the jobs that it is about, and how many there are by what becomes of them.
type foreseen struct {
	*jobfilter.Forecast
	Effects map[jobfilter.Effect]int `json:"effects"`
}

func briefly(f *jobfilter.Forecast) foreseen {
	out := foreseen{Forecast: f, Effects: map[jobfilter.Effect]int{}}
	for _, j := range f.Jobs {
		out.Effects[j.Effect]++
	}
	f.Jobs = f.Jobs[:min(len(f.Jobs), mostForecasts)]
	return out
}

// changeRule adds, replaces or deletes a rule, if the rules are still those of the preview.
func changeRule(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	c, err := s.edit(w, r, v, false)
	if err != nil {
		return nil, err
	}
	if c.Digest == "" {
		return nil, fault.New(fault.Invalid, "a change of the rules needs the digest of its preview").At("digest")
	}
	made, err := s.cfg.Queue.ChangeFilters(r.Context(), c)
	if err != nil {
		return nil, err
	}
	return map[string]any{"uuid": made.Changed[0].UUID(), "warnings": made.Warnings}, nil
}
