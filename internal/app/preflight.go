package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/events/amqp"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/servertag"
)

// preflights are what can be known of settings without starting: whatever a file that is named has to
// hold, and what an address has to look like. Each checks what is set, and nothing that hangs on the moment.
var preflights = []struct {
	setting string
	check   func(o Options) error
}{
	{"hypervisor", func(o Options) error { return o.Driver.Present(context.Background()) }},
	{"rapi", func(o Options) error { return checkAddress(o.RAPI) }},
	{"mond", func(o Options) error { return checkAddress(o.Mond) }},
	{"health", func(o Options) error { return checkAddress(o.Health) }},
	{"compute", func(o Options) error { return checkAddress(o.Compute) }},
	{"web", func(o Options) error { return checkAddress(o.Web) }},
	{"confd", func(o Options) error { return checkAddress(o.Confd) }},
	{"peer", checkPeer},
	{"agent-address", checkAgentAddress},
	{"key-file", checkKeyFile},
	{"rapi-certificate", func(o Options) error {
		if o.Certificate == "" {
			return nil
		}
		_, err := rapi.ReadCertificate(o.Certificate)
		return err
	}},
	{"events", func(o Options) error {
		if o.Events == "" {
			return nil
		}
		_, err := amqp.Open(o.Events, slog.New(slog.DiscardHandler))
		return err
	}},
	{"keystone", func(o Options) error {
		_, err := openKeystone(o)
		return err
	}},
	{"functions", func(o Options) error {
		if o.Functions == "" {
			return nil
		}
		if err := checkDirectory(o.Functions); err != nil {
			return err
		}
		return rollout.CheckFunctions(dirOf(o.Functions))
	}},
	{"iallocators", func(o Options) (err error) {
		for _, dir := range newAllocators(o.Allocators).dirs {
			err = errors.Join(err, checkDirectory(dir))
		}
		return err
	}},
	{"oob-programs", func(o Options) (err error) {
		for _, dir := range directories(o.OutOfBand) {
			err = errors.Join(err, checkDirectory(dir))
		}
		return err
	}},
	{"master-ip-setup", func(o Options) error { return checkMasterIP(o.MasterIPSetup) }},
	{"server-effects", func(o Options) (err error) {
		policy := servertag.DefaultPolicy()
		if policy.Effects, err = readEffects(o.ServerEffects); err != nil {
			return err
		}
		return policy.CheckEffects()
	}},
	{"server-clusters", func(o Options) error {
		_, err := readClusters(o.ServerClusters, slog.New(slog.DiscardHandler))
		return err
	}},
	{"luxi", checkSocket},
	{"luxi-group", func(o Options) error {
		if o.LUXIGroup == "" {
			return nil
		}
		_, err := groupNamed(o.LUXIGroup)
		return err
	}},
	{"ganeti-dir", checkGanetiDir},
	{"data", func(o Options) error { return checkWritable(o.Data) }},
	{"node-data", func(o Options) error { return checkWritable(o.NodeData) }},
	{"ready-file", checkReadyFile},
}

// preflight refuses settings with which no controller could start.
func (o Options) preflight() error {
	for _, p := range preflights {
		if err := p.check(o); err != nil {
			return fault.New(fault.Invalid, "%s: %w", p.setting, err).At(p.setting)
		}
	}
	return nil
}

// doubts are what a controller starts with, though hardly anybody can mean it.
func (o Options) doubts() []string {
	var out []string
	if o.ComputeTLS && o.Compute == "" {
		out = append(out, "compute-tls: there is no Compute API that it could be about; compute says where it is served")
	}
	if o.KeyFile != "" {
		if _, err := os.Lstat(o.KeyFile); err != nil {
			out = append(out, fmt.Sprintf("key-file: there is none yet; a new key is made there, unless the store needs another: %v", err))
		}
	}
	if o.Users != "" {
		out = append(out, doubtsOfUsers(o.Users)...)
	}
	delay := o.ShutdownDelay
	if o.Peer == "" {
		delay = 0
	}
	if o.StopGrace+delay > serviceStop-stopBesides {
		out = append(out, fmt.Sprintf("stop-grace: with shutdown-delay it is more than the service has as packaged: it is killed %v after it was told to stop (TimeoutStopSec), and a stop takes some seconds besides", serviceStop))
	}
	if o.Certificate != "" {
		if cert, err := openCertificate(o); err == nil {
			if text := cert.Trouble(time.Now()); text != "" {
				out = append(out, "rapi-certificate: "+text)
			}
		}
	}
	return out
}

const (
	// serviceStop is the time that packaging/systemd/drover.service has for a stop, and stopBesides what goes by after running opcodes had theirs.
	serviceStop = 30 * time.Second
	stopBesides = 5 * time.Second
)

// doubtsOfUsers are those about the file with the accounts of RAPI.
func doubtsOfUsers(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return []string{fmt.Sprintf("rapi-users: nobody can log in: %v", err)}
	}
	var out []string
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 != 0 {
		out = append(out, "rapi-users: everybody on this machine can read it")
	}
	_, faults := rapi.ParseUsers(string(text))
	for _, why := range faults {
		out = append(out, fmt.Sprintf("rapi-users: %v", why))
	}
	return out
}

// checkKeyFile refuses a file that holds no keys, and one that is not there and could not be made.
func checkKeyFile(o Options) error {
	if o.KeyFile == "" {
		return nil
	}
	_, err := sealed.ReadRing(o.KeyFile)
	if fault.Is(err, fault.NotFound) {
		return checkWritable(filepath.Dir(o.KeyFile))
	}
	return err
}

// checkAddress refuses what is no address to listen at; an empty one is none.
func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fault.New(fault.Invalid, "%q is no address to listen at", address).WithHint("write it as 10.0.0.1:5080, or :5080 for all addresses of this machine")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fault.New(fault.Invalid, "%q has no port between 0 and 65535", address)
	}
	return nil
}

func checkPeer(o Options) error {
	if err := checkAddress(o.Peer); err != nil || o.Peer == "" {
		return err
	}
	host, _, _ := net.SplitHostPort(o.Peer) // checked
	_, err := told(&net.TCPAddr{IP: unlessNamed(host)}, o.PeerAddress, "peer", "peer-address")
	return err
}

// unlessNamed is the address of a host, all of the machine's if none is named; nil for a name.
func unlessNamed(host string) net.IP {
	if host == "" {
		return net.IPv6unspecified
	}
	return net.ParseIP(host)
}

// checkSocket refuses a path at which no socket can be made. The default one is in a directory that the
// service manager makes.
func checkSocket(o Options) error {
	if o.LUXI == "" || o.LUXI == serveDefaults().LUXI {
		return nil
	}
	if err := gate.CheckPath(o.LUXI); err != nil {
		return err
	}
	return checkDirectory(filepath.Dir(o.LUXI))
}

// checkReadyFile refuses a file in no directory. The one that the service manager makes for each run may not be there yet.
func checkReadyFile(o Options) error {
	dir := filepath.Dir(o.ReadyFile)
	if o.ReadyFile == "" || dir == filepath.Dir(serveDefaults().LUXI) {
		return nil
	}
	return checkDirectory(dir)
}

func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fault.New(fault.Environment, "%s is no directory", path)
	}
	return err
}

// checkWritable refuses a directory that could neither be written to nor made.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for {
		err := checkDirectory(path)
		if err == nil {
			if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
				return fault.New(fault.Environment, "the directory %s cannot be written to: %w", path, err)
			}
			return nil
		}
		if parent := filepath.Dir(path); os.IsNotExist(err) && parent != path {
			path = parent
			continue
		}
		return err
	}
}
