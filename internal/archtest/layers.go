// Package archtest holds the rules of the architecture as data, and the tests
// that hold the tree to them: which package belongs to which layer, who may
// import whom, and what the pure layers must not touch.
//
// Invariants:
//   - Every package has a place in the table of layers; a new one fails the test
//     until somebody has decided where it belongs.
//   - A lower layer never imports a higher one, and adapters never one another.
//   - The command line is a client: what it knows of engines is their protocol.
//   - The two lowest layers are pure: no files, network, clock, randomness or
//     goroutines. What they need of these is handed to them as a value.
//   - yaql stands alone, so that anyone can use it.
package archtest

import "path"

// Layer says how high a package stands.
type Layer int

// The layers, and beside them the packages that only tests may use.
const (
	Leaf Layer = iota
	Core
	Engine
	Adapter
	Composition
	ForTests
)

var layerNames = [...]string{"leaf", "pure core", "engine or port", "adapter", "composition", "for tests only"}

func (l Layer) String() string { return layerNames[l] }

// layers is the table: the first pattern (see path.Match) that matches a
// package's path within the module decides.
var layers = []struct {
	pattern string
	layer   Layer
}{
	{"internal/archtest", ForTests},
	{"internal/*/*test", ForTests},
	{"internal/sim/*", ForTests},
	{"internal/store/faultstore", ForTests},
	{"internal/testkit", ForTests},
	{"internal/testkit/*", ForTests},
	{"test", ForTests},
	{"test/*", ForTests},
	{"test/simulate/drive", ForTests},

	{"internal/fault", Leaf},
	{"internal/backoff", Leaf},
	{"internal/intake", Leaf},
	{"internal/reason", Leaf},
	{"internal/qlang", Leaf},
	{"internal/requestid", Leaf},
	{"internal/version", Leaf},
	{"internal/logmessage", Leaf},
	{"internal/textdiff", Leaf},
	{"yaql", Leaf},
	{"yaql/*", Leaf},
	{"yaql/internal/*", Leaf},

	{"internal/health", Core},
	{"internal/opcode", Core},
	{"internal/job", Core},
	{"internal/jobfilter", Core},
	{"internal/query", Core},
	{"internal/query/items", Core},
	{"internal/diskimage", Core},
	{"internal/export", Core},
	{"internal/cluster", Core},
	{"internal/servertag", Core},
	{"internal/server", Core},
	{"internal/audit", Core},
	{"internal/lock", Core},
	{"internal/work", Core},
	{"internal/joining", Core},
	{"internal/rights", Core},
	{"internal/placement", Core},
	{"internal/evacuation", Core},
	{"internal/hooks", Core},
	{"internal/allocator", Core},
	{"internal/outofband", Core},
	{"internal/ssconf", Core},
	{"internal/watcher", Core},
	{"internal/schedule", Core},
	{"internal/state", Core},
	{"internal/deploy/*", Core},

	{"internal/queue/machine", Core},
	{"internal/rollout", Engine},
	{"internal/queue", Engine},
	{"internal/live", Engine},
	{"internal/picture", Engine},
	{"internal/readlease", Engine},
	{"internal/standby", Engine},
	{"internal/exec", Engine},
	{"internal/inventory", Engine},
	{"internal/tagsync", Engine},
	{"internal/identity", Engine},
	{"internal/keypair", Engine},
	{"internal/upload", Engine},
	{"internal/flavor", Engine},
	{"internal/quota", Engine},
	{"internal/systems", Engine},
	{"internal/store", Engine},
	{"internal/store/format", Core},
	{"internal/store/groupcommit", Engine}, // what the adapters of the store share
	{"internal/store/schema", Engine},
	{"internal/store/image", Engine}, // what stores hand each other
	{"internal/store/life", Engine},
	{"internal/sealed", Engine}, // a store over a store
	{"internal/hypervisor", Engine},
	{"internal/storage", Engine},
	{"internal/console", Engine},
	{"internal/qmp", Engine}, // a protocol and its client
	{"internal/events", Engine},
	{"internal/agent", Engine},
	{"internal/authority", Engine},
	{"internal/scratch", Engine},
	{"internal/wholefile", Engine},
	{"internal/guarded", Engine},   // it looks at files
	{"internal/plainfile", Engine}, // it opens files
	{"internal/tinyguest", Engine}, // what runs guests boots it, and so do tests of adapters
	{"internal/seed", Engine},      // it writes by way of temporary files
	{"internal/agent/effect", Engine},
	{"internal/agent/exports", Engine},
	{"internal/agent/imagecache", Engine},
	{"internal/agent/pieces", Engine},
	{"internal/qemuimg", Engine},
	{"internal/gate", Engine},
	{"internal/metrics", Engine},   // what is counted by engines and adapters
	{"internal/forwarded", Engine}, // what the transports share that may stand behind proxies
	{"internal/openstack", Engine}, // a client
	{"internal/luxiwire", Engine},  // the protocol and its client, below the transport that serves it

	{"internal/store/*", Adapter},
	{"internal/hypervisor/*", Adapter},
	{"internal/storage/*", Adapter},
	{"internal/api/*", Adapter},
	{"internal/events/*", Adapter},
	{"internal/identity/*", Adapter},
	{"internal/backend/*", Adapter},
	{"internal/agentwire", Adapter}, // nodes that are elsewhere
	{"internal/systemd", Adapter},

	{"internal/agentd", Composition},
	{"internal/app", Composition},
	{"internal/daemon", Composition},
	{"internal/nodedriver", Composition},
	{"internal/bench", Composition},
	{"internal/cli", Composition},
	{"internal/cli/*", Composition},
	{"bench/pairs", Composition},
	{"cmd/*", Composition},
}

