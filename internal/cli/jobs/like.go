package jobs

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// opsLike are the opcodes of a job, to be submitted once more: without the jobs that
// it waited for, and with the trail that its user gave.
func opsLike(ctx context.Context, sh *shell.Shell, id job.ID) ([][]*opcode.Opcode, error) {
	all, missing, err := askDetails(ctx, sh, []job.ID{id})
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, noJob(id)
	}
	var ops []*opcode.Opcode
	for n, text := range all[0].Ops {
		if bytes.Contains(text, []byte(`"`+redacted+`"`)) {
			return nil, fault.New(fault.WrongState, "job %d was given secret or private values, which are not shown: submit it anew with them", id)
		}
		op, err := opcode.Parse(text, opcode.Options{})
		if err != nil {
			return nil, fault.New(fault.CodeOf(err), "job %d, opcode %d: %w", id, n, err)
		}
		c := *renewed(op)
		c.Depends = nil
		ops = append(ops, &c)
	}
	return [][]*opcode.Opcode{ops}, nil
}

// redacted stands in the place of values that are not shown.
const redacted = "<redacted>"

// renewed is an opcode without those hops of its trail that clients and controllers
// added when it was submitted before: this submission adds its own.
func renewed(op *opcode.Opcode) *opcode.Opcode {
	var kept reason.Trail
	for _, hop := range op.Reason {
		if hop.Source == reason.SourceUser || !reason.Reserved(hop.Source) {
			kept = append(kept, hop)
		}
	}
	return op.WithReason(kept)
}

// gone is the error of a job that there is not, and says whether it may have been pruned.
func gone(ctx context.Context, sh *shell.Shell, id job.ID) error {
	var ignored any
	err := sh.Ask(ctx, "ExplainJob", &ignored, id)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.NotFound {
		if _, why, pruned := strings.Cut(f.Message, ": "); pruned {
			return fault.New(fault.NotFound, "there is no job %d: %s", id, why)
		}
	}
	return noJob(id)
}

// noJob is the error of a job that there is not.
func noJob(id job.ID) error { return fault.New(fault.NotFound, "there is no job %d", id) }
