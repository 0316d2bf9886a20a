package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent/effect"
)

// powercycleDelay is long enough for the answer to arrive.
const powercycleDelay = 5 * time.Second

// resets are those of the machine that are to come.
type resets struct {
	life context.Context
	end  context.CancelFunc
	all  *sync.WaitGroup
}

func newResets() resets {
	life, end := context.WithCancel(context.Background())
	return resets{life, end, &sync.WaitGroup{}}
}

// close gives up those that are to come.
func (r *resets) close() {
	r.end()
	r.all.Wait()
}

// Powercycle has the machine of the node switched off and on in a moment, and returns what is to be said of that: nobody is there then who could. It is not done
// if another controller leads by then.
func (a *Agent) Powercycle(ctx context.Context, order Order) (string, error) {
	reset, err := a.cfg.Driver.Powercycle()
	if err != nil {
		return "", err
	}
	claim := effect.Claim{Order: order, Of: "node", What: "switch the node off and on"}
	err = a.carryOutBy(ctx, claim, func(*effect.Hold) error {
		a.resets.all.Go(func() { a.resetSoon(claim, reset) })
		return nil
	})
	return fmt.Sprintf("Reboot scheduled in %.0f seconds", a.cfg.PowercycleDelay.Seconds()), err
}

// resetSoon resets the machine when the answer has had its time.
func (a *Agent) resetSoon(claim effect.Claim, reset func(context.Context) error) {
	ctx := a.resets.life
	timer := time.NewTimer(a.cfg.PowercycleDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	err := a.fence.Check(ctx, claim)
	if err == nil {
		a.cfg.Log.Info("the node is switched off and on", "node", a.cfg.Node, "job", claim.Order.Job)
		err = reset(ctx)
	}
	if err != nil {
		a.cfg.Log.Error("the node was not switched off and on", "node", a.cfg.Node, "job", claim.Order.Job, "error", err)
	}
	a.reporter.changed()
}
