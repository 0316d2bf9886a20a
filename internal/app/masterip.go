package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/guarded"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/wholefile"
)

// masterIP has the address of the cluster be on the machine of the controller that leads, by a program of the operator's. It is called as Ganeti's
// master-ip-setup is: with start or stop, and the address in its environment. The methods of nil do nothing.
//
// What may be on this machine is noted in a file before the program is called, so that a controller that was killed takes it away when it comes again and does
// not lead.
type masterIP struct {
	program, note string
	log           *slog.Logger
	pauses        backoff.Pauses
	// patience is how long the program may take, and parting how long at the end of a term, when another waits for the lead.
	patience, parting time.Duration

	mu sync.Mutex
	// held is what may be on this machine, and up whether it is as far as is known; down says that it is not to be, for the rest of the term.
	held *masterAddress
	up   bool
	down bool
	// leads says that it is this controller's to have.
	leads bool
}

// masterAddress is the address of a cluster, and where it is to be.
type masterAddress struct {
	IP      string `json:"ip"`
	Device  string `json:"device"`
	Netmask int64  `json:"netmask"`
	IPv6    bool   `json:"ipv6,omitempty"`
}

func addressOf(c *cluster.Cluster) masterAddress {
	return masterAddress{IP: c.MasterIP, Device: c.MasterNetdev, Netmask: c.MasterNetmask, IPv6: c.PrimaryIPv6}
}

// environment is what the program is told.
func (a masterAddress) environment() []string {
	version := "4"
	if a.IPv6 {
		version = "6"
	}
	return []string{"MASTER_IP=" + a.IP, "MASTER_NETDEV=" + a.Device, "MASTER_NETMASK=" + strconv.FormatInt(a.Netmask, 10), "CLUSTER_IP_VERSION=" + version}
}

// masterNote is the file in the data directory that says what may be on this machine.
const masterNote = "master-ip.json"

// newMasterIP returns what keeps the address; nil where no program is named.
func newMasterIP(o Options) *masterIP {
	if o.MasterIPSetup == "" {
		return nil
	}
	return &masterIP{program: o.MasterIPSetup, note: filepath.Join(o.Data, masterNote), log: o.Log,
		pauses: backoff.Pauses{First: time.Second, Longest: time.Minute}, patience: time.Minute, parting: 10 * time.Second}
}

// checkMasterIP refuses a program that others could have changed.
func checkMasterIP(program string) error {
	if program == "" {
		return nil
	}
	if !filepath.IsAbs(program) {
		return fault.New(fault.Invalid, "%.200q is no whole path", program)
	}
	_, err := guarded.Program(filepath.Split(filepath.Clean(program)))
	return err
}

// call calls the program.
func (m *masterIP) call(ctx context.Context, word string, a masterAddress) error {
	if err := checkMasterIP(m.program); err != nil {
		return err
	}
	_, err := ask{program: m.program, args: []string{word}, env: a.environment(), patience: m.patience, most: 64 << 10}.run(ctx)
	if err != nil {
		return fault.New(fault.Failed, "'%s %s' failed: %w", m.program, word, err)
	}
	return nil
}

// start has the address be here; for who holds mu.
func (m *masterIP) start(ctx context.Context, a masterAddress) error {
	if m.held != nil && *m.held != a {
		if err := m.stop(ctx); err != nil {
			return err
		}
	}
	text, err := json.Marshal(a)
	if err == nil {
		err = wholefile.Write(m.note, append(text, '\n'))
	}
	if err != nil {
		return fault.New(fault.Environment, "what may be on this machine cannot be noted: %w", err)
	}
	m.held = &a
	if err := m.call(ctx, "start", a); err != nil {
		return err
	}
	m.up = true
	m.log.Info("the cluster's address is on this machine", "address", a.IP, "device", a.Device)
	return nil
}

// stop has the address that may be here be gone; for who holds mu.
func (m *masterIP) stop(ctx context.Context) error {
	if m.held == nil {
		return nil
	}
	if err := m.call(ctx, "stop", *m.held); err != nil {
		return err
	}
	m.log.Info("the cluster's address is not on this machine any more", "address", m.held.IP, "device", m.held.Device)
	m.held, m.up = nil, false
	if err := os.Remove(m.note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Environment, "that nothing is on this machine any more cannot be noted: %w", err)
	}
	return nil
}

// set brings the address up or takes it down because somebody has asked for that, until the term ends.
func (m *masterIP) set(ctx context.Context, a masterAddress, up bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = !up
	if up {
		return m.start(ctx, a)
	}
	if m.held == nil { // somebody else may have brought it up
		m.held = &a
	}
	return m.stop(ctx)
}

// follow brings the address up if it is another, or not up yet, and nobody has taken it down.
func (m *masterIP) follow(ctx context.Context, c *cluster.Cluster) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c == nil || m.down || m.up && *m.held == addressOf(c) {
		return nil
	}
	m.up = false
	return m.start(ctx, addressOf(c))
}

// keep has the address be here for as long as this controller leads, which is until ctx ends.
func (m *masterIP) keep(ctx context.Context, shown *picture.Picture) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	m.down, m.leads = false, true
	m.mu.Unlock()
	defer m.leave()
	failures := 0
	for ctx.Err() == nil {
		changed := shown.Changed()
		err := m.follow(ctx, shown.Load().Inventory.Cluster())
		if err == nil {
			failures = 0
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		if failures++; failures == 1 && ctx.Err() == nil {
			m.log.WarnContext(ctx, "the cluster's address is not on this machine yet; it is tried again and again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(m.pauses.After(failures)):
		}
	}
	return nil
}

// leave takes the address away, for this controller leads no more.
func (m *masterIP) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leads = false
	m.part(0)
}

// part takes the address away, and tries again and again if that fails, for two machines that answer for it are worse than none; for who holds mu.
func (m *masterIP) part(failures int) {
	ctx, done := context.WithTimeout(context.Background(), m.parting)
	defer done()
	err := m.stop(ctx)
	if err == nil {
		return
	}
	if failures == 0 {
		m.log.Warn("the cluster's address may still be on this machine, which does not lead any more", "error", err)
	}
	time.AfterFunc(m.pauses.After(failures+1), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.leads {
			m.part(failures + 1)
		}
	})
}

// recover takes away what a controller that was killed has left on this machine.
func (m *masterIP) recover() {
	if m == nil {
		return
	}
	text, err := os.ReadFile(m.note)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var left masterAddress
	if err == nil {
		err = intake.Read(text, &left)
	}
	if err != nil {
		m.log.Warn("the cluster's address may still be on this machine, which does not lead any more", "error", err)
		return
	}
	m.mu.Lock()
	m.held = &left
	m.mu.Unlock()
	m.leave()
}
