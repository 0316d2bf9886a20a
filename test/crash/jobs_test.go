package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// record is what the clients of a cluster know.
type record struct {
	mu   sync.Mutex
	next int
	// acknowledged holds the job of each name that SubmitJob has returned.
	acknowledged map[string]int
	// unknown holds the submissions that were cut off, by name.
	unknown map[string][]any
	// ended holds what was seen of jobs that had ended: it may not change.
	ended map[int]string
	// archived are jobs whose archiving was acknowledged.
	archived map[int]bool
	// rules are filter rules of which it is known whether they are there.
	rules map[string]bool
}

func newRecord() *record {
	return &record{acknowledged: map[string]int{}, unknown: map[string][]any{}, ended: map[int]string{},
		archived: map[int]bool{}, rules: map[string]bool{}}
}

// submission makes the next job: its name, which is its submission key too, and
// its opcodes. All kinds but the creation of an instance can be resumed.
func (r *record) submission() (name string, ops []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	name = fmt.Sprintf("job-%d", r.next)
	op := func(id string, more map[string]any) map[string]any {
		out := map[string]any{"OP_ID": id, "reason": [][]any{{"user", name, 1}}}
		maps.Copy(out, more)
		return out
	}
	delay := op("OP_TEST_DELAY", map[string]any{"duration": 0.001})
	tag := op("OP_TAGS_SET", map[string]any{"kind": "cluster", "name": nil, "tags": []string{tagOf(r.next)}})
	switch r.next % 6 {
	case 0:
		return name, []any{delay}
	case 1:
		return name, []any{tag}
	case 2:
		return name, []any{op("OP_INSTANCE_CREATE", map[string]any{
			"instance_name": name + ".example", "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": 4}}, "nics": []any{},
			"name_check": false, "ip_check": false, "os_type": "counted", "pnode": fmt.Sprintf("node%d.drover.example", 1+r.next/6%2), "start": false,
		})}
	case 3:
		return name, []any{delay, tag, delay}
	case 4:
		dependent := op("OP_TEST_DELAY", map[string]any{"duration": 0.001})
		if id, ok := r.acknowledged[fmt.Sprintf("job-%d", r.next-4)]; ok {
			dependent["depends"] = []any{[]any{id, []string{}}}
		}
		return name, []any{dependent}
	default:
		return name, []any{op("OP_TEST_DELAY", map[string]any{"duration": 0.02})}
	}
}

// submit submits a job with its name as key.
func (r *record) submit(t *testing.T, client *luxiwire.Client, name string, ops []any) (id int, err error) {
	err = client.Call(t.Context(), "SubmitJob", []any{ops, name}, &id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.unknown[name] = ops
		return 0, err
	}
	delete(r.unknown, name)
	r.acknowledged[name] = id
	return id, nil
}

// tagOf is the tag that a job sets. A third of the jobs set one, and an object
// has 4096 at most, so in a long run they begin anew.
func tagOf(number int) string { return fmt.Sprintf("tag-job-%d", number%12000) }

func (r *record) sawEnd(id int, end string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[id] = end
}

// tidy archives some jobs that have ended, and adds and deletes filter rules that
// hold for no job.
func (r *record) tidy(t *testing.T, client *luxiwire.Client, id int) error {
	if id%2 == 0 {
		var done bool
		if err := client.Call(t.Context(), "ArchiveJob", []any{id}, &done); err != nil {
			return err
		}
		r.mu.Lock()
		r.archived[id] = done
		r.mu.Unlock()
	}
	if id%9 != 0 {
		return nil
	}
	var uuid string
	none := []any{[]any{"jobid", []any{"<", "id", 0}}}
	if err := client.Call(t.Context(), "ReplaceFilter", []any{nil, 0, none, "PAUSE", [][]any{}}, &uuid); err != nil {
		return err
	}
	r.setRule(uuid, true)
	if id%27 == 0 {
		return nil
	}
	r.mu.Lock()
	delete(r.rules, uuid) // not known while it is being deleted
	r.mu.Unlock()
	if err := client.Call(t.Context(), "DeleteFilter", []any{uuid}, nil); err != nil {
		return err
	}
	r.setRule(uuid, false)
	return nil
}

