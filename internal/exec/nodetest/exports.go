package nodetest

import (
	"bytes"
	"slices"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// keptExports has the node dump a disk, keep an export of it and one that comes from elsewhere, tell of both and remove them.
func keptExports(r *Rig) {
	ctx, spec, log := r.Context(), Spec(One), func(string) {}
	d := agent.Dump{Place: exports.Place{ID: "first", File: "d0"}, Form: export.Pretended}
	r.Made(One)
	r.Want(fault.WrongState, r.Node.DumpDisk(ctx, Order(2, 1), spec, d, nil, log))
	live := d
	live.Snapshot = true
	r.Want(fault.WrongState, r.Node.DumpDisk(ctx, Order(2, 11), spec, live, nil, log)) // of what there is no snapshot of
	for range 2 {
		r.Must(r.Node.SnapshotDisks(ctx, Order(2, 12), One, "first"))
	}
	r.Must(r.Node.DumpDisk(ctx, Order(2, 13), spec, live, nil, log))
	script := live
	script.Form = export.Script
	r.Want(fault.Unsupported, r.Node.DumpDisk(ctx, Order(2, 14), spec, script, nil, log))
	r.Must(r.Node.ReleaseSnapshot(ctx, Order(2, 15), One, "first"))
	r.Want(fault.WrongState, r.Node.DumpDisk(ctx, Order(2, 16), spec, live, nil, log))
	r.Must(r.Node.DiscardExport(ctx, Order(2, 17), "first"))
	r.Must(r.Node.Stop(ctx, Order(2, 2), One, hypervisor.Stop{Force: true}, nil))
	r.Must(r.Node.DumpDisk(ctx, Order(2, 3), spec, d, nil, log))
	raw := d
	raw.Form = export.Raw
	r.Want(fault.Unsupported, r.Node.DumpDisk(ctx, Order(2, 4), spec, raw, nil, log))
	says := export.Export{ID: "first", Time: 7, Name: One.Name, OS: "noop", Disks: []export.Disk{{Size: 1024, Dump: "d0", Form: export.Pretended}}}
	for range 2 {
		r.Must(r.Node.FinishExport(ctx, Order(2, 5), "first", says))
	}
	content := bytes.Repeat([]byte("content"), 100)
	whole := agent.Piece{Data: content, Next: int64(len(content)), Size: int64(len(content))}
	other := exports.Place{ID: "second", File: "d1"}
	r.Must(r.Node.KeepDump(ctx, Order(2, 6), other, whole))
	if got, err := r.Node.ReadDump(ctx, other, 0); err != nil || !bytes.Equal(got.Data, content) || got.Next != got.Size {
		r.Errorf("it keeps %+v, %v", got, err)
	}
	discardsHalf(r, Order(2, 7), "second")
	_, err := r.Node.ReadDump(ctx, other, 0)
	r.Want(fault.NotFound, err)
	if names, err := r.Node.Exports(ctx); err != nil || len(names) != 1 || names[0] != One.Name {
		r.Errorf("it keeps the exports %v, %v", names, err)
	}
	if got, err := r.Node.Export(ctx, One.Name); err != nil || got.ID != "first" || got.OS != "noop" || len(got.Disks) != 1 || got.Disks[0] != says.Disks[0] {
		r.Errorf("it says %+v, %v", got, err)
	}
	d.Place = exports.Place{Export: One.Name, File: "d0"}
	r.Must(r.Node.ImportDisk(ctx, Order(2, 8), spec, d, nil, log))
	r.Must(r.Node.RenameSystem(ctx, Order(2, 9), spec, "noop", "other", nil, log))
	r.Must(r.Node.RemoveExport(ctx, Order(2, 10), One.Name))
	_, err = r.Node.Export(ctx, One.Name)
	r.Want(fault.NotFound, err)
	newer := Order(3, 1)
	newer.Epoch = 2
	r.Must(r.Node.RemoveExport(ctx, newer, One.Name))
	for what, err := range map[string]error{
		"dump": r.Node.DumpDisk(ctx, Order(4, 1), spec, d, nil, log), "import": r.Node.ImportDisk(ctx, Order(4, 2), spec, d, nil, log),
		"rename": r.Node.RenameSystem(ctx, Order(4, 3), spec, "noop", "other", nil, log), "keep": r.Node.KeepDump(ctx, Order(4, 4), other, whole),
		"snapshot": r.Node.SnapshotDisks(ctx, Order(4, 8), One, "first"), "release": r.Node.ReleaseSnapshot(ctx, Order(4, 9), One, "first"),
		"finish": r.Node.FinishExport(ctx, Order(4, 5), "first", says), "discard": r.Node.DiscardExport(ctx, Order(4, 6), "first"),
		"remove": r.Node.RemoveExport(ctx, Order(4, 7), One.Name),
	} {
		if !fault.Is(err, fault.Fenced) {
			r.Errorf("%s under an epoch that is over: %v", what, err)
		}
	}
}

// discardsHalf has the node tell of what is not whole, with a dump d1 of 700 bytes, and discard it.
func discardsHalf(r *Rig, order agent.Order, id string) {
	r.Helper()
	for _, there := range []bool{true, false} {
		got, err := r.Node.HalfExports(r.Context())
		is := err == nil && len(got) == 1 && got[0].ID == id && slices.Equal(got[0].Files, []string{"d1"}) && got[0].Size == 700 && !got[0].Since.IsZero()
		if err != nil || is != there {
			r.Errorf("of what is not whole it tells %+v, %v", got, err)
		}
		r.Must(r.Node.DiscardExport(r.Context(), order, id))
	}
}
