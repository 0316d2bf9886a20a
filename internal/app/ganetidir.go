package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-project/drover/internal/api/confd"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/ssconf"
	"github.com/drover-project/drover/internal/wholefile"
)

// ganetiDir is a directory in which programs of Ganeti find what they look for on a node: files about the cluster, the key of confd and the socket of LUXI. It is
// kept by whoever leads and by those who stand by, each on its machine. The methods of nil do nothing.
type ganetiDir struct {
	root string
	here ssconf.Here
	log  *slog.Logger
	// again is how long after files could not be written it is tried again.
	again time.Duration
	// luxi is the path of the socket, and key that of confd as it is in its file.
	luxi string
	key  atomic.Pointer[[]byte]
	// made is what the files were made of, and written are the files as they were written then.
	mu      sync.Mutex
	made    *cluster.Snapshot
	written map[string]string
	// shown is what confd answers from, as it is at that moment: the files come behind it, for it takes time to write them.
	shown  atomic.Pointer[picture.Picture]
	confd  net.PacketConn // nil where nobody asks
	server *confd.Server
}

// Where programs of Ganeti look, below the directory.
const (
	ganetiData    = "var/lib/ganeti"
	ganetiSockets = "var/run/ganeti/socket"
	ganetiSocket  = ganetiSockets + "/ganeti-query"
	// wconfdSocket is where the watcher asks whether a daemon lives that there is not here: LUXI answers that.
	wconfdSocket = ganetiSockets + "/ganeti-wconfd"
	ganetiLogs   = "var/log/ganeti"
	ganetiLocks  = "var/lock"
	ganetiKey    = ganetiData + "/hmac.key"
)

// How often files are written at most, and how long after they could not be.
const (
	ganetiPace  = 500 * time.Millisecond
	ganetiAgain = 5 * time.Second
)

// checkGanetiDir refuses the directory of a cluster of Ganeti itself, whose files would be lost.
func checkGanetiDir(o Options) error {
	if o.GanetiDir == "" {
		return nil
	}
	config := filepath.Join(o.GanetiDir, ganetiData, "config.data")
	_, err := os.Lstat(config)
	switch {
	case err == nil:
		return fault.New(fault.WrongState, "a cluster of Ganeti has its configuration there: %s", config).At("ganeti-dir").
			WithHint("name another directory; programs are led to it by GANETI_ROOTDIR")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fault.New(fault.Environment, "ganeti-dir: %w", err).At("ganeti-dir")
}

// openGanetiDir makes the directory, if one is named, with the link to the socket and the key of confd, and opens that one's socket.
func openGanetiDir(ctx context.Context, o Options, ready *Ready) (*ganetiDir, error) {
	if o.GanetiDir == "" {
		return nil, nil //nolint:nilnil // its methods do nothing then
	}
	if err := checkGanetiDir(o); err != nil {
		return nil, err
	}
	g := &ganetiDir{root: o.GanetiDir, log: o.Log, again: ganetiAgain, luxi: ready.LUXI, written: map[string]string{}, here: ssconf.Here{Release: ofProgram().SoftwareVersion}}
	err := g.prepare()
	if err != nil {
		return nil, fault.New(fault.Environment, "ganeti-dir: %w", err).At("ganeti-dir")
	}
	if o.Confd == "" {
		return g, nil
	}
	if g.confd, err = listenConfd(ctx, o); err != nil {
		return nil, err
	}
	ready.Confd = g.confd.LocalAddr().String()
	if at, err := netip.ParseAddrPort(ready.Confd); err == nil && !at.Addr().IsUnspecified() {
		g.here.Confd = at.Addr().Unmap()
	}
	g.server = &confd.Server{Key: func() []byte { return *g.key.Load() }, Inventory: g.inventory, ConfigVersion: ofProgram().ConfigVersion, Now: time.Now, Log: o.Log}
	return g, nil
}

func listenConfd(ctx context.Context, o Options) (net.PacketConn, error) {
	conn, err := gate.Confd.ListenPacket(ctx, o.Confd)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot listen for questions to confd: %w", err).At("confd").WithHint("choose another address with --confd")
	}
	return conn, nil
}