func (r *record) setRule(uuid string, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules[uuid] = there
}

// load submits jobs from several clients until the cluster is gone, and ends it
// after a number of acknowledged jobs.
func (r *record) load(t *testing.T, c *cluster, killAfter int, end func()) {
	t.Helper()
	const clients = 4
	acknowledged := make(chan struct{}, killAfter+clients)
	var all sync.WaitGroup
	for range clients {
		client := c.dial()
		all.Go(func() {
			for {
				name, ops := r.submission()
				id, err := r.submit(t, client, name, ops)
				if err != nil {
					return
				}
				select {
				case acknowledged <- struct{}{}:
				default:
				}
				if id%3 > 0 {
					continue
				}
				end, err := waitFinal(t, client, id)
				if err != nil {
					return
				}
				r.sawEnd(id, end)
				if r.tidy(t, client, id) != nil {
					return
				}
			}
		})
	}
	for range killAfter {
		<-acknowledged
	}
	end()
	all.Wait()
	c.gone()
}

// resubmit repeats the submissions that were cut off. The ones that had been taken
// must be found again by their keys.
func (r *record) resubmit(t *testing.T, c *cluster) {
	t.Helper()
	client := c.dial()
	for name, ops := range maps.Clone(r.unknown) {
		if _, err := r.submit(t, client, name, ops); err != nil {
			t.Fatalf("submit %s again: %v", name, err)
		}
	}
}

// check compares the jobs that there are with what the clients know.
func (r *record) check(t *testing.T, c *cluster) {
	t.Helper()
	byName := map[string]int{}
	client := c.dial()
	for _, row := range jobs(t, client) {
		if id, twice := byName[row.name()]; twice {
			t.Errorf("%s was made twice: jobs %d and %d", row.name(), id, row.id)
		}
		byName[row.name()] = row.id
		if r.archived[row.id] && !row.archived {
			t.Errorf("job %d had been archived, now it is not", row.id)
		}
		if seen, ok := r.ended[row.id]; ok && seen != row.status+" "+row.ended {
			t.Errorf("job %d had ended as %s, now it is %s %s", row.id, seen, row.status, row.ended)
		}
	}
	for name, id := range r.acknowledged {
		if byName[name] != id {
			t.Errorf("%s was acknowledged as job %d, now it is %d", name, id, byName[name])
		}
	}
	r.checkRules(t, client)
}

func (r *record) checkRules(t *testing.T, client *luxiwire.Client) {
	t.Helper()
	var rows [][]string
	if err := client.Call(t.Context(), "QueryFilters", []any{nil, []string{"uuid"}}, &rows); err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, row := range rows {
		there[row[0]] = true
	}
	for uuid, want := range r.rules {
		if there[uuid] != want {
			t.Errorf("rule %s is there: %v, want %v", uuid, there[uuid], want)
		}
	}
}

// TestClusterLosesNoJob kills a whole cluster under load, again and again. Every
// job that was acknowledged is there afterwards, once, and comes to an end once.
func TestClusterLosesNoJob(t *testing.T) {
	bin := testkit.Build(t)
	stores.Each(t, func(t *testing.T, url string) { losesNoJob(t, controller{bin: bin, data: t.TempDir(), store: url}) })
}

// TestClusterOfAgentsLosesNoJob is the same with nodes that are processes of their own.
func TestClusterOfAgentsLosesNoJob(t *testing.T) {
	losesNoJob(t, controller{bin: testkit.Build(t), data: t.TempDir(), agents: true})
}