// commandFrame are the packages of the command line that its nouns share.
var commandFrame = []string{"internal/cli/shell", "internal/cli/work", "internal/cli/lists", "internal/cli/listing", "internal/cli/classic", "internal/cli/screen"}

// clientProtocols are the engines that clients may know: how to talk to a
// controller.
var clientProtocols = []string{"internal/luxiwire", "internal/openstack"}

// layerOf looks a package up in the table.
func layerOf(rel string) (Layer, bool) {
	for _, l := range layers {
		if ok, err := path.Match(l.pattern, rel); ok && err == nil {
			return l.layer, true
		}
	}
	return 0, false
}

// impureImports are what the pure layers must not import, with what to do instead.
var impureImports = map[string]string{
	"net":           "addresses are net/netip values; connections belong to adapters",
	"net/http":      "transports belong to adapters",
	"net/rpc":       "transports belong to adapters",
	"os":            "take the content as a value, or an fs.FS",
	"os/exec":       "running programs belongs to adapters",
	"os/signal":     "signals belong to the composition",
	"os/user":       "take the user as a value",
	"syscall":       "belongs to adapters",
	"log":           "return what happened; whoever called decides what to log",
	"log/slog":      "return what happened; whoever called decides what to log",
	"database/sql":  "belongs to store adapters",
	"math/rand":     "take the random value, or its source, as a parameter",
	"math/rand/v2":  "take the random value, or its source, as a parameter",
	"crypto/rand":   "take the random value as a parameter",
	"testing":       "belongs to test files",
	"path/filepath": "files belong to adapters; package path handles slashes",
}

// impureCalls are functions that the pure layers must not name, by package.
var impureCalls = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"sync":    {"WaitGroup", "Cond", "NewCond"},
	"context": {"Background", "TODO", "WithCancel", "WithTimeout", "WithDeadline", "AfterFunc"},
}

// allowed are exceptions for one package, by what is named there, with the reason.
var allowed = map[string]map[string]string{
	"yaql": {
		"math/rand/v2": "the language has random()",
		"time.Now":     "the language has now()",
		// Hosts that call without a context get one that never ends.
		"context.Background": "the context is optional for hosts",
	},
	// How much work a search with backtracking is tells nothing but the time that it takes, by which it is limited anyhow.
	"yaql/internal/pyre": {"time.Now": "searches that nobody can foresee are paid for", "time.Since": "searches that nobody can foresee are paid for"},
	// Plans of a thousand nodes take seconds of a processor; all there are share the work. What comes out does not depend
	// on who is faster, and nothing goes on behind the caller's back.
	"internal/deploy/plan":   {"sync.WaitGroup": "nodes are evaluated at the same time"},
	"internal/deploy/report": {"sync.WaitGroup": "pieces of long lists are written at the same time"},
}

// vagueNames are package names that say what kind of code it is, not what it is about.
var vagueNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "types": true, "models": true,
	"misc": true, "shared": true, "base": true, "lib": true, "tools": true, "interfaces": true, "constants": true,
}
