package compute

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/tags"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/rabbit"
)

// tagNames are the tags that histories are about, by how they are written on the
// cluster.
var tagNames = map[string]string{"a": "cyclades:user:a", "b_": "cyclades:user:b*", "γ": "cyclades:user:/CE/B3"}

// outages is a controller with a broker whose past is drawn.
type outages struct {
	*testing.T
	bin, data string
	broker    *rabbit.Broker
	brokerUp  bool
	dev       *testkit.Dev
	cloud     *stack
	luxi      *luxiwire.Client
	random    *rand.Rand
	// server and instance are what the present history is about.
	server, instance string
	// last is what was acknowledged last, by name. Names that somebody changed on
	// the cluster since, or about which a request was not answered, are loose.
	last, loose map[string]bool
	rule        string // that is in force; empty for none
}

func (h *outages) draw(n int) int { return h.random.IntN(n) }

func (h *outages) name() string { return []string{"a", "b_", "γ"}[h.draw(len(tagNames))] }

// start starts the controller on what is in its directory.
func (h *outages) start() {
	h.Helper()
	h.dev = testkit.StartDev(h, h.bin, h.data, "--events", h.broker.URL())
	h.cloud = logIn(h.T, filepath.Join(h.data, "ready.json"))
	client, err := luxiwire.Dial(h.Context(), h.dev.Ready.LUXI)
	h.cloud.check(err)
	h.luxi = client
}

// ask sends a request about the tags of the server, with all that it is to have
// if that is not nil; status is zero if nobody answered.
func (h *outages) ask(method string, tag *string, all []string) (status int) {
	address := h.cloud.compute.ServiceURL("servers", h.server, "tags")
	if tag != nil {
		address += "/" + url.PathEscape(*tag)
	}
	var text []byte
	if all != nil {
		var err error
		if text, err = json.Marshal(map[string][]string{"tags": all}); err != nil {
			h.Error(err)
		}
	}
	r, err := http.NewRequestWithContext(h.Context(), method, address, bytes.NewReader(text))
	if err != nil {
		h.Error(err)
		return 0
	}
	r.Header.Set("X-Auth-Token", h.cloud.compute.Token())
	r.Header.Set("Openstack-Api-Version", "compute 2.52")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }() // only the status is of interest
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// told takes in the answer to a request about one tag.
func (h *outages) told(name string, wanted bool, status int) {
	h.Helper()
	switch status {
	case http.StatusCreated:
		h.last[name], h.loose[name] = wanted, false
	case http.StatusNoContent:
		if !wanted {
			h.last[name], h.loose[name] = wanted, false
		} // else it was wanted before
	case http.StatusNotFound: // it was not there
	case 0, http.StatusServiceUnavailable:
		h.loose[name] = true
	default:
		h.Fatalf("%q, wanted %v: status %d", name, wanted, status)
	}
}

func (h *outages) add() {
	name := h.name()
	h.told(name, true, h.ask(http.MethodPut, &name, nil))
}

func (h *outages) remove() {
	name := h.name()
	h.told(name, false, h.ask(http.MethodDelete, &name, nil))
}

func (h *outages) replace() {
	name := h.name()
	status := h.ask(http.MethodPut, nil, []string{name})
	if status != http.StatusOK {
		h.Fatalf("replacing: status %d", status)
	}
	for n := range tagNames {
		if n != name {
			h.last[n] = false // what is loose stays so: an administrator may have added it unseen
		} else if !h.last[n] { // else it may have been wanted before, and nothing was asked about it
			h.last[n] = true
			h.loose[n] = true
		}
	}
}

func (h *outages) call(method string, into any, args ...any) {
	h.Helper()
	h.cloud.check(h.luxi.Call(h.Context(), method, args, into))
}

