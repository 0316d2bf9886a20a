package app

import (
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/daemon"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/nodedriver"
)

// settings are what an operator can say to a controller, in its configuration
// file and in flags of the same names. What is true of the cluster is not among
// them: that is in the store.
type settings struct {
	Name                  string           `toml:"name"`
	Data                  string           `toml:"data"`
	Store                 string           `toml:"store"`
	KeyFile               string           `toml:"key-file"`
	RAPI                  string           `toml:"rapi"`
	RAPICertificate       string           `toml:"rapi-certificate"`
	RAPIUsers             string           `toml:"rapi-users"`
	RequireAuthentication bool             `toml:"require-authentication"`
	LUXI                  string           `toml:"luxi"`
	LUXIGroup             string           `toml:"luxi-group"`
	GanetiDir             string           `toml:"ganeti-dir"`
	Confd                 string           `toml:"confd"`
	ClusterName           string           `toml:"cluster-name"`
	Peer                  string           `toml:"peer"`
	PeerAddress           string           `toml:"peer-address"`
	Mond                  string           `toml:"mond"`
	AgentAddress          string           `toml:"agent-address"`
	AgentAdvertise        string           `toml:"agent-advertise"`
	NodeData              string           `toml:"node-data"`
	Compute               string           `toml:"compute"`
	ComputeTLS            bool             `toml:"compute-tls"`
	Health                string           `toml:"health"`
	Web                   string           `toml:"web"`
	WebURL                string           `toml:"web-url"`
	PublicURL             string           `toml:"public-url"`
	TrustedProxies        string           `toml:"trusted-proxies"`
	ProxyProtocol         string           `toml:"proxy-protocol"`
	Keystone              string           `toml:"keystone"`
	KeystoneCA            string           `toml:"keystone-ca"`
	Events                string           `toml:"events"`
	ServerEffects         string           `toml:"server-effects"`
	ServerClusters        string           `toml:"server-clusters"`
	FirstServerNumber     int              `toml:"first-server-number"`
	Nodes                 int              `toml:"nodes"`
	Tasks                 bool             `toml:"tasks"`
	Functions             string           `toml:"functions"`
	Allocators            string           `toml:"iallocators"`
	OutOfBand             string           `toml:"oob-programs"`
	MasterIPSetup         string           `toml:"master-ip-setup"`
	AutoFinalize          bool             `toml:"auto-finalize"`
	NoCopy                bool             `toml:"no-copy"`
	ReadyFile             string           `toml:"ready-file"`
	StopGrace             daemon.Duration  `toml:"stop-grace"`
	ShutdownDelay         daemon.Duration  `toml:"shutdown-delay"`
	WatchEvery            daemon.Duration  `toml:"watch-every"`
	ArchiveAfter          daemon.Duration  `toml:"archive-after"`
	ArchiveKeep           string           `toml:"archive-keep"`
	Backups               string           `toml:"backups"`
	Uploads               string           `toml:"uploads"`
	LogLevel              daemon.Level     `toml:"log-level"`
	LogFormat             daemon.LogFormat `toml:"log-format"`

	nodedriver.Settings
}

// reloadable are the settings that a running controller takes up.
var reloadable = []string{"log-level"}

// inPlaceOf tells in help what is taken where a setting has no default of its own, which
// help names by itself.
func inPlaceOf(setting, otherwise string) string {
	if setting != "" {
		return ""
	}
	return " (default: " + otherwise + ")"
}

