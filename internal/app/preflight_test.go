package app

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// TestWhatCannotStartIsRefused has a line for each kind of settings that no start could take.
func TestWhatCannotStartIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, other := filepath.Join(dir, "good.pem"), filepath.Join(dir, "other.pem")
	for _, path := range []string{good, other} {
		if _, err := rapi.OpenCertificate(path, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	part := func(path, kind string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == kind {
				_ = pem.Encode(&out, block) // a buffer takes all
			}
		}
		return out.String()
	}
	none, plain := filepath.Join(dir, "none"), file("plain", "text", 0o600)
	whole := part(good, "PRIVATE KEY") + part(good, "CERTIFICATE")
	for _, tc := range []struct {
		what, setting, text string
		o                   Options
	}{
		{"a certificate that is not there", "rapi-certificate", "is not there", Options{Certificate: none}},
		{"one that all can read", "rapi-certificate", "chmod 600", Options{Certificate: file("open.pem", whole, 0o644)}},
		{"one that is a directory", "rapi-certificate", "is a directory", Options{Certificate: dir}},
		{"one without a key", "rapi-certificate", "private key", Options{Certificate: file("nokey.pem", part(good, "CERTIFICATE"), 0o600)}},
		{"a key without one", "rapi-certificate", "certificate", Options{Certificate: file("keyonly.pem", part(good, "PRIVATE KEY"), 0o600)}},
		{"a key of another", "rapi-certificate", "does not match", Options{Certificate: file("mixed.pem", part(other, "PRIVATE KEY")+part(good, "CERTIFICATE"), 0o600)}},
		{"an encrypted key", "rapi-certificate", "parse private key",
			Options{Certificate: file("secret.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"+part(good, "CERTIFICATE"), 0o600)}},
		{"an address without a port", "rapi", "no address to listen at", Options{RAPI: "127.0.0.1"}},
		{"a port that is none", "compute", "no port", Options{Compute: "127.0.0.1:99999"}},
		{"agents without a port", "mond", "no address", Options{Mond: "localhost"}},
		{"a page without a port", "web", "no address", Options{Web: "nonsense"}},
		{"a port for the page that is none", "web", "no port", Options{Web: "127.0.0.1:70000"}},
		{"questions without a port", "confd", "no address", Options{Confd: "nonsense"}},
		{"a ready file in no directory", "ready-file", "no such file", Options{ReadyFile: filepath.Join(none, "ready.json")}},
		{"all addresses for peers", "peer", "peer-address", Options{Peer: ":0"}},
		{"a broker of another kind", "events", "AMQP", Options{Events: "http://broker.example"}},
		{"tokens in clear", "keystone", "plain http", Options{Keystone: "http://keystone.example:5000/v3"}},
		{"no file of who vouches", "keystone", "cannot read", Options{Keystone: "https://keystone.example:5000/v3", KeystoneCA: none}},
		{"no functions", "functions", "no such file", Options{Functions: none}},
		{"functions that are a file", "functions", "no directory", Options{Functions: plain}},
		{"keys that are none", "key-file", "is no key", Options{KeyFile: plain}},
		{"keys that all can read", "key-file", "chmod 600", Options{KeyFile: file("open.key", "", 0o644)}},
		{"keys below a file", "key-file", "not a directory", Options{KeyFile: filepath.Join(plain, "key")}},
		{"no effects", "server-effects", "cannot read", Options{ServerEffects: none}},
		{"no clusters", "server-clusters", "cannot read", Options{ServerClusters: none}},
		{"a socket with a long path", "luxi", "bytes", Options{LUXI: filepath.Join(dir, strings.Repeat("x", 150))}},
		{"a socket in no directory", "luxi", "no such file", Options{LUXI: filepath.Join(none, "s")}},
		{"a socket that is a file", "luxi", "not a socket", Options{LUXI: plain}},
		{"data below a file", "data", "not a directory", Options{Data: filepath.Join(plain, "data")}},
		{"data that is a file", "data", "no directory", Options{Data: plain}},
		{"nodes below a file", "node-data", "not a directory", Options{NodeData: filepath.Join(plain, "n")}},
	} {
		err := tc.o.preflight()
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), tc.setting+": ") || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", tc.what, err)
		}
	}
	if os.Geteuid() != 0 { // who may write everywhere
		locked := filepath.Join(dir, "locked")
		if err := os.Mkdir(locked, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := (Options{Data: filepath.Join(locked, "data")}).preflight(); err == nil || !strings.Contains(err.Error(), "cannot be written") {
			t.Errorf("data that cannot be written: %v", err)
		}
	}
	for what, o := range map[string]Options{
		"nothing": {}, "a ready file of the service": {ReadyFile: "/run/drover/ready.json"}, "what serve does by itself": {Data: dir, LUXI: serveDefaults().LUXI, RAPI: ":5080"},
		"all that is good": {Data: filepath.Join(dir, "a", "b"), Certificate: good, RAPI: "localhost:0", Compute: "[::1]:8774", Peer: "10.0.0.1:5081",
			LUXI: filepath.Join(dir, "s"), KeyFile: filepath.Join(dir, "key"), Events: "amqp://broker.example/", Keystone: "https://keystone.example/v3"},
		"a peer behind another address": {Peer: ":5081", PeerAddress: "c1.example:5081"},
	} {
		if err := o.preflight(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDoubtsAreTold: a controller starts with these, and nobody can mean them.
func TestDoubtsAreTold(t *testing.T) {
	dir := t.TempDir()
	ended := filepath.Join(dir, "ended.pem")
	if _, err := rapi.OpenCertificate(ended, time.Now().AddDate(-6, 0, 0)); err != nil {
		t.Fatal(err)
	}
	told := strings.Join((Options{ComputeTLS: true, Users: filepath.Join(dir, "none"), KeyFile: filepath.Join(dir, "none"), Certificate: ended}).doubts(), "\n")
	for _, want := range []string{"compute-tls: ", "rapi-users: nobody can log in", "key-file: there is none yet", "has ended on"} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q in %s", want, told)
		}
	}
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("gus secret wrte\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	told = strings.Join((Options{Users: users, StopGrace: time.Minute}).doubts(), "\n")
	for _, want := range []string{"rapi-users: everybody on this machine", "line 1: it has a right that means nothing", "stop-grace: "} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q in %s", want, told)
		}
	}
	unit, err := os.ReadFile(filepath.Join(testkit.Root(t), "packaging/systemd/drover.service"))
	if err != nil || !strings.Contains(string(unit), fmt.Sprintf("\nTimeoutStopSec=%.0f\n", serviceStop.Seconds())) {
		t.Errorf("the unit has another time for a stop than is told: %v", err)
	}
	if more := (Options{StopGrace: defaultStopGrace, ShutdownDelay: time.Minute}).doubts(); len(more) != 0 { // who is alone does not wait for it
		t.Error(more)
	}
	if more := (Options{Peer: ":0", StopGrace: defaultStopGrace, ShutdownDelay: defaultShutdownDelay}).doubts(); len(more) != 0 {
		t.Error(more)
	}
	if more := (Options{Peer: ":0", ShutdownDelay: time.Minute}).doubts(); len(more) != 1 {
		t.Error(more)
	}
}

// TestAddressesAreTriedBeforeAnythingIsMade: each at which a new controller is to listen, and two settings that name one.
func TestAddressesAreTriedBeforeAnythingIsMade(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := busy.Addr().String()
	tried := func(o Options) Options {
		o.Data, o.Log = t.TempDir(), slog.New(slog.DiscardHandler)
		o.gates = newGates(o)
		return o
	}
	for setting, o := range map[string]Options{
		"rapi": {RAPI: at}, "compute": {Compute: at}, "web": {Web: at}, "health": {Health: at}, "agent-address": {AgentAddress: at}, "peer": {Peer: at}, "mond": {Mond: at},
	} {
		if err := tried(o).tryAddresses(t.Context()); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "--"+setting+";") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{RAPI: at}, {AgentAddress: at}} {
		if err := tried(o).tryAddresses(t.Context()); err != nil {
			t.Errorf("one that is free: %v", err)
		}
	}
	if err := tried(Options{RAPI: at, AgentAddress: at}).tryAddresses(t.Context()); !fault.Is(err, fault.Environment) {
		t.Errorf("one for two: %v", err)
	}
}
