//go:build ganeti

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stockganeti"
)

// calls are the kinds of calls and how often they come. Jobs take the reference a
// second or two each, questions some hundredths.
var calls = []maker{
	{230, one(query)}, {30, one(queryFields)}, {70, one(oldQuery)}, {25, one(garbage)},
	{45, rule}, {4, ruled}, {50, job}, {45, one(manage)}, {4, archived}, {3, drained},
	{18, create}, {55, one(modify)}, {32, one(power)}, {22, one(tags)}, {22, group}, {26, network}, {16, one(node)}, {18, one(clusterParams)}, {10, asking},
	{110, one(read)}, {110, write},
}

// run is a run of calls.
type run struct {
	*testing.T

	draw           *draw
	ganeti, drover *side
	accounts       *accounts
	record         *os.File
	baseline       map[string]bool // how the state differs whatever is done
}

// TestWire makes $DROVER_WIRE_CALLS random calls (200 unless it says otherwise), drawn
// from the seed $DROVER_WIRE_SEED, to a real Ganeti and to Drover. Every difference must
// be in the ledger. With $DROVER_WIRE_RECORD calls and answers are written to that file.
func TestWire(t *testing.T) {
	const node, cluster = "node1.drover.example", "dev.drover.example"
	bin, data := testkit.Build(t), t.TempDir()
	peer := stockganeti.Start(t, "droverwire", "GP_NODE="+node, "GP_CLUSTER="+cluster, "GP_BRIDGE=br0")
	if err := os.RemoveAll(peer.Path("srv", "os", "failing")); err != nil { // Drover has one operating system
		t.Fatal(err)
	}
	peer.Allocate(node)
	dev := testkit.Start(t, peer.Inside(bin, "dev", "--data", data, "--rapi", "127.0.0.1:0", "--nodes", "1", "--demo=false"), data)
	r := &run{T: t, draw: newDraw(setting(t, "DROVER_WIRE_SEED", 1), &scene{fields: queryFieldsOf(t)}), accounts: newAccounts(readLedger(t)),
		ganeti:   newSide(peer.LUXI(), "https://127.0.0.1:5080", stockganeti.User, stockganeti.Password, peer.Dial),
		drover:   newSide(filepath.Join(data, "luxi.sock"), dev.Ready.RAPI, dev.Ready.User, dev.Ready.Password, peer.Dial),
		baseline: map[string]bool{}}
	if path := os.Getenv("DROVER_WIRE_RECORD"); path != "" {
		var err error
		if r.record, err = os.Create(path); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.record.Close() }()
	}
	everything := slices.Sorted(maps.Keys(stateFields))
	r.all(r.draw.all())
	r.look(append(everything, "cluster", "cluster tags"), true)
	for r.accounts.calls.calls < int(setting(t, "DROVER_WIRE_CALLS", 200)) {
		if next := r.draw.next(calls); r.all(next) {
			r.look(looks[next[0].Class], false)
		}
	}
	report(t, r.accounts)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func queryFieldsOf(t *testing.T) map[string][]field {
	t.Helper()
	var fields map[string][]field
	testkit.DecodeConformance(t, &fields, "query-fields.json")
	return fields
}

// all makes calls one after the other, and tells whether any of them may have changed
// something that the state shows.
func (r *run) all(calls []*call) (changed bool) {
	for i, c := range calls {
		c.Follows = i > 0
		theirs, ours := r.both(c)
		if c.Prepare {
			r.rules(c, theirs, ours)
			continue
		}
		r.compare(c, theirs, ours)
		r.remember(c, theirs, ours)
		if c.changes() && (succeeded(theirs) || succeeded(ours)) || theirs.Rule != ours.Rule && (theirs.Rule == "" || ours.Rule == "") {
			changed = true
		}
	}
	return changed
}

// changes tells whether the call may change the cluster's configuration.
func (c *call) changes() bool {
	if c.RAPI != nil {
		return c.RAPI.Method != http.MethodGet
	}
	return strings.HasPrefix(c.LUXI.Method, "Submit")
}