// register makes a flag of each setting; what the settings are is the default.
func (s *settings) register(f *pflag.FlagSet) {
	f.StringVar(&s.Name, "name", s.Name, "name of this controller among others (default: that of the machine)")
	f.StringVar(&s.Data, "data", s.Data, "directory of everything that lasts")
	f.StringVar(&s.Store, "store", s.Store, "URL of a PostgreSQL database to keep the state in (default: in the data directory)")
	f.StringVar(&s.KeyFile, "key-file", s.KeyFile, "file with the key that secrets are sealed with in the store (default: key in the data directory); controllers of one store have the same")
	f.StringVar(&s.RAPI, "rapi", s.RAPI, "address of RAPI; port 0 picks a free one")
	f.StringVar(&s.RAPICertificate, "rapi-certificate", s.RAPICertificate, "PEM file with certificate and key of RAPI (default: one of its own in the data directory)")
	f.StringVar(&s.RAPIUsers, "rapi-users", s.RAPIUsers, "file with the accounts of RAPI (default: one in the data directory, with an account that is made at the first start)")
	f.BoolVar(&s.RequireAuthentication, "require-authentication", s.RequireAuthentication, "let nobody read over RAPI without an account; =false lets everybody")
	f.StringVar(&s.LUXI, "luxi", s.LUXI, "path of the LUXI socket"+inPlaceOf(s.LUXI, "luxi.sock in the data directory"))
	f.StringVar(&s.LUXIGroup, "luxi-group", s.LUXIGroup, "group, by name or number, whose members may open that socket, and so do everything (default: the controller's user alone)")
	f.StringVar(&s.GanetiDir, "ganeti-dir", s.GanetiDir, "directory that is kept as programs of Ganeti expect theirs, which find it by GANETI_ROOTDIR, and / without: ssconf files, the key of confd, the socket (default: none)")
	f.StringVar(&s.Confd, "confd", s.Confd, "address, of UDP, at which their questions to confd are answered; they ask at port 1814 (default: none)")
	f.StringVar(&s.ClusterName, "cluster-name", s.ClusterName, "name of a new cluster (default: "+newClusterName+"); drover cluster rename gives one that is there another")
	f.StringVar(&s.Peer, "peer", s.Peer, "address at which other controllers of the same store reach this one; with it, it stands by while another leads")
	f.StringVar(&s.PeerAddress, "peer-address", s.PeerAddress, "address that the others are told, where they reach this one at another than that of peer")
	f.StringVar(&s.AgentAddress, "agent-address", s.AgentAddress, "address at which agents of nodes that are elsewhere connect; port 0 picks a free one (default: none, all nodes live in this process)")
	f.StringVar(&s.AgentAdvertise, "agent-advertise", s.AgentAdvertise, "address that agents are told, where they reach this controller at another than that of agent-address")
	f.StringVar(&s.NodeData, "node-data", s.NodeData, "directory of the nodes that live in the leader's process (default: nodes in the data directory)")
	f.StringVar(&s.Mond, "mond", s.Mond, "address of the nodes' monitoring agents; port 0 picks a free one for each, \"\" has none")
	f.StringVar(&s.Compute, "compute", s.Compute, "address of the OpenStack Compute API, with identity and images; port 0 picks a free one, \"\" has none")
	f.BoolVar(&s.ComputeTLS, "compute-tls", s.ComputeTLS, "serve that over TLS, with the certificate of RAPI (default: over plain HTTP)")
	f.StringVar(&s.Health, "health", s.Health, "address of a listener for /healthz, /readyz and /metrics alone, in plain HTTP and without accounts; port 0 picks a free one (default: they are served beside RAPI only)")
	f.StringVar(&s.Web, "web", s.Web, "address of the page; port 0 picks a free one, \"\" has none; plain HTTP on loopback, else TLS with the certificate of RAPI")
	f.StringVar(&s.WebURL, "web-url", s.WebURL, "URL under which people reach the page, behind a proxy or a name (default: the address)")
	f.StringVar(&s.PublicURL, "public-url", s.PublicURL, "URL under which clients reach that, behind a proxy (default: what requests say)")
	f.StringVar(&s.TrustedProxies, "trusted-proxies", s.TrustedProxies, "addresses and networks, separated by commas, of proxies whose headers Forwarded or X-Forwarded-* are believed (default: none)")
	f.StringVar(&s.ProxyProtocol, "proxy-protocol", s.ProxyProtocol, "surfaces, separated by commas, that trusted proxies alone connect to, which tell by the PROXY protocol for whom: "+strings.Join(keys(gate.Proxied()), ", ")+" (default: none)")
	f.StringVar(&s.Keystone, "keystone", s.Keystone, "URL, with /v3, of the identity service whose tokens the Compute API takes (default: accounts of its own)")
	f.StringVar(&s.KeystoneCA, "keystone-ca", s.KeystoneCA, "PEM file with who vouches for its certificate (default: those that the machine trusts)")
	f.StringVar(&s.Events, "events", s.Events, "URL of a RabbitMQ broker that is told how opcodes ended (default: only this process is)")
	f.StringVar(&s.ServerEffects, "server-effects", s.ServerEffects, "TOML file with what tags of servers do beside being there (default: nothing)")
	f.StringVar(&s.ServerClusters, "server-clusters", s.ServerClusters, "TOML file with further clusters for servers, reached over RAPI (default: only this one)")
	f.IntVar(&s.FirstServerNumber, "first-server-number", s.FirstServerNumber, "least number of a new server; its instance is called snf-NUMBER, on further clusters, too")
	s.Settings.Register(f)
	f.IntVar(&s.Nodes, "nodes", s.Nodes, "how many nodes a new cluster gets")
	s.registerPrograms(f)
	f.BoolVar(&s.Tasks, "tasks", s.Tasks, "let deployments run tasks on the nodes of this process: commands with its rights")
	f.BoolVar(&s.AutoFinalize, "auto-finalize", s.AutoFinalize, "raise the format of the store as soon as all controllers can keep a newer one; =false leaves it to drover cluster format raise")
	f.BoolVar(&s.NoCopy, "no-copy", s.NoCopy, "move the schema and raise the format of an embedded store without a copy of before in the data directory, which is the way back")
	f.StringVar(&s.ReadyFile, "ready-file", s.ReadyFile, "file to write, as JSON, when everything listens")
	f.Var(&s.StopGrace, "stop-grace", "how long running opcodes may go on after the first signal; a second one ends all at once")
	f.Var(&s.ShutdownDelay, "shutdown-delay", "how long a controller with peers goes on serving after the first signal, while /readyz says that it is leaving and another leads")
	f.Var(&s.WatchEvery, "watch-every", "how often it is looked for instances that are to run and do not, which are started again; 0 never looks")
	f.Var(&s.ArchiveAfter, "archive-after", "how long ended jobs stay before they move to the archive")
	f.StringVar(&s.ArchiveKeep, "archive-keep", s.ArchiveKeep, "what stays in the archive: jobs of an age, a number of them, or both, events and deployments of an age (\"90d\", \"100000 jobs\", \"90d, 100000 jobs, events 1y, deployments 1y\"); what is older and beyond is removed (default: all jobs and deployments, and the newest 100,000 events)")
	f.StringVar(&s.Backups, "backups", s.Backups, "directory with backups of the store on this machine, made by drover backup create: the age of the newest is told, and that there is none"+inPlaceOf(s.Backups, "none is looked at"))
	f.StringVar(&s.Uploads, "uploads", s.Uploads, "directory of the images that users upload over the Image API, which this cluster has alone; controllers of one store have the same, on a file system that they share"+inPlaceOf(s.Uploads, "uploads in the data directory; with a PostgreSQL database none, and nothing is uploaded"))
	f.Var(&s.LogLevel, "log-level", "what is logged: debug, info, warn or error")
	f.Var(&s.LogFormat, "log-format", "how it is logged: "+strings.Join(daemon.LogFormats, " or "))
}

