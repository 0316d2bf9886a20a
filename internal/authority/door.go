package authority

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// Door is where agents come in, at the controller that leads: it has the decisions of package joining carried out on the inventory.
type Door struct {
	// Authority signs.
	Authority *Authority
	// Node finds a node by its name; nil if there is none.
	Node func(name string) *cluster.Node
	// Update decides what a node keeps of its agent, and returns when that is durable. The decision may be made more than once.
	Update func(ctx context.Context, name string, decide func(node *cluster.Node) (*cluster.NodeAgent, error)) error
	// Now is the clock.
	Now func() time.Time
	// Term is the epoch of the leader.
	Term int64
	// Places are where controllers take agents in.
	Places func() []string
}

// Admit refuses who may not serve as a node.
func (d *Door) Admit(node string, shown *x509.Certificate) error {
	if err := d.shows(node, shown); err != nil {
		return err
	}
	return joining.Admit(d.Node(node), shown, d.Now())
}

// shows refuses a certificate that the authority did not sign, or that is another node's.
func (d *Door) shows(node string, c *x509.Certificate) error {
	if err := d.Authority.Verify(c, d.Now()); err != nil {
		return err
	}
	name, err := joining.NodeNamed(c)
	if err == nil && name != node {
		err = fault.New(fault.Denied, "the agent says it is node %.300q, and its certificate is that of %s", node, name)
	}
	return err
}

// Join makes the certificate of an agent that has the secret of a token.
func (d *Door) Join(ctx context.Context, node, secret string, request []byte) ([]byte, error) {
	return d.issue(ctx, node, request, func(n *cluster.Node, key []byte) (func(*x509.Certificate) *cluster.NodeAgent, error) {
		return joining.Join(n, secret, key, d.Now())
	})
}

// Renew makes the next certificate of who shows one.
func (d *Door) Renew(ctx context.Context, node string, shown *x509.Certificate, request []byte) ([]byte, error) {
	if err := d.shows(node, shown); err != nil {
		return nil, err
	}
	return d.issue(ctx, node, request, func(n *cluster.Node, _ []byte) (func(*x509.Certificate) *cluster.NodeAgent, error) {
		return joining.Renew(n, shown)
	})
}

// issue signs what was decided, and hands it out when it is durable that it counts.
func (d *Door) issue(ctx context.Context, node string, request []byte, decide func(*cluster.Node, []byte) (func(*x509.Certificate) *cluster.NodeAgent, error)) ([]byte, error) {
	r, err := ReadRequest(request)
	if err != nil {
		return nil, err
	}
	var cert *x509.Certificate
	err = d.Update(ctx, node, func(n *cluster.Node) (*cluster.NodeAgent, error) {
		if n == nil {
			return nil, fault.New(fault.Denied, "node %.300q is not in the cluster", node).WithHint("drover node token NAME adds one, and prints the token of its agent")
		}
		keep, err := decide(n, r.RawSubjectPublicKeyInfo)
		if err != nil {
			return nil, err
		}
		if cert, err = d.Authority.Sign(r, n.Name, n.UUID, d.Now()); err != nil {
			return nil, err
		}
		return keep(cert), nil
	})
	if err != nil {
		return nil, err
	}
	return CertificateText(cert.Raw), nil
}

// Epoch is that of the leader's term.
func (d *Door) Epoch() int64 { return d.Term }

// Addresses are where controllers take agents in.
func (d *Door) Addresses() []string { return d.Places() }
