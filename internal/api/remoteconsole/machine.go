package remoteconsole

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// Machine is what a console is of.
type Machine struct {
	// UUID and Name are the instance's.
	UUID, Name string
	// Project is whose it is, where machines are somebody's.
	Project string
}

// OfServers finds the machines of servers of the Compute API, of which get tells; nil if there is none.
func OfServers(get func(id string) *server.Server) func(id string) (Machine, error) {
	return func(id string) (Machine, error) {
		s := get(id)
		if s == nil {
			return Machine{}, fault.New(fault.WrongState, "Instance %s is not ready", id)
		}
		m := Machine{UUID: s.UUID, Name: s.Instance, Project: s.Project}
		switch {
		case s.UUID == "" || s.Deleted != 0:
			return m, fault.New(fault.WrongState, "Instance %s is not ready", id)
		case s.Backend != "":
			return m, fault.New(fault.Unsupported, "its cluster shows no consoles here")
		}
		return m, nil
	}
}

// OfInstances finds the machines of instances, of which inventory tells as it is.
func OfInstances(inventory func() *cluster.Snapshot) func(id string) (Machine, error) {
	return func(id string) (Machine, error) {
		inst, err := inventory().FindInstance(id)
		if err != nil {
			return Machine{}, err
		}
		return Machine{UUID: inst.UUID, Name: inst.Name}, nil
	}
}
