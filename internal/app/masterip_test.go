package app

import (
	"bufio"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/testkit"
)

// addressKeeper keeps an address by a program that notes how it was called, and fails while there is a file that says so.
type addressKeeper struct {
	*testing.T
	*masterIP

	dir string
	p   *picture.Picture
	// told has something for each call, also one that was refused.
	told *bufio.Scanner
}

func newAddressKeeper(t *testing.T) *addressKeeper {
	t.Helper()
	dir := programs(t, map[string]string{"setup": `cd "${0%/*}"
test ! -e "refuses-$1" || { echo refused > told; echo taken; exit 1; }
echo "$1 $MASTER_IP $MASTER_NETDEV $MASTER_NETMASK $CLUSTER_IP_VERSION" >> calls
echo called > told`})
	pipe := filepath.Join(dir, "told")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := os.OpenFile(pipe, os.O_RDWR, 0) // for writing, too: the program never waits for who reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = told.Close() })
	k := &addressKeeper{T: t, dir: dir, p: picture.New(), told: bufio.NewScanner(told)}
	if err := told.SetReadDeadline(time.Now().Add(testkit.Patience())); err != nil {
		t.Fatal(err)
	}
	k.again()
	return k
}

// again is the controller as it is when it was started anew.
func (k *addressKeeper) again() {
	k.masterIP = newMasterIP(Options{Data: k.dir, MasterIPSetup: filepath.Join(k.dir, "setup"), Log: slog.New(slog.DiscardHandler)})
	k.pauses.First, k.pauses.Longest = time.Millisecond, 5*time.Millisecond
}

// shows has the picture show a cluster with an address.
func (k *addressKeeper) shows(ip, device string) {
	k.p.Committed(&state.Change{Inventory: cluster.Empty().With(cluster.Put(withAddress(ip, device)))})
	k.p.Publish()
}

func withAddress(ip, device string) *cluster.Cluster {
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterIP: ip, Hypervisors: []string{"fake"}})
	c.MasterNetdev, c.MasterNetmask = device, 24
	return c
}

