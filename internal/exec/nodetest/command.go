package nodetest

import (
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// restrictedCommands: a node runs those that it has, tells why it does not run another, and runs none for a leader of old.
func restrictedCommands(r *Rig) {
	ctx := r.Context()
	r.Program("#!/bin/sh\necho it says; echo more >&2\n", "commands", "says")
	r.Program("#!/bin/sh\necho in part; exit 4\n", "commands", "fails")
	said, err := r.Node.RunCommand(ctx, Order(1, 1), "says")
	r.Must(err)
	if said != "it says\nmore\n" {
		r.Errorf("it said %q", said)
	}
	_, err = r.Node.RunCommand(ctx, Order(2, 1), "fails")
	r.Want(fault.Failed, err)
	if want := "Restricted command 'fails' failed: exited with exit code 4; output: in part\n"; err == nil || err.Error() != want {
		r.Errorf("it failed with %v, want %s", err, want)
	}
	_, err = r.Node.RunCommand(ctx, Order(3, 1), "nosuch")
	r.Want(fault.NotFound, err)
	_, err = r.Node.RunCommand(ctx, Order(4, 1), "../commands/says")
	r.Want(fault.Invalid, err)
	newer := Order(5, 1)
	newer.Epoch = 2
	_, err = r.Node.RunCommand(ctx, newer, "says")
	r.Must(err)
	_, err = r.Node.RunCommand(ctx, Order(6, 1), "says")
	r.Want(fault.Fenced, err)

	r.Program("#!/bin/sh\nyes | head -c 100000\n", "commands", "much")
	newer.Job++
	said, err = r.Node.RunCommand(ctx, newer, "much")
	r.Must(err)
	if len(said) < 64<<10 || len(said) > 65<<10 || !strings.HasPrefix(said, "[only the last") {
		r.Errorf("of much it told %d bytes: %.60q", len(said), said)
	}
}
