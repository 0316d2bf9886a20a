package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/tinyguest"
)

// bootsTiny has the machines of a new cluster that is for trying start from a tiny guest, which is made at the first time, unless they
// are told otherwise. Where it cannot be made people are told, and machines start from their disks.
func (o *Options) bootsTiny(ctx context.Context, told io.Writer) error {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(told, format+"\n", args...) } // nowhere else to say it
	guest, err := tinyguest.Build(ctx, tinyguest.Options{Dir: guestDir(o.Data), Progress: func(text string) { say("tiny guest: %s", text) }})
	switch {
	case fault.Is(err, fault.Canceled):
		return err
	case err != nil:
		say("There is no tiny guest, so machines start from their disks: %v", err)
		return nil
	}
	o.HVParams = startsTiny(guest)
	return nil
}

// tellRunning tells that virtual machines run on when a controller for trying ends.
func (o *Options) tellRunning(told io.Writer) {
	nodes := cmp.Or(o.NodeData, filepath.Join(o.Data, "nodes"))
	entries, _ := os.ReadDir(nodes)
	count := 0
	for _, e := range entries {
		count += nodedriver.Running(filepath.Join(nodes, e.Name()))
	}
	if count > 0 {
		_, _ = fmt.Fprintf(told, "Virtual machines that run on: %d. The next start finds them; drover instance stop ends them before.\n", count)
	}
}