func (k *addressKeeper) calls() string {
	k.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil && !os.IsNotExist(err) {
		k.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\n", "; ")
}

// called holds what the program was called for.
func (k *addressKeeper) called(want string) {
	k.Helper()
	if got := k.calls(); got != want {
		k.Errorf("the program was called for %q, want %q", got, want)
	}
}

// awaits waits until the program was called for something.
func (k *addressKeeper) awaits(want string) {
	k.Helper()
	for k.calls() != want {
		if !k.told.Scan() {
			k.Fatalf("the program was called for %q, want %q: %v", k.calls(), want, k.told.Err())
		}
	}
}

func (k *addressKeeper) refuses(word string, is bool) {
	k.Helper()
	path := filepath.Join(k.dir, "refuses-"+word)
	err := os.Remove(path)
	if is {
		err = os.WriteFile(path, nil, 0o600)
	}
	if err != nil {
		k.Fatal(err)
	}
}

// leads keeps the address for a term, until what is returned is called.
func (k *addressKeeper) leads() (end func()) {
	ctx, stop := context.WithCancel(k.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.keep(ctx, k.p)
	}()
	return func() {
		stop()
		<-ended
	}
}

// The address is up while the controller leads, follows the cluster's, and is gone behind that.
func TestTheAddressIsWhereTheControllerLeads(t *testing.T) {
	k := newAddressKeeper(t)
	k.shows("192.0.2.1", "eth0")
	end := k.leads()
	k.awaits("start 192.0.2.1 eth0 24 4; ")
	k.shows("192.0.2.1", "eth0") // something else has changed
	k.shows("192.0.2.2", "eth1")
	k.awaits("start 192.0.2.1 eth0 24 4; stop 192.0.2.1 eth0 24 4; start 192.0.2.2 eth1 24 4; ")
	end()
	k.called("start 192.0.2.1 eth0 24 4; stop 192.0.2.1 eth0 24 4; start 192.0.2.2 eth1 24 4; stop 192.0.2.2 eth1 24 4; ")
	if _, err := os.Stat(filepath.Join(k.dir, masterNote)); !os.IsNotExist(err) {
		t.Errorf("it is noted that something may be here: %v", err)
	}
}

// What cannot be brought up is tried again: the controller that led before may have it still.
func TestTheAddressIsTriedAgain(t *testing.T) {
	k := newAddressKeeper(t)
	k.refuses("start", true)
	k.shows("192.0.2.1", "eth0")
	end := k.leads()
	defer end()
	if !k.told.Scan() || k.told.Text() != "refused" {
		t.Fatalf("it is not tried: %q, %v", k.told.Text(), k.told.Err())
	}
	k.refuses("start", false)
	k.awaits("start 192.0.2.1 eth0 24 4; ")
}

// What could not be taken away at the end of a term is tried again, until that is done or this controller leads again.
func TestTheAddressIsLeftAgain(t *testing.T) {
	k := newAddressKeeper(t)
	k.shows("192.0.2.1", "eth0")
	end := k.leads()
	k.awaits("start 192.0.2.1 eth0 24 4; ")
	k.refuses("stop", true)
	end()
	k.called("start 192.0.2.1 eth0 24 4; ")
	k.refuses("stop", false)
	k.awaits("start 192.0.2.1 eth0 24 4; stop 192.0.2.1 eth0 24 4; ")
}

// What somebody has taken down stays down for the term, and what was left by a controller that was killed is taken away.
func TestTheAddressIsTakenDown(t *testing.T) {
	k := newAddressKeeper(t)
	c := withAddress("192.0.2.1", "eth0")
	if err := k.set(t.Context(), addressOf(c), false); err != nil { // somebody else may have brought it up
		t.Error(err)
	}
	k.called("stop 192.0.2.1 eth0 24 4; ")
	if err := k.follow(t.Context(), withAddress("192.0.2.2", "eth0")); err != nil {
		t.Error(err)
	}
	k.called("stop 192.0.2.1 eth0 24 4; ")
	if err := k.set(t.Context(), addressOf(c), true); err != nil {
		t.Error(err)
	}
	k.called("stop 192.0.2.1 eth0 24 4; start 192.0.2.1 eth0 24 4; ")
	if err := os.Remove(filepath.Join(k.dir, "calls")); err != nil {
		t.Fatal(err)
	}

	k.again() // it was killed
	k.refuses("stop", true)
	k.recover()
	k.called("")
	k.refuses("stop", false)
	k.awaits("stop 192.0.2.1 eth0 24 4; ") // it is tried again
	k.mu.Lock()                            // until that is over
	if k.held != nil {
		t.Errorf("it may still be here: %+v", k.held)
	}
	k.mu.Unlock()
	k.again()
	k.recover() // there is nothing any more
	k.called("stop 192.0.2.1 eth0 24 4; ")

	k.refuses("start", true)
	if err := k.set(t.Context(), addressOf(c), true); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "start' failed: exit status 1, output 'taken'") {
		t.Errorf("a failure is told as %v", err)
	}
	six := addressOf(c)
	six.IPv6 = true
	if err := k.set(t.Context(), six, false); err != nil || !strings.HasSuffix(k.calls(), "stop 192.0.2.1 eth0 24 4; ") { // what may be here is what was tried
		t.Errorf("%v, %s", err, k.calls())
	}
}

// A program that others could have changed is not run, and without one nothing is cared for.
func TestTheProgramOfTheAddress(t *testing.T) {
	k := newAddressKeeper(t)
	if err := os.Chmod(k.program, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := k.set(t.Context(), addressOf(withAddress("192.0.2.1", "eth0")), true); err == nil || !strings.Contains(err.Error(), "too permissive") {
		t.Errorf("%v", err)
	}
	k.called("")
	for _, path := range []string{"setup", k.program, "/nonexistent/setup"} {
		if err := checkMasterIP(path); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
	m := onMachine{&member{}}
	if err := m.Address(t.Context(), withAddress("192.0.2.1", "eth0"), true); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "master-ip-setup") {
		t.Errorf("where no program is named: %v", err)
	}
	if err := (*masterIP)(nil).keep(t.Context(), k.p); err != nil {
		t.Error(err)
	}
}