// edit is an administrator's job. It has ended when the next request comes.
func (h *outages) edit() {
	name := h.name()
	h.loose[name] = true
	op := map[string]any{"OP_ID": []string{"OP_TAGS_SET", "OP_TAGS_DEL"}[h.draw(2)], "kind": "instance", "name": h.instance, "tags": []string{tagNames[name]}, "reason": []any{}}
	var id int64
	h.call("SubmitJob", &id, []any{op})
	for status := "queued"; !slices.Contains([]string{"success", "error", "canceled"}, status); {
		var answer []json.RawMessage
		var values []string
		h.call("WaitForJobChange", &answer, id, []string{"status"}, []string{status}, 0, 10)
		if len(answer) == 2 && json.Unmarshal(answer[0], &values) == nil {
			status = values[0]
		}
	}
}

// hinder lets a rule hold the jobs of tags, or end them, and takes it away again.
func (h *outages) hinder() {
	if h.rule != "" {
		h.call("DeleteFilter", nil, h.rule)
		h.rule = ""
		return
	}
	ours := []any{[]any{"reason", []any{"=", "source", "gnt:server-tag"}}}
	h.call("ReplaceFilter", &h.rule, nil, 0, ours, []string{"PAUSE", "REJECT"}[h.draw(2)], []any{})
}

// cancel cancels the newest job, if that is not too late.
func (h *outages) cancel() {
	var rows [][]int64
	h.call("QueryJobs", &rows, nil, []string{"id"})
	newest := int64(0)
	for _, row := range rows {
		newest = max(newest, row[0])
	}
	_ = h.luxi.Call(h.Context(), "CancelJob", []any{newest}, nil) // too late is no matter
}

// crash kills the controller while it is asked for something, and starts it again.
func (h *outages) crash() {
	name := h.name()
	status := make(chan int, 1)
	go func() { status <- h.ask(http.MethodPut, &name, nil) }()
	h.dev.Kill()
	h.told(name, true, <-status)
	_ = h.dev.Gone() // it was killed
	_ = h.luxi.Close()
	h.start()
}

// lie has the broker tell of jobs what is late, was told already, or never was,
// and forget what it was to tell.
func (h *outages) lie() {
	if !h.brokerUp {
		return
	}
	connection, err := amqp.Dial(h.broker.URL())
	h.cloud.check(err)
	defer func() { _ = connection.Close() }() // it has served
	channel, err := connection.Channel()
	h.cloud.check(err)
	for range 1 + h.draw(3) {
		body := fmt.Sprintf(`{"type":"ganeti-op-status","instance":%q,"operation":%q,"status":%q,"jobId":%d,"event_time":[1,0],"cluster":"c","tags":[%q],"job_fields":{},"logmsg":null,"result":null}`,
			h.instance, []string{"OP_TAGS_SET", "OP_TAGS_DEL"}[h.draw(2)], []string{"success", "error", "canceled"}[h.draw(3)], 1+h.draw(20), tagNames[h.name()])
		h.cloud.check(channel.PublishWithContext(h.Context(), "ganeti", "ganeti.snf.event.op", false, false, amqp.Publishing{Body: []byte(body)}))
	}
	if h.draw(2) == 0 {
		_, _ = channel.QueuePurge("drover-servers-1", false) // which may not be there yet
	}
}

// breakdown kills the broker, or has it come back. That takes long, and a rule
// that ends jobs all the while would have them tried again ever more rarely.
func (h *outages) breakdown() {
	if h.rule != "" {
		h.hinder()
	}
	if h.brokerUp {
		h.broker.Kill(syscall.SIGKILL)
	} else {
		h.broker.Up()
	}
	h.brokerUp = !h.brokerUp
}

// live is one history.
func (h *outages) live(steps []func(*outages)) {
	h.last, h.loose = map[string]bool{}, map[string]bool{}
	h.server = h.cloud.create("history")
	var found struct{ Data [][][2]any }
	h.call("Query", &found, "server", []string{"instance"}, []any{"=", "id", h.server})
	h.instance, _ = found.Data[0][0][1].(string)
	for _, step := range steps {
		step(h)
	}
	if h.rule != "" {
		h.hinder()
	}
	if !h.brokerUp {
		h.breakdown()
	}
	h.rest()
}

