package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/requestid"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/meter"
	"github.com/drover-project/drover/internal/systemd"
)

// member is what a controller process has all its life: its store and what is
// counted, whether it leads or stands by.
type member struct {
	store store.Store
	// shared is the store where several controllers may use it, else nil.
	shared store.Shared
	// meter is the store with its account, and figures all that is measured.
	meter *meter.Store
	// name is that of the controller where it is alone, data its directory, and started when it was.
	name, data string
	started    time.Time
	// now is the clock of the machine.
	now func() time.Time
	// sealed is the store with the secrets of its values sealed, with the keys of a file.
	sealed     *sealed.Store
	keyFile    string
	figures    *figures
	gates      *gate.Gates // of the process; nil where that is another program
	requestIDs *requestid.Source
	manager    systemd.Manager
	watchdog   *watchdog // of the process; nil where that is another program
	log        *slog.Logger
	// recent is the newest of the log, and settings are those of the process, without passwords.
	recent   *daemon.Recent
	settings string
	stopping atomic.Bool
	// ground is what the controller stands on that has no machine; nil on one.
	ground *Ground
	// leading is the controller of the present term, nil while another leads.
	leading atomic.Pointer[controller]
	// cert and users are those of RAPI, nil before they were read.
	cert  atomic.Pointer[rapi.CertificateFile]
	users atomic.Pointer[rapi.UsersFile]
	// ganeti is the directory for programs of Ganeti, nil where there is none.
	ganeti atomic.Pointer[ganetiDir]
	// masterIP has the cluster's address be here while this controller leads; nil where nobody does.
	masterIP *masterIP
	// sockets is the directory of the socket of LUXI.
	sockets string
	// agents are those of nodes that are elsewhere.
	agents *agents
	// backups are those of this machine.
	backups backupDir
	group   *group // nil for a controller that is alone
	// copies are made of an embedded store before its format is raised; nil where none are.
	copies *copies
	// autoFinalize raises the format of the store as soon as all can.
	autoFinalize bool
}

func openMember(ctx context.Context, o Options) (*member, error) {
	opened, err := openStore(ctx, o.Data, o.Store, copiesOf(o))
	if err != nil {
		return nil, err
	}
	m := newMember(opened, o)
	if err := m.openKeys(ctx, o); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	if o.Peer != "" {
		if m.group, err = openGroup(m, o); err != nil {
			return nil, errors.Join(err, m.store.Close())
		}
	}
	m.masterIP.recover()
	return m, nil
}

func newMember(opened store.Store, o Options) *member {
	host, _ := hostName() // for people; where it counts (groups, leases) one that has no name ends the start
	m := &member{name: cmp.Or(o.Name, host), data: o.Data, log: o.Log, recent: cmp.Or(o.Recent, daemon.NewRecent(0)), settings: o.Settings, manager: o.Manager, backups: backupDir{path: o.Backups}, autoFinalize: o.AutoFinalize, copies: copiesOf(o), figures: newFigures(), gates: o.gates, requestIDs: requestid.NewSource(newPassword()[:6])}
	if m.now = o.clock; m.now == nil {
		m.now = time.Now
	}
	m.started = m.now().UTC()
	m.meter = meter.New(opened, m.figures.all, o.Log)
	m.store = m.meter
	m.agents, m.masterIP = newAgents(m, o), newMasterIP(o)
	m.sockets, _ = filepath.Abs(filepath.Dir(cmp.Or(o.LUXI, filepath.Join(o.Data, "luxi.sock")))) // where it fails the socket cannot be made either
	m.shared, _ = opened.(store.Shared)
	m.figures.all.MustRegister(&gauges{m})
	return m
}

func (m *member) close() {
	if err := m.store.Close(); err != nil {
		m.log.Error("closing the store", "error", err)
	}
}

// leads returns the controller of the present term, nil while there is none.
func (m *member) leads() *controller {
	if c := m.leading.Load(); c != nil && c.term.Err() == nil {
		return c
	}
	return nil
}

// tellManager tells the service manager how it goes.
func (m *member) tellManager(states ...string) {
	if err := m.manager.Tell(states...); err != nil {
		m.log.Warn("the service manager was not told", "error", err)
	}
}
