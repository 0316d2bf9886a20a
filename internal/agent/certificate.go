package agent

import (
	"context"

	"github.com/drover-project/drover/internal/agent/effect"
	"github.com/drover-project/drover/internal/fault"
)

// RenewCertificate has the agent make a key, and ask for the certificate by which it comes from then on; it returns the number of that. Given again, the order
// does so once more. Unsupported by one that lives in the process of the controller, and needs none.
func (a *Agent) RenewCertificate(ctx context.Context, order Order) (serial string, err error) {
	if a.cfg.Renew == nil {
		return "", fault.New(fault.Unsupported, "node %s has no certificate: its agent lives in the controller's process", a.cfg.Node)
	}
	if err := a.fence.Check(ctx, effect.Claim{Order: order, What: "renew the certificate of the agent"}); err != nil {
		return "", err
	}
	return a.cfg.Renew(ctx)
}