// rest waits until users, store and cluster agree, on what was acknowledged.
func (h *outages) rest() {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), patience)
	defer cancel()
	var news struct {
		Revision int64
	}
	for {
		why := h.differs()
		if why == "" {
			return
		}
		// The next look is when something of the tags is different.
		args := []any{"server-tag", []string{"status", "job"}, []any{"=", "server", h.server}, map[string]any{"watch": news.Revision}}
		limited, stop := context.WithTimeout(ctx, time.Second)
		_ = h.luxi.Call(limited, "Query", args, &news) // nothing new: look again all the same
		stop()
		if ctx.Err() != nil {
			h.Fatalf("no rest is found: %s", why)
		}
	}
}

// differs says what does not agree; nothing if all does.
func (h *outages) differs() string {
	var rows struct{ Data [][][2]any }
	h.call("Query", &rows, "server-tag", []string{"tag", "status"}, []any{"=", "server", h.server})
	wanted := []string{}
	for _, row := range rows.Data {
		name, _ := row[0][1].(string)
		if row[1][1] != "ACTIVE" {
			return fmt.Sprintf("%q is %v", name, row[1][1])
		}
		wanted = append(wanted, name)
	}
	read, err := tags.List(h.Context(), h.cloud.compute, h.server).Extract()
	h.cloud.check(err)
	slices.Sort(wanted)
	if slices.Sort(read); !slices.Equal(read, wanted) {
		return fmt.Sprintf("users read %q, the store has %q", read, wanted)
	}
	var instance struct {
		Data [][][2]json.RawMessage
	}
	h.call("Query", &instance, "instance", []string{"tags"}, []any{"=", "name", h.instance})
	var raw []string
	h.cloud.check(json.Unmarshal(instance.Data[0][0][1], &raw))
	for name, text := range tagNames {
		users, there := slices.Contains(wanted, name), slices.Contains(raw, text)
		if users != there {
			return fmt.Sprintf("%q: users read %v, the cluster has %v", name, users, there)
		}
		if acknowledged, asked := h.last[name]; asked && !h.loose[name] && acknowledged != users {
			return fmt.Sprintf("%q: acknowledged was %v, users read %v", name, acknowledged, users)
		}
	}
	return ""
}

// TestHistoriesWithOutages has users, administrators, rules and cancels meet on
// the real binary with a real broker, while the controller is killed in the midst
// of requests, the broker is killed and comes back, and events are lost, repeated,
// late and false. Afterwards users, store and cluster agree on what was
// acknowledged. A soak ($DROVER_SOAK) goes on for that long; $DROVER_HISTORY is the seed of
// a run that is to be seen again.
func TestHistoriesWithOutages(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("DROVER_HISTORY"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("DROVER_HISTORY=%d", seed)
	h := &outages{T: t, bin: testkit.Build(t), data: filepath.Join(t.TempDir(), "data"), broker: rabbit.Start(t), brokerUp: true,
		random: rand.New(rand.NewPCG(seed, 0))}
	h.start()
	steps := []func(*outages){(*outages).add, (*outages).add, (*outages).remove, (*outages).remove, (*outages).replace,
		(*outages).edit, (*outages).hinder, (*outages).cancel, (*outages).lie, (*outages).crash}
	const short, length = 4, 14
	long, soak := time.ParseDuration(os.Getenv("DROVER_SOAK"))
	histories := 0
	for end := time.Now().Add(long); histories < short || soak == nil && time.Now().Before(end); histories++ {
		var plan []func(*outages)
		for range length {
			plan = append(plan, steps[h.draw(len(steps))])
		}
		if histories%short == short-1 { // it is slow
			plan = slices.Insert(plan, h.draw(length), (*outages).breakdown)
		}
		h.live(plan)
	}
	t.Logf("%d histories", histories)
	_ = h.luxi.Close()
	if h.dev.Terminate(); h.dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}
