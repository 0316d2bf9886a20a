package machines

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// kills is a site in which processes are killed.
type kills struct {
	*site
	rng *rand.Rand
}

// TestKills kills controllers, agents and guests with -9 at random moments of what is done to machines: each exists exactly once, no disk is
// lost or left, and lists tell the truth when all are back. $DROVER_ROUNDS says how often.
func TestKills(t *testing.T) {
	t.Parallel()
	rounds := 20
	if n, err := strconv.Atoi(os.Getenv("DROVER_ROUNDS")); err == nil {
		rounds = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("DROVER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("DROVER_SEED=%d", seed)
	k := &kills{site: newSite(t, "--agents"), rng: rand.New(rand.NewPCG(seed, 1))}
	k.offer()
	for round := range rounds {
		k.round(round)
	}
}

// names are those of the machines.
var names = []string{"one.example", "two.example"}

// instance is what a list says of one.
type instance struct {
	Name   string   `json:"name"`
	UUID   string   `json:"uuid"`
	Status string   `json:"status"`
	Disks  []string `json:"disk.uuids"`
}

func (k *kills) instances() (list []instance) {
	k.Helper()
	if err := json.Unmarshal([]byte(k.drover("instance", "list", "--output", "json", "--fields", "name,uuid,status,disk.uuids")), &list); err != nil {
		k.Fatal(err)
	}
	return list
}

// round begins something about each machine, kills somebody in the midst of it, and looks when all are back.
func (k *kills) round(round int) {
	k.Helper()
	there := k.instances()
	var did []string
	for _, name := range names {
		args := k.draw(name, slices.ContainsFunc(there, func(i instance) bool { return i.Name == name }))
		did = append(did, strings.Join(args, " "))
		k.drover(append(args, "--submit")...)
	}
	time.Sleep(time.Duration(k.rng.IntN(400)) * time.Millisecond) // the moment is what is drawn
	who := k.kill()
	k.settle()
	k.Logf("round %d: %s; %s", round, strings.Join(did, "; "), who)
	k.check()
}

// draw is something that may be done to a machine now.
func (k *kills) draw(name string, there bool) []string {
	if !there {
		return []string{"instance", "add", name, "--os", "tiny", "--disk", "0:size=1M", "-B", "memory=64", "--name-check=no", "--ip-check=no"}
	}
	all := [][]string{
		{"instance", "start", name}, {"instance", "stop", name, "--timeout", "1"}, {"instance", "stop", name, "--timeout", "0"},
		{"instance", "reboot", "--type", "hard", name}, {"instance", "reboot", "--type", "soft", name},
		{"instance", "grow-disk", name, "0", "1M"}, {"instance", "remove", "--yes", name},
		{"instance", "modify", name, "--disk", "add:size=1M", "--yes"}, {"instance", "modify", name, "--disk", "add:size=1M", "--net", "add", "--hotplug", "--yes"},
	}
	return all[k.rng.IntN(len(all))]
}

// kill kills somebody, and brings back who does not come back alone.
func (k *kills) kill() string {
	k.Helper()
	guests := k.guests()
	switch who := k.rng.IntN(4); {
	case who == 0 && len(guests) > 0:
		pid := guests[k.rng.IntN(len(guests))]
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		return "a guest is killed"
	case who == 1:
		for _, pid := range k.agents() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return "the agent is killed"
	case who == 2:
		for _, pid := range k.agents() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		fallthrough
	default:
		k.dev.Kill()
		_ = k.dev.Gone()
		k.begin()
		return fmt.Sprintf("the controller is killed, and its agents too: %v", who == 2)
	}
}

// agents are the processes of agents, which are found by the lock that each holds.
func (k *kills) agents() (pids []int) {
	k.Helper()
	return k.holders(filepath.Join(k.data, "nodes", "*", "agent.lock"))
}

// settle waits until all jobs have ended.
func (k *kills) settle() {
	k.Helper()
	var waiting []string
	for began := time.Now(); time.Since(began) < 4*testkit.Patience(); {
		rows, err := k.jobs()
		waiting = nil
		if fault.Is(err, fault.Unavailable) { // a controller that is taking the lead lets go of those whom it sent on to the one before
			waiting = []string{err.Error()}
		} else if err != nil {
			k.Fatal(err)
		}
		for _, row := range rows {
			if status := fmt.Sprint(row[1]); !slices.Contains([]string{"success", "error", "canceled"}, status) {
				waiting = append(waiting, fmt.Sprint(row...))
			}
		}
		if len(waiting) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond) // between looks
	}
	k.Fatalf("jobs have not ended: %v", waiting)
}

// jobs are all that there are, with their status.
func (k *kills) jobs() (rows [][]any, err error) {
	c, err := luxiwire.Dial(k.Context(), filepath.Join(k.data, "luxi.sock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	err = c.Call(k.Context(), "QueryJobs", []any{nil, []string{"id", "status", "summary"}}, &rows)
	return rows, err
}

// check holds what there is to what the inventory knows.
func (k *kills) check() {
	k.Helper()
	wrong := ""
	for began := time.Now(); time.Since(began) < testkit.Patience(); time.Sleep(50 * time.Millisecond) { // a guest that was killed is told soon
		if wrong = k.wrong(); wrong == "" {
			return
		}
	}
	k.Error(wrong)
	k.Log(k.drover("job", "list"))
	k.FailNow()
}

func (k *kills) wrong() string {
	k.Helper()
	list := k.instances()
	running, disks := map[string]int{}, map[string]bool{}
	held, err := filepath.Glob(filepath.Join(k.data, "nodes", "*", "kvm", "*", "held"))
	if err != nil {
		k.Fatal(err)
	}
	for _, path := range held {
		running[filepath.Base(filepath.Dir(path))] = len(k.holders(path))
	}
	files, err := filepath.Glob(filepath.Join(k.data, "nodes", "*", "disks", "*"))
	if err != nil {
		k.Fatal(err)
	}
	for _, path := range files {
		disks[strings.TrimSuffix(filepath.Base(path), ".raw")] = true
	}
	for _, i := range list {
		count := running[i.UUID]
		delete(running, i.UUID)
		if count > 1 || (count == 1) != (i.Status == "running") {
			return fmt.Sprintf("%s is %s and has %d processes", i.Name, i.Status, count)
		}
		for _, disk := range i.Disks {
			if !disks[disk] {
				return fmt.Sprintf("%s has no disk %s", i.Name, disk)
			}
			delete(disks, disk)
		}
	}
	for uuid, count := range running {
		if count > 0 {
			return fmt.Sprintf("nobody knows of the machine %s, which runs", uuid)
		}
	}
	if len(disks) > 0 {
		return fmt.Sprintf("nobody knows of the disks %v", disks)
	}
	return ""
}
