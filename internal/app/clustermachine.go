package app

import "github.com/drover-project/drover/internal/exec"

// onMachine is the machine of a controller, as opcodes know it.
type onMachine struct{ m *member }

var _ exec.Machine = onMachine{}

// WriteFiles writes the files for programs of Ganeti anew.
func (o onMachine) WriteFiles() error { return o.m.ganeti.Load().rewrite() }
