package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/fault"
)

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "drover.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeysAreFlags holds the file and the command line to one list of names.
func TestKeysAreFlags(t *testing.T) {
	s := serveDefaults()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.register(f)
	var keys []string
	for _, key := range reflect.VisibleFields(reflect.TypeFor[settings]()) {
		if !key.Anonymous {
			keys = append(keys, key.Tag.Get("toml"))
		}
	}
	count := 0
	f.VisitAll(func(*pflag.Flag) { count++ })
	if count != len(keys) {
		t.Errorf("%d flags, %d keys", count, len(keys))
	}
	for _, name := range keys {
		if f.Lookup(name) == nil {
			t.Errorf("there is no flag %s", name)
		}
	}
}

func TestFlagsCountBeforeTheFileAndTheFileBeforeDefaults(t *testing.T) {
	from := source{
		defaults: serveDefaults(), flags: map[string]string{"nodes": "7", "stop-grace": "2s", "config": "x"},
		file: configFile(t, "nodes = 3\nstop-grace = \"1m\"\narchive-after = \"48h\"\nlog-level = \"debug\"\nlog-format = \"json\"\nrequire-authentication = false\n"),
	}
	s, err := from.read()
	if err != nil {
		t.Fatal(err)
	}
	if s.Nodes != 7 || s.StopGrace.String() != "2s" || s.ArchiveAfter.String() != "48h0m0s" || s.LogLevel.Level != slog.LevelDebug ||
		s.LogFormat != "json" || s.RequireAuthentication || s.RAPI != ":5080" || s.Mond != "" {
		t.Errorf("%+v", s)
	}
	if got := strings.Join(s.differences(serveDefaults()), " "); got != "archive-after log-format log-level nodes require-authentication stop-grace" {
		t.Errorf("they differ in %s", got)
	}
}

func TestMistakesInTheConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"nodes = 1\nnods = 2\n":                           "drover.toml:2:1: there is no setting nods",
		"[rapi]\nport = 1\n":                              "drover.toml:",
		"nodes = \"many\"\n":                              "drover.toml:1:9: cannot decode TOML string as nodes",
		"nodes = 1\nnodes = 2\n":                          "drover.toml:2:",
		"nodes =\n":                                       "drover.toml:1:",
		"stop-grace = \"soon\"\n":                         `"soon" is no time`,
		"archive-after = 5\n":                             `"5" is no time`, // five what?
		"log-level = 4\n":                                 `"4" is none of debug, info, warn, error`,
		"rapi = \"\"\n":                                   "rapi: there is no address to listen at (127.0.0.1:5080 is for this machine alone",
		"rapi = 5080\n":                                   "rapi is a text; write it in quotation marks",
		"stop-grace = \"-1s\"\n":                          "stop-grace: the time is negative",
		"archive-after = \"0s\"\n":                        "archive-after: the time is not positive",
		"archive-keep = \"90\"\n":                         `archive-keep: there is no one age in "90"`, // 90 what?
		"log-level = \"loud\"\n":                          `"loud" is none of debug, info, warn, error`,
		"log-format = \"xml\"\n":                          `"xml" is neither text nor json`,
		"peer-address = \"a:1\"\n":                        "peer-address: the controller is alone",
		"nodes = 0\n":                                     "nodes: a cluster has one node at least",
		"first-server-number = 0\n":                       "first-server-number: numbers begin with 1 at least, not 0",
		"first-server-number = 9007199254740993\n":        "first-server-number: 9007199254740993 is more than",
		"store = \"mysql://x\"\n":                         "there is no kind of store",
		"store = \"host=db password=secret-of-drover\"\n": "there is no kind of store for what is no URL",
		"data = \"\"\n":                                   "data: there is no directory",
		"rapi-certificate = [\"a\"]\n":                    "drover.toml:1:",
		"public-url = \"cloud\"\n":                        `public-url: "cloud" is no URL`,
		"trusted-proxies = \"proxy\"\n":                   `trusted-proxies: "proxy" is neither an address nor a network`,
		"proxy-protocol = \"rapi\"\n":                     "proxy-protocol: nobody could connect, as no proxy is trusted",
		"proxy-protocol = \"rapi, luxi\"\n":               `proxy-protocol: "luxi" is none of rapi, compute, web`,
	} {
		_, err := source{defaults: serveDefaults(), file: configFile(t, text)}.read()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-of-drover") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := (source{defaults: serveDefaults(), file: filepath.Join(t.TempDir(), "none")}).read(); !fault.Is(err, fault.Environment) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestDefaultsOfDev: who says nothing of a setting has these of `drover dev`, and those that are not among them are empty. Those of
// `drover serve` are held by packaging/drover.toml.
func TestDefaultsOfDev(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/somewhere")
	const want = `archive-after = "6h0m0s"
auto-finalize = true
compute = "127.0.0.1:0"
compute-tls = false
data = "/somewhere/drover/dev"
first-server-number = 1
hypervisor = "fake"
log-format = "text"
log-level = "warn"
mond = "127.0.0.1:0"
no-copy = false
nodes = 3
rapi = "127.0.0.1:5080"
require-authentication = false
shutdown-delay = "0s"
stop-grace = "5s"
tasks = true
watch-every = "1m0s"
web = "127.0.0.1:0"
`
	var out bytes.Buffer
	if err := devDefaults().tell(&out, ""); err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(out.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#") || strings.HasSuffix(line, " = \"\"\n")
	})
	if got := strings.Join(lines, ""); got != want {
		t.Errorf("the defaults are\n%s\nnot\n%s", got, want)
	}
}

