package simulate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/order"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/sim/timeline"
	"github.com/drover-project/drover/internal/sim/world"
)

// live lives through the history of a plan.
func live(t *testing.T, p plan.Plan, o world.Options) (r *world.Result) {
	cryptotest.SetGlobalRandom(t, p.Seed)
	order.Begin(p.Seed<<16 + p.Order)
	synctest.Test(t, func(*testing.T) { r = world.Run(p, o) })
	order.End()
	return r
}

// answerTime bounds how long it is looked for an order in which answers agree.
const answerTime = time.Minute

// judge is all that is broken of a history, also in what clients were told.
func judge(r *world.Result) []check.Broken {
	broken := r.Broken
	v := r.Record.Check(answerTime)
	if v.Wrong != "" {
		broken = append(broken, check.Broken{At: r.Length, Invariant: check.Answers, Text: "\n" + v.Wrong})
	}
	for _, why := range v.StaleWrong {
		broken = append(broken, check.Broken{At: r.Length, Invariant: check.OldAnswers, Text: why})
	}
	return broken
}

// TestHistories has some histories in each run of the tests, in another order of
// goroutines each time: so what fails is told whole.
func TestHistories(t *testing.T) {
	histories := uint64(300)
	if testing.Short() {
		histories = 50
	}
	o := world.Options{Dir: t.TempDir(), Keep: true, Reached: new(check.Reached)}
	for seed := range histories {
		fails(t, live(t, plan.Draw(seed), o))
	}
	t.Log(o.Reached)
	for _, place := range rare {
		if o.Reached.Times()[place] == 0 && !testing.Short() {
			t.Errorf("no history came by this: %s", place)
		}
	}
}

// rare are places that some of a few hundred histories come by, or they mean little.
var rare = []string{
	"an order of an old leader is refused", "the answer of a commit is lost", "somebody else takes the name of a server that is being made",
	"fault: kill", "fault: pause", "fault: reset", "fault: silence", "fault: slow", "fault: lose",
	"jobs: canceled", "jobs: error", "jobs: success",
}

// fails fails the test if something is broken, and tells the history.
func fails(t *testing.T, r *world.Result) {
	t.Helper()
	broken := judge(r)
	if len(broken) == 0 {
		return
	}
	var text bytes.Buffer
	if err := timeline.Text(&text, r.Events, false); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%v\n%s\n%s", broken, r.Plan.JSON(), text.String())
}

// TestFound lives through the plans of what was found once, in several orders each.
func TestFound(t *testing.T) {
	const orders = 5
	files, err := filepath.Glob("testdata/found/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	o := world.Options{Dir: t.TempDir(), Keep: true, Reached: new(check.Reached)}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for range orders {
				fails(t, live(t, p, o))
				p.Order++
			}
		})
	}
}
