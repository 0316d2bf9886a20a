package gate

import (
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
)

// Surface is a kind of listener with its limits. Times that are zero are not bounded.
type Surface struct {
	// Key is its word in figures, settings and the log; Name is for people.
	Key, Name string
	// Most is how many connections there are at once, where Share allows it: how many
	// sixteenths of the files that the process may open they may take.
	Most, Share int
	// Local: its clients are of this machine, and are told apart by their accounts.
	Local bool
	// Strangers is how many connections there are at once whose other end has not shown
	// that it belongs here (Conn.Known); one more ends the oldest of them. Zero for a
	// surface where anybody may ask.
	Strangers int
	// Header bounds the handshake and the header of a request, Body the rest of it, Answer
	// what is sent, or of LUXI a part of it, and Idle the time between requests.
	Header, Body, Answer, Idle time.Duration
	// Beyond is what a connection is answered for which there is no place.
	Beyond string
}

// The surfaces of the program. Strangers of Agents are many, as a thousand agents come at once at the beginning of a term: one that is ended for the sake of the next has cost
// its handshake, and has to come again.
var (
	RAPI = Surface{Key: "rapi", Name: "RAPI", Most: 2048, Share: 2, Header: 10 * time.Second, Body: time.Minute, Answer: 2 * time.Minute, Idle: 3 * time.Minute,
		Beyond: "503 to 16 at a time, others are closed"}
	Compute = Surface{Key: "compute", Name: "Compute, Identity and Image APIs", Most: 2048, Share: 2, Header: RAPI.Header, Body: RAPI.Body, Answer: RAPI.Answer, Idle: RAPI.Idle,
		Beyond: RAPI.Beyond}
	Web = Surface{Key: "web", Name: "the page", Most: 2048, Share: 1, Header: RAPI.Header, Body: RAPI.Body, Answer: RAPI.Answer, Idle: RAPI.Idle,
		Beyond: RAPI.Beyond}
	LUXI = Surface{Key: "luxi", Name: "LUXI", Most: 1000, Share: 2, Local: true, Body: luxiwire.FrameTimeout, Answer: luxiwire.SendTimeout, Idle: luxiwire.IdleTimeout,
		Beyond: "an answer with `busy` to 16 at a time, others are closed"}
	Peers = Surface{Key: "peer", Name: "other controllers", Most: 2048, Share: 2, Strangers: 64, Header: 3 * time.Second, Idle: 2 * time.Minute,
		Beyond: "the connection is closed"}
	Agents = Surface{Key: "agents", Name: "agents of nodes that are elsewhere", Most: 4096, Share: 2, Strangers: 1024, Header: 10 * time.Second,
		Beyond: "the connection is closed"}
	Monitors = Surface{Key: "mond", Name: "monitoring agents, of all nodes together", Most: 1024, Share: 1, Header: 10 * time.Second, Body: 10 * time.Second, Answer: 30 * time.Second, Idle: time.Minute,
		Beyond: RAPI.Beyond}
	Health = Surface{Key: "health", Name: "health and figures", Most: 64, Share: 1, Header: 5 * time.Second, Body: 5 * time.Second, Answer: 30 * time.Second, Idle: 2 * time.Minute,
		Beyond: RAPI.Beyond}
)

// Surfaces returns all surfaces, in the order in which they are shown.
func Surfaces() []Surface {
	return []Surface{RAPI, Compute, Web, LUXI, Peers, Agents, Monitors, Health}
}

// Socket is a surface of datagrams, which has no connections and so no places.
type Socket struct {
	// Key is its word in settings; Name is for people.
	Key, Name string
}

// Confd answers the questions of Ganeti's programs, one after the other.
var Confd = Socket{Key: "confd", Name: "confd"}

// Sockets returns all surfaces of datagrams.
func Sockets() []Socket { return []Socket{Confd} }

// parts is what the files of a process are divided into.
const parts = 16

// places is how many connections there are at once in a process that may open so many
// files: one at least.
func (s Surface) places(files int) int { return max(min(s.Most, files*s.Share/parts), 1) }

// Files is how many files the process may open.
func Files() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		const usual = 1024
		return usual
	}
	const plenty = 1 << 20 // more is not needed, and may be "unlimited"
	return int(min(files.Cur, plenty))
}