// registerPrograms makes the flags of what operators bring along.
func (s *settings) registerPrograms(f *pflag.FlagSet) {
	f.StringVar(&s.Functions, "functions", s.Functions, "directory with functions of your own for expressions of tasks, in files whose names end in .yaml or .yml")
	f.StringVar(&s.Allocators, "iallocators", s.Allocators, "directories, separated by colons, of programs that may choose nodes, as Ganeti's /usr/lib/ganeti/iallocators; they run with the controller's rights (default: none)")
	f.StringVar(&s.OutOfBand, "oob-programs", s.OutOfBand, "directories, separated by colons, of programs that may switch nodes on and off, which node parameters name (oob_program); they run with the controller's rights (default: none)")
	f.StringVar(&s.MasterIPSetup, "master-ip-setup", s.MasterIPSetup, "program that brings the address of the cluster up (start) on the machine of the controller that leads, and takes it away (stop), as Ganeti's master-ip-setup; it runs with the controller's rights (default: none, the address is not cared for)")
}

// offer registers the options of a command, with the values of those that have few.
func (s *settings) offer(cmd *cobra.Command) {
	s.register(cmd.Flags())
	few := nodedriver.Values()
	few["log-level"], few["log-format"] = []string{"debug", "info", "warn", "error"}, daemon.LogFormats
	for name, values := range few {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the option exists
	}
}