// TestHelpNamesOneDefault: of a setting that has a default pflag tells it, and its text
// must not tell another.
func TestHelpNamesOneDefault(t *testing.T) {
	for name, s := range map[string]settings{"dev": devDefaults(), "serve": serveDefaults()} {
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		s.register(flags)
		for line := range strings.Lines(flags.FlagUsages()) {
			if strings.Count(line, "(default") > 1 {
				t.Errorf("drover %s --help: %s", name, line)
			}
		}
		if n := strings.Count(flags.FlagUsages(), "--luxi "); n != 1 || !strings.Contains(flags.Lookup("luxi").Usage+flags.Lookup("luxi").DefValue, "luxi.sock") {
			t.Errorf("drover %s --help does not tell where its socket is", name)
		}
	}
}

// TestShownSettingsSayTheSame reads what --check-config shows as a configuration.
func TestShownSettingsSayTheSame(t *testing.T) {
	s := serveDefaults()
	s.Nodes, s.RequireAuthentication, s.ReadyFile = 5, false, "/tmp/a \"b\""
	var out bytes.Buffer
	if err := s.tell(&out, ""); err != nil {
		t.Fatal(err)
	}
	again, err := source{file: configFile(t, out.String())}.read()
	if err != nil || again != s {
		t.Errorf("%s\nreads as %+v, %v", out.String(), again, err)
	}
}

// TestPasswordsOfSettingsAreNotShown has them in each setting that is a URL, in each place where a URL can have one.
func TestPasswordsOfSettingsAreNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"amqp://drover:s3cr%t@mq:5672/":                             "amqp://xxxxx", // not a URL, but a password
		"amqps://drover:s3cret@mq:5671/vhost":                       "amqps://drover:xxxxx@mq:5671/vhost",
		"postgres://db/x?user=drover&password=s3cret":               "postgres://db/x?password=xxxxx&user=drover",
		"postgres://drover:s3cret@db/x?sslpassword=s3cret&sslkey=k": "postgres://drover:xxxxx@db/x?sslkey=k&sslpassword=xxxxx",
		"https://keystone.example:5000/v3":                          "https://keystone.example:5000/v3",
	} {
		s := serveDefaults()
		s.Store, s.Events, s.Keystone = text, text, text
		var out bytes.Buffer
		if err := s.tell(&out, "f"); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"store", "events", "keystone"} {
			if line := name + " = \"" + want + "\"\n"; !strings.Contains(out.String(), line) || strings.Contains(out.String(), "s3cr") {
				t.Errorf("of %s it shows\n%s\nnot %s", text, out.String(), line)
			}
		}
	}
	_, err := source{defaults: serveDefaults(), file: configFile(t, "store = \"mysql://drover:s3cret@db/x\"\n")}.read()
	if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("of a store of another kind it says: %v", err)
	}
}