// both sends a call to both: to Drover when it is known how it went in the reference.
func (r *run) both(c *call) (theirs, ours *answer) {
	theirs, err := r.ganeti.ask(r.Context(), c, false)
	if err != nil {
		r.Fatalf("Ganeti: %s (%s): %v", c, c.ID, err)
	}
	held := slices.ContainsFunc(theirs.Jobs, ended.held)
	if ours, err = r.drover.ask(context.WithoutCancel(r.Context()), c, held); err != nil {
		r.Fatalf("Drover: %s (%s): %v", c, c.ID, err)
	}
	if r.record != nil {
		line, err := json.Marshal(recorded{Call: c, Answer: theirs})
		if err == nil {
			_, err = r.record.Write(append(line, '\n'))
		}
		if err != nil {
			r.Fatal(err)
		}
	}
	return theirs, ours
}

// remember notes jobs and rules that are alike on both sides, for further calls.
func (r *run) remember(c *call, theirs, ours *answer) {
	if !r.accounts.apart && len(theirs.Jobs) > 0 && !slices.ContainsFunc(theirs.Jobs, ended.held) && c.Class != "archive" {
		r.draw.scene.jobs = append(r.draw.scene.jobs, c.ID)
	}
	r.rules(c, theirs, ours)
}

// rules notes which rules there are.
func (r *run) rules(c *call, theirs, ours *answer) {
	s := r.draw.scene
	if theirs.Rule != "" && ours.Rule != "" && c.Class == "rule" {
		s.rules = append(s.rules, c.ID)
	}
	if theirs.Rule != "" || ours.Rule != "" {
		s.made = append(s.made, c.ID)
	}
	if c.LUXI != nil && c.LUXI.Method == "DeleteFilter" || c.RAPI != nil && c.RAPI.Method == "DELETE" {
		gone := func(id string) bool { return strings.Contains(c.String(), "{rule:"+id+"}") }
		s.rules, s.made = slices.DeleteFunc(s.rules, gone), slices.DeleteFunc(s.made, gone)
	}
}

func (r *run) compare(c *call, theirs, ours *answer) []difference {
	found, err := compare(c, theirs, ours, r.drover.memory, r.ganeti.memory)
	if err != nil {
		r.Fatalf("%s (%s): %v", c, c.ID, err)
	}
	r.accounts.add(c, found)
	return found
}

// succeeded tells whether one of the jobs of a call did what it was for.
func succeeded(a *answer) bool {
	return slices.ContainsFunc(a.Jobs, func(e ended) bool { return e.Status == "success" || strings.Contains(string(e.OpStatus), `"success"`) })
}

// look compares what has become of the two, and makes them alike again where they are not.
// What differs even then is no matter of this run.
func (r *run) look(of []string, first bool) {
	for round := range 3 {
		var differ []*call
		names := map[string]bool{}
		for _, c := range r.draw.state(of) {
			c.Mends = round > 0
			theirs, ours := r.both(c)
			for _, d := range r.compare(c, theirs, ours) {
				k := r.accounts.ledger.classify(r.accounts.states.about(c), d)
				if (k == nil || !k.Aside) && !r.baseline[c.Class+d.at+d.reference+d.drover] {
					differ = append(differ, c)
				}
				if first {
					r.baseline[c.Class+d.at+d.reference+d.drover] = true
				}
			}
			if c.Class == "state of instance" && slices.Contains(differ, c) {
				maps.Copy(names, differing(c, theirs, ours, r))
			}
		}
		if first || len(differ) == 0 {
			return
		}
		r.all(r.draw.mend(differ, names))
	}
	r.Logf("the two cannot be made alike; all is made anew")
	r.all(r.draw.all())
	r.look(of, true) // what differs still is named, or told
}

// differing names the instances that are not alike.
func differing(c *call, theirs, ours *answer, r *run) map[string]bool {
	rows := [2]map[string]string{}
	for i, a := range []*answer{theirs, ours} {
		rows[i] = map[string]string{}
		m := r.ganeti.memory
		if i == 1 {
			m = r.drover.memory
		}
		v, err := shape(c, a, m)
		if err != nil {
			r.Fatal(err)
		}
		result, _ := v.(map[string]any)["result"].(map[string]any)
		data, _ := result["data"].([]any)
		for _, row := range data {
			name, _ := row.(map[string]any)["name"].([]any)
			rows[i][fmt.Sprint(name[1])] = text(row)
		}
	}
	out := map[string]bool{}
	for name := range maps.Keys(merge(rows[0], rows[1])) {
		out[name] = rows[0][name] != rows[1][name]
	}
	return out
}

func merge(a, b map[string]string) map[string]string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}