// options are the settings as a controller takes them.
func (s *settings) options() Options {
	public, _ := forwarded.ParsePublic(s.PublicURL)        // checked, or not given
	proxies, _ := forwarded.ParseProxies(s.TrustedProxies) // checked
	proxied, _ := parseProxied(s.ProxyProtocol)            // checked
	var page *url.URL
	if s.WebURL != "" {
		page, _ = parseWebURL(s.WebURL) // checked
	}
	kept, _ := parseKeep(s.ArchiveKeep) // checked
	shown := &strings.Builder{}
	_ = s.tell(shown, "") // nothing there can fail
	return Options{
		Settings: shown.String(),
		Web:      s.Web, WebURL: page, Health: s.Health,
		Driver: s.Settings, Name: s.Name, Peer: s.Peer, PeerAddress: s.PeerAddress, AgentAddress: s.AgentAddress, AgentAdvertise: s.AgentAdvertise, NodeData: s.NodeData, Data: s.Data, Store: s.Store, KeyFile: s.KeyFile, RAPI: s.RAPI, Certificate: s.RAPICertificate, Users: s.RAPIUsers,
		RequireAuthentication: s.RequireAuthentication, LUXI: s.LUXI, LUXIGroup: s.LUXIGroup, GanetiDir: s.GanetiDir, Confd: s.Confd, ClusterName: s.ClusterName, Mond: s.Mond, Compute: s.Compute, ComputeTLS: s.ComputeTLS,
		PublicURL: public, TrustedProxies: proxies, ProxyProtocol: proxied,
		Keystone: s.Keystone, KeystoneCA: s.KeystoneCA, Events: s.Events, ServerEffects: s.ServerEffects, ServerClusters: s.ServerClusters, FirstServerNumber: int64(s.FirstServerNumber),
		Nodes: s.Nodes, Tasks: s.Tasks, Functions: s.Functions, Allocators: s.Allocators, OutOfBand: s.OutOfBand, MasterIPSetup: s.MasterIPSetup, AutoFinalize: s.AutoFinalize, NoCopy: s.NoCopy, ReadyFile: s.ReadyFile,
		StopGrace: s.StopGrace.Duration, ShutdownDelay: s.ShutdownDelay.Duration, WatchEvery: s.WatchEvery.Duration, ArchiveAfter: s.ArchiveAfter.Duration, ArchiveKeep: kept, Backups: s.Backups, Uploads: s.Uploads,
	}
}

// maxFirstServer is the greatest number of a first server: clients read numbers as JSON, in which they are exact up to
// 2^53, and there has to be room above.
const maxFirstServer = 1 << 50

