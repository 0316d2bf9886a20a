package nodetest

import (
	"context"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
)

// renew stands for the agent's own certificate: each has another number.
func (r *Rig) renew(context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed++
	return strconv.Itoa(r.renewed), nil
}

// anotherCertificate: a node says which number its newest certificate has, makes another one when it is told again, and none for a leader of old.
func anotherCertificate(r *Rig) {
	ctx := r.Context()
	for _, want := range []string{"1", "2"} {
		serial, err := r.Node.RenewCertificate(ctx, Order(1, 1))
		r.Must(err)
		if serial != want {
			r.Errorf("its number is %q, want %s", serial, want)
		}
	}
	newer := Order(2, 1)
	newer.Epoch = 2
	_, err := r.Node.RenewCertificate(ctx, newer)
	r.Must(err)
	_, err = r.Node.RenewCertificate(ctx, Order(3, 1))
	r.Want(fault.Fenced, err)
	if r.renewed != 3 {
		r.Errorf("%d were made", r.renewed)
	}
}
