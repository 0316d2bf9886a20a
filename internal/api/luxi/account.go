package luxi

import (
	"errors"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// Peer tells which account of this machine is at the other end of a
// connection, by what the kernel says of it. Connections of other kinds than
// unix sockets, which only tests make, are nobody's.
func Peer(conn net.Conn) reason.Account {
	who := reason.Account{Surface: "luxi", Name: "unknown"}
	socket, ok := conn.(syscall.Conn)
	if !ok || conn.RemoteAddr().Network() != "unix" {
		return who
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return who
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if errors.Join(err, credErr) != nil {
		return who
	}
	uid := strconv.FormatUint(uint64(cred.Uid), 10)
	who.Name, who.From = "uid "+uid, "pid "+strconv.Itoa(int(cred.Pid))
	if u, err := user.LookupId(uid); err == nil {
		who.Name = u.Username
	}
	return who
}

// signed returns opcodes whose trails tell who sent them, in one entry for all that
// a request hands in.
func signed(ops []*opcode.Opcode, by reason.Entry) []*opcode.Opcode {
	out := make([]*opcode.Opcode, len(ops))
	for i, op := range ops {
		out[i] = op.WithReason(op.Reason.Then(by))
	}
	return out
}

// as is who sends the request, with the reason trail in an argument, if it is
// there: why. Anything else in its place is one argument too many.
func (a *arguments) as(i int) audit.By {
	by := audit.By{Account: a.by}
	if i < 0 || !a.has(i) {
		return by
	}
	if _, ok := luxiwire.Elements(a.items[i]); !ok {
		a.fail(fault.New(fault.Invalid, "Unable to read %s", a.known).At(fmt.Sprintf("args[%d]", i)).
			WithHint("behind the arguments there may be a reason trail, a list"))
		return by
	}
	by.Trail = a.trail(i)
	if err := reason.CheckOutside(by.Trail, allowedSource); err != nil {
		a.fail(err)
	}
	return by
}
