package app

import (
	"context"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
)

// onMachine is the machine of a controller, as opcodes know it.
type onMachine struct{ m *member }

var _ exec.Machine = onMachine{}

// WriteFiles writes the files for programs of Ganeti anew.
func (o onMachine) WriteFiles() error { return o.m.ganeti.Load().rewrite() }

// Has refuses what the controller has not, or not of its own.
func (o onMachine) Has(which exec.Secret) error {
	switch which {
	case exec.AgentsCertificate: // it is made when an agent comes
	case exec.RAPICertificate:
		return o.m.cert.Load().Replaceable()
	case exec.ConfdKey:
		if o.m.ganeti.Load() == nil {
			return fault.New(fault.WrongState, "This controller has no key of confd").WithHint("the setting ganeti-dir has it keep one")
		}
	}
	return nil
}

// Renew makes one anew.
func (o onMachine) Renew(which exec.Secret) error {
	if err := o.Has(which); err != nil {
		return err
	}
	switch which {
	case exec.AgentsCertificate:
		o.m.agents.forgetCertificate()
	case exec.RAPICertificate:
		return o.m.replaceCertificate(time.Now())
	case exec.ConfdKey:
		return o.m.ganeti.Load().changeKey()
	}
	return nil
}

// KeepsAddress refuses where the cluster's address is not cared for.
func (o onMachine) KeepsAddress() error {
	if o.m.masterIP == nil {
		return fault.New(fault.WrongState, "The address of the cluster is not cared for by this controller").
			WithHint("the setting master-ip-setup names a program that brings it up and takes it away")
	}
	return nil
}

// Address brings the cluster's address up on this machine, or takes it away.
func (o onMachine) Address(ctx context.Context, c *cluster.Cluster, up bool) error {
	if err := o.KeepsAddress(); err != nil {
		return err
	}
	return o.m.masterIP.set(ctx, addressOf(c), up)
}
