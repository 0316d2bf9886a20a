package nodetest

import (
	"slices"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
)

// runHooks: a node tells which hooks it has, runs those of a directory with their environment as often as it is ordered to, and for no leader of old.
func runHooks(r *Rig) {
	ctx := r.Context()
	_, err := r.Node.State(ctx, false) // which waits for a node that is still on its way
	r.Must(err)
	dirs, err := r.Node.HookDirs(ctx)
	r.Must(err)
	if len(dirs) > 0 {
		r.Errorf("it has %q", dirs)
	}
	const dir = "disk-grow-post.d"
	r.Program("#!/bin/sh\necho $GANETI_OP_TARGET; exit 1\n", "hooks", dir, "10")
	r.Program("#!/bin/sh\nexit 0\n", "hooks", dir, "20")
	_, err = r.Node.State(ctx, true) // with which it tells
	r.Must(err)
	dirs, err = r.Node.HookDirs(ctx)
	r.Must(err)
	if !slices.Equal(dirs, []string{dir}) {
		r.Errorf("it has %q", dirs)
	}
	asked := agent.Hooks{Dir: dir, Env: map[string]string{"GANETI_OP_TARGET": "one"}}
	want := []hooks.Result{{Script: dir + "/10", Failed: true, Output: "one"}, {Script: dir + "/20"}}
	for range 2 {
		got, err := r.Node.RunHooks(ctx, Order(1, 1), asked)
		r.Must(err)
		if !slices.Equal(got, want) {
			r.Errorf("they came to %+v, want %+v", got, want)
		}
	}
	newer := Order(2, 1)
	newer.Epoch = 2
	_, err = r.Node.RunHooks(ctx, newer, asked)
	r.Must(err)
	_, err = r.Node.RunHooks(ctx, Order(3, 1), asked)
	r.Want(fault.Fenced, err)
}
