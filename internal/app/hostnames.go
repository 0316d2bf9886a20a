package app

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/exec"
)

// nodedPort is where Ganeti's checks knock to see whether an address is in
// use; a refusal is an answer too.
const nodedPort = 1811

// knockTime bounds how long an address is waited for.
const knockTime = 10 * time.Second

// hostNames asks the resolver of this machine, and the programs on it that choose nodes, or ask their management controllers.
func hostNames(allocators exec.Allocators, power exec.Programs, machine exec.Machine) exec.Names {
	var dialer net.Dialer
	return exec.Names{
		Allocators: allocators, OutOfBand: power, Machine: machine,
		Resolve: func(ctx context.Context, name string) (full, address string, err error) {
			addresses, err := net.DefaultResolver.LookupHost(ctx, name)
			if err != nil {
				return "", "", err
			}
			full = name
			if canonical, err := net.DefaultResolver.LookupCNAME(ctx, name); err == nil {
				full = strings.TrimSuffix(canonical, ".")
			}
			return full, addresses[0], nil
		},
		Answers: func(ctx context.Context, address string) bool {
			ctx, done := context.WithTimeout(ctx, knockTime)
			defer done()
			conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(nodedPort)))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil || errors.Is(err, syscall.ECONNREFUSED)
		},
	}
}