func losesNoJob(t *testing.T, from controller) {
	t.Helper()
	installs := filepath.Join(from.data, "installs")
	installCountedOS(t, from.data, installs)
	r := newRecord()
	killed, stopped := 0, 0
	rounds(t, func(round int) {
		if round%3 == 1 { // also while it starts and recovers
			from.killStarting(t)
			killed++
		}
		c := from.start(t)
		r.check(t, c)
		r.resubmit(t, c)
		const most = 150
		end := c.kill
		if round%5 == 4 {
			end = c.terminate
			stopped++
		} else {
			killed++
		}
		r.load(t, c, 1+rand.IntN(most), end)
	})
	c := from.start(t)
	r.resubmit(t, c)
	client := c.dial()
	for _, row := range jobs(t, client) {
		if row.final() {
			continue
		}
		if _, err := waitFinal(t, client, row.id); err != nil {
			t.Fatal(err)
		}
	}
	r.check(t, c)
	r.checkEnds(t, client, installs)
	c.stop()
	if t.Failed() {
		return
	}
	t.Logf("%d times killed, %d times stopped under load; %d jobs acknowledged, %d seen to end, %d archived, %d rules changed: nothing lost, nothing twice",
		killed, stopped, len(r.acknowledged), len(r.ended), len(r.archived), len(r.rules))
}

// installCountedOS gives both nodes an operating system whose creation script
// notes each run in a file.
func installCountedOS(t *testing.T, data, installs string) {
	t.Helper()
	for _, node := range []string{"node1", "node2"} {
		dir := filepath.Join(data, "nodes", node+".drover.example", "os", "counted")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"ganeti_api_version": "20\n",
			"create":             "#!/bin/sh\necho \"$INSTANCE_NAME\" >>'" + installs + "'\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wentOn is how often a job went on behind a restart, or was run again, by what its log tells: a script that was under way then begins from
// the beginning.
func wentOn(t *testing.T, client *luxiwire.Client, id int) int {
	t.Helper()
	var rows [][]json.RawMessage
	if err := client.Call(t.Context(), "QueryJobs", []any{[]int{id}, []string{"oplog"}}, &rows); err != nil {
		t.Fatal(err)
	}
	log := string(rows[0][0])
	return strings.Count(log, "it goes on: ") + strings.Count(log, "it is run again")
}

// checkEnds checks how the jobs ended, and what they did, once all have ended.
func (r *record) checkEnds(t *testing.T, client *luxiwire.Client, installs string) {
	t.Helper()
	installed := countLines(t, installs)
	tags := tagsOf(t, client)
	if len(installed) == 0 {
		t.Error("no creation script ran")
	}
	for _, row := range jobs(t, client) {
		name := row.name()
		create := strings.Contains(row.results, "node") // its result names the nodes
		n := installed[name+".example"]
		switch {
		case !row.final():
			t.Errorf("job %d is %s", row.id, row.status)
		case row.status == "success" && create && (n == 0 || n > 1+wentOn(t, client, row.id)):
			t.Errorf("job %d succeeded, its creation script ran %d times", row.id, n)
		case n > 1 && row.status != "success":
			t.Errorf("the creation script of job %d ran %d times", row.id, n)
		case row.status == "error": // whatever was under way goes on
			t.Errorf("job %d failed: %s", row.id, row.results)
		case row.status == "canceled":
			t.Errorf("job %d was cancelled by nobody", row.id)
		}
	}
	for i := 1; i <= r.next; i++ {
		name := fmt.Sprintf("job-%d", i)
		if id, ok := r.acknowledged[name]; ok && (i%6 == 1 || i%6 == 3) && tags[tagOf(i)] != 1 {
			t.Errorf("job %d set the tag %s, which is there %d times", id, tagOf(i), tags[tagOf(i)])
		}
	}
}

func tagsOf(t *testing.T, client *luxiwire.Client) map[string]int {
	t.Helper()
	var list []string
	if err := client.Call(t.Context(), "QueryTags", []any{"cluster", ""}, &list); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, tag := range list {
		count[tag]++
	}
	return count
}

func countLines(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		count[strings.TrimSuffix(line, "\n")]++
	}
	return count
}