// check refuses settings that no controller can run with.
func (s *settings) check() error {
	switch {
	case s.Data == "":
		return fault.New(fault.Invalid, "data: there is no directory for what lasts").At("data")
	case s.RAPI == "":
		return fault.New(fault.Invalid, "rapi: there is no address to listen at").At("rapi").WithHint("127.0.0.1:5080 is for this machine alone, :5080 for all of its addresses; port 0 picks a free one")
	case s.Nodes < 1:
		return fault.New(fault.Invalid, "nodes: a cluster has one node at least, not %d", s.Nodes).At("nodes")
	case s.FirstServerNumber < 1:
		return fault.New(fault.Invalid, "first-server-number: numbers begin with 1 at least, not %d", s.FirstServerNumber).At("first-server-number")
	case s.FirstServerNumber > maxFirstServer:
		return fault.New(fault.Invalid, "first-server-number: %d is more than %d", s.FirstServerNumber, maxFirstServer).At("first-server-number")
	case s.StopGrace.Duration < 0:
		return fault.New(fault.Invalid, "stop-grace: the time is negative: %v", s.StopGrace.Duration).At("stop-grace")
	case s.ShutdownDelay.Duration < 0:
		return fault.New(fault.Invalid, "shutdown-delay: the time is negative: %v", s.ShutdownDelay.Duration).At("shutdown-delay")
	case s.WatchEvery.Duration < 0:
		return fault.New(fault.Invalid, "watch-every: the time is negative: %v", s.WatchEvery.Duration).At("watch-every")
	case s.WatchEvery.Duration > 0 && s.WatchEvery.Duration < time.Second:
		return fault.New(fault.Invalid, "watch-every: %v is less than a second", s.WatchEvery.Duration).At("watch-every").WithHint("0 never looks")
	case s.ArchiveAfter.Duration <= 0:
		return fault.New(fault.Invalid, "archive-after: the time is not positive: %v", s.ArchiveAfter.Duration).At("archive-after")
	}
	if _, err := parseKeep(s.ArchiveKeep); err != nil {
		return err
	}
	if s.ClusterName != "" {
		if _, err := cluster.NormalName(s.ClusterName); err != nil {
			return fault.New(fault.Invalid, "cluster-name: %w", err).At("cluster-name")
		}
	}
	if s.PeerAddress != "" && s.Peer == "" {
		return fault.New(fault.Invalid, "peer-address: the controller is alone").At("peer-address").WithHint("name the address to listen at as peer")
	}
	if s.AgentAdvertise != "" && s.AgentAddress == "" {
		return fault.New(fault.Invalid, "agent-advertise: no agents are taken in").At("agent-advertise").WithHint("name the address to listen at as agent-address")
	}
	if s.Confd != "" && s.GanetiDir == "" {
		return fault.New(fault.Invalid, "confd: the key that questions are signed with has no place").At("confd").WithHint("name the directory that programs of Ganeti look into as ganeti-dir")
	}
	if s.Peer != "" && s.Store == "" {
		return fault.New(fault.Invalid, "peer: the embedded store has one controller").At("peer").
			WithHint("name a PostgreSQL database as the store, or leave peer out")
	}
	if err := new(daemon.LogFormat).Set(string(s.LogFormat)); err != nil { // the decoder of the file does not ask it
		return fault.New(fault.Invalid, "log-format: %w", err).At("log-format")
	}
	if err := errors.Join(s.Settings.Check(), s.checkProxies()); err != nil {
		return err
	}
	return checkStoreURL(s.Store)
}

// checkProxies refuses what says nothing about where clients reach the services.
func (s *settings) checkProxies() error {
	if s.PublicURL != "" {
		if _, err := forwarded.ParsePublic(s.PublicURL); err != nil {
			return fault.New(fault.Invalid, "public-url: %w", err).At("public-url")
		}
	}
	if s.WebURL != "" {
		if _, err := parseWebURL(s.WebURL); err != nil {
			return err
		}
	}
	if _, err := forwarded.ParseProxies(s.TrustedProxies); err != nil {
		return fault.New(fault.Invalid, "trusted-proxies: %w", err).At("trusted-proxies")
	}
	proxied, err := parseProxied(s.ProxyProtocol)
	if err == nil && proxied != nil && s.TrustedProxies == "" {
		err = fault.New(fault.Invalid, "proxy-protocol: nobody could connect, as no proxy is trusted").At("proxy-protocol").WithHint("name the proxies as trusted-proxies")
	}
	return err
}

