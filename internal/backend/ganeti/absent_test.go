package ganeti

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
)

// TestAbsenceIsAStatementOfTheCluster: an instance is not there when the cluster says so in its own words, asked for it and in two whole lists
// that follow one another. Whatever else stands between us and the cluster may say, the look fails.
func TestAbsenceIsAStatementOfTheCluster(t *testing.T) {
	const page = `<html><body>welcome</body></html>`
	other, it := `[{"name":"snf-2","uuid":"u2"}]`, `[{"name":"snf-2","uuid":"u2"},{"name":"renamed","uuid":"u1"}]`
	for what, c := range map[string]struct {
		status int
		named  string // the answer to a question for the instance, and for its UUID
		lists  []string
		absent bool
	}{
		"it is gone":                             {404, notFound, []string{other, other}, true},
		"it was the only one":                    {404, notFound, []string{`[]`, `[]`}, true},
		"a page that says that nothing is found": {404, page, []string{other, other}, false},
		"a page that is well":                    {200, page, []string{other, other}, false},
		"a redirect":                             {302, ``, []string{other, other}, false},
		"nothing":                                {200, ``, []string{other, other}, false},
		"pages in place of lists":                {404, notFound, []string{page, page}, false},
		"a list that has it":                     {404, notFound, []string{it}, false},
		"a list that was short":                  {404, notFound, []string{other, it}, false},
		"a list that breaks off":                 {404, notFound, []string{other, `[{"name":"snf-2","uuid":"u2"}`}, false},
		"a list without UUIDs":                   {404, notFound, []string{other, `[{"name":"snf-2"}]`}, false},
		"a list of nothing":                      {404, notFound, []string{other, `[null]`}, false},
		"an object in place of a list":           {404, notFound, []string{other, `{}`}, false},
	} {
		t.Run(what, func(t *testing.T) {
			var listed atomic.Int32
			cluster := stock(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/2/instances" {
					n := int(listed.Add(1))
					_, _ = w.Write([]byte(c.lists[min(n, len(c.lists))-1]))
					return
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.named))
			})
			sight, err := cluster.Look(t.Context(), server.Ref{UUID: "u1", Name: "snf-1"}, nil)
			if c.absent != (err == nil) || err != nil && fault.CodeOf(err) != fault.Unavailable {
				t.Errorf("%+v, %v", sight, err)
			}
			if c.absent && (sight.Instance || sight.Proven || !strings.Contains(sight.Absent, "two whole lists lack it") || listed.Load() != wholeLists) {
				t.Errorf("after %d lists: %+v", listed.Load(), sight)
			}
		})
	}
}

// TestOfWhatIsBeingMadeNoListsAreAskedFor: they may be long, and nothing hangs upon an instance that was never seen while its creation runs. When that has ended,
// they are looked through for its name.
func TestOfWhatIsBeingMadeNoListsAreAskedFor(t *testing.T) {
	status, listed := `"running"`, 0
	cluster := stock(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2/instances":
			listed++
			_, _ = w.Write([]byte(`[{"name":"snf-1","uuid":"u1"}]`))
		case "/2/jobs/7":
			_, _ = w.Write([]byte(`{"status":` + status + `,"opstatus":[` + status + `],"opresult":[null]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(notFound))
		}
	})
	ref, jobs := server.Ref{Name: "snf-1"}, []job.ID{7}
	if sight, err := cluster.Look(t.Context(), ref, jobs); err != nil || listed != 0 || sight.Absent == "" {
		t.Errorf("while it is made: %+v, %v, %d lists", sight, err, listed)
	}
	status = `"success"`
	if sight, err := cluster.Look(t.Context(), ref, jobs); !fault.Is(err, fault.Unavailable) || listed != 1 {
		t.Errorf("made, and not found: %+v, %v, %d lists", sight, err, listed)
	}
}