// prepare makes what there is beside the files, and reads the key of confd, which may be another by now.
func (g *ganetiDir) prepare() error {
	const open, private = 0o755, 0o700
	for dir, mode := range map[string]fs.FileMode{ganetiData: open, ganetiSockets: open, ganetiLogs: private, ganetiLocks: open} {
		if err := os.MkdirAll(filepath.Join(g.root, dir), mode); err != nil {
			return err
		}
	}
	for _, socket := range []string{ganetiSocket, wconfdSocket} {
		if err := link(filepath.Join(g.root, socket), g.luxi); err != nil {
			return err
		}
	}
	path := filepath.Join(g.root, ganetiKey)
	key, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g.renewKey()
	case err == nil && len(key) == 0:
		err = fault.New(fault.Environment, "%s is empty: anybody could sign questions with it", path)
	}
	if err == nil {
		g.key.Store(&key)
	}
	return err
}

// changeKey is renewKey for who does not hold mu.
func (g *ganetiDir) changeKey() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.renewKey(); err != nil {
		return fault.New(fault.Environment, "the key of confd cannot be written: %w", err)
	}
	return nil
}

// renewKey makes a key of confd, which alone counts from then on.
func (g *ganetiDir) renewKey() error {
	random := make([]byte, 20) // as there
	_, _ = rand.Read(random)   // it never fails
	key := []byte(hex.EncodeToString(random) + "\n")
	if err := wholefile.Write(filepath.Join(g.root, ganetiKey), key); err != nil {
		return err
	}
	g.key.Store(&key)
	return nil
}

// link has the socket of LUXI be where programs of Ganeti look for it. What is there and is no link stays: it is another program's, or that socket itself.
func link(at, luxi string) error {
	luxi, err := filepath.Abs(luxi)
	if err != nil {
		return err
	}
	if same, err := filepath.Abs(at); err == nil && same == luxi {
		return nil
	}
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSymlink:
		return fault.New(fault.WrongState, "%s is there already, and is no link to a socket", at).WithHint("end the program whose it is, and remove it")
	}
	if to, err := os.Readlink(at); err == nil && to == luxi {
		return nil
	}
	next := at + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.Symlink(luxi, next), os.Rename(next, at))
}

// keep has confd answer from a picture, and writes the files as the inventory of a picture changes, until ctx ends.
func (g *ganetiDir) keep(ctx context.Context, shown *picture.Picture) error {
	if g == nil {
		return nil
	}
	g.shown.Store(shown)
	failing := false
	for ctx.Err() == nil {
		changed := shown.Changed()
		err := g.make(shown.Load().Inventory)
		if err != nil && !failing {
			g.log.WarnContext(ctx, "a file for programs of Ganeti cannot be written; it is tried again and again", "error", err)
		}
		failing = err != nil
		pause := ganetiPace
		if failing {
			pause = g.again
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if failing {
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// inventory is the newest that is shown; nil before there is one.
func (g *ganetiDir) inventory() *cluster.Snapshot {
	p := g.shown.Load()
	if p == nil {
		return nil
	}
	return p.Load().Inventory
}

// make has the files tell of an inventory, if that is another than they were made of. When the cluster itself was changed, or somebody has had the
// configuration sent again (which counts as that), all are written.
func (g *ganetiDir) make(inv *cluster.Snapshot) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.makeOf(inv)
}

// makeOf is make for who holds mu.
func (g *ganetiDir) makeOf(inv *cluster.Snapshot) error {
	if inv == nil || inv.Cluster() == nil || inv == g.made {
		return nil
	}
	if g.made != nil && inv.Cluster() != g.made.Cluster() {
		clear(g.written)
	}
	err := g.write(ssconf.Files(inv, g.here))
	if err == nil {
		g.made = inv
	}
	return err
}

// rewrite writes all there is in the directory anew, whatever became of it: what is shown, and the links. A key that somebody has put there counts from then on.
func (g *ganetiDir) rewrite() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.prepare(); err != nil {
		return err
	}
	clear(g.written)
	g.made = nil
	return g.makeOf(g.inventory())
}

// write writes the files that differ.
func (g *ganetiDir) write(files map[string]string) error {
	for name, text := range files {
		if was, there := g.written[name]; there && was == text {
			continue
		}
		if err := wholefile.Share(filepath.Join(g.root, ganetiData, ssconf.Prefix+name), []byte(text)); err != nil {
			return err
		}
		g.written[name] = text
	}
	return nil
}

// serve answers questions to confd until ctx ends.
func (g *ganetiDir) serve(ctx context.Context) error {
	if g == nil || g.confd == nil {
		return nil
	}
	return g.server.Serve(ctx, g.confd)
}

func (g *ganetiDir) close() {
	if g != nil && g.confd != nil {
		_ = g.confd.Close()
	}
}