// keys are the words for surfaces in settings.
func keys(surfaces []gate.Surface) (words []string) {
	for _, s := range surfaces {
		words = append(words, s.Key)
	}
	return words
}

// parseProxied reads a list of surfaces that are behind proxies which speak the PROXY protocol; nil for none.
func parseProxied(list string) (words []string, err error) {
	if list == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		if all := keys(gate.Proxied()); !slices.Contains(all, word) {
			return nil, fault.New(fault.Invalid, "proxy-protocol: %q is none of %s", fault.Clip(word, 100), strings.Join(all, ", ")).At("proxy-protocol")
		}
		words = append(words, word)
	}
	return words, nil
}

// source is where settings come from: the defaults, a file (none if empty),
// and flags that were given, which count before the file.
type source struct {
	defaults settings
	file     string
	flags    map[string]string
}

// read reads the settings, from the file as it is now.
func (s source) read() (settings, error) {
	out := s.defaults
	if s.file != "" {
		if err := daemon.Decode(s.file, &out, "drover serve --help lists them"); err != nil {
			return out, err
		}
	}
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	out.register(flags)
	for name, value := range s.flags {
		if flags.Lookup(name) == nil {
			continue // a flag of the command that is no setting
		}
		if err := flags.Set(name, value); err != nil {
			return out, fault.New(fault.Invalid, "%s: %w", name, err).At(name)
		}
	}
	return out, out.check()
}

// differences names the settings that differ, in the order of their names.
func (s settings) differences(other settings) []string {
	names := func(s *settings) map[string]string {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.register(f)
		values := map[string]string{}
		f.VisitAll(func(flag *pflag.Flag) { values[flag.Name] = flag.Value.String() })
		return values
	}
	mine, its := names(&s), names(&other)
	var out []string
	for name, value := range mine {
		if its[name] != value {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// DefaultArchiveAfter is how long ended jobs stay among the others, unless
// Options say otherwise; then they move to the archive, where they stay.
const DefaultArchiveAfter = 6 * time.Hour

// defaultWatchEvery is how often it is looked for instances that do not run.
const defaultWatchEvery = time.Minute

// devDefaults are those of `drover dev`: a cluster to try things on.
func devDefaults() settings {
	return settings{
		Data: DefaultData(), RAPI: "127.0.0.1:5080", Mond: "127.0.0.1:0", Compute: "127.0.0.1:0", Web: "127.0.0.1:0", Nodes: 3, Tasks: true, AutoFinalize: true, FirstServerNumber: 1,
		StopGrace: daemon.Duration{Duration: defaultStopGrace}, WatchEvery: daemon.Duration{Duration: defaultWatchEvery}, ArchiveAfter: daemon.Duration{Duration: DefaultArchiveAfter}, LogLevel: daemon.Level{Level: slog.LevelWarn}, LogFormat: "text",
		Settings: nodedriver.Defaults(),
	}
}

// serveDefaults are those of `drover serve`: a service of this machine.
func serveDefaults() settings {
	s := devDefaults()
	s.Data, s.LUXI = filepath.Join("/var/lib", "drover"), "/run/drover/luxi.sock"
	s.Tasks = false
	s.RAPI, s.Mond, s.Nodes, s.LogLevel = ":5080", "", 1, daemon.Level{Level: slog.LevelInfo}
	s.Compute, s.Web = "", ""
	s.Backups = "/var/lib/drover-backups"
	s.ShutdownDelay = daemon.Duration{Duration: defaultShutdownDelay}
	s.RequireAuthentication = true // dev is reached over loopback alone
	return s
}
