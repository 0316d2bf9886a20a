package query

import "github.com/drover-project/drover/internal/cluster"

// Words of the field "status".
const (
	statusRunning      = "running"
	statusErrorUp      = "ERROR_up"
	statusErrorDown    = "ERROR_down"
	statusWrongNode    = "ERROR_wrongnode"
	statusNodeDown     = "ERROR_nodedown"
	statusNodeOffline  = "ERROR_nodeoffline"
	statusAdminDown    = "ADMIN_down"
	statusAdminOffline = "ADMIN_offline"
	statusUserDown     = "USER_down"
)

func instanceLiveFields() []field[instance] {
	return []field[instance]{
		{Def: Def{"status", "Status", KindText, "State in one word: running, ADMIN_down, ADMIN_offline, USER_down, or an error: ERROR_up, ERROR_down, ERROR_wrongnode, ERROR_nodedown, ERROR_nodeoffline"},
			from: Live, need: NeedInstances,
			get: func(v *view, i instance) Cell { return text(instanceStatus(v, i)) }},
		{Def: Def{"oper_state", "Running", KindBool, "Whether a node reports the instance"},
			from: Live, need: NeedInstances, get: operState},
		{Def: Def{"oper_ram", "Memory", KindUnit, "Memory in MiB that it has at the moment"},
			from: Live, need: NeedInstances,
			get: func(v *view, i instance) Cell {
				return reported(v, i, func(s InstanceState) any { return s.Memory })
			}},
		{Def: Def{"oper_vcpus", "VCPUs", KindNumber, "Number of virtual processors that it has at the moment"},
			from: Live, need: NeedInstances,
			get: func(v *view, i instance) Cell {
				return reported(v, i, func(s InstanceState) any { return s.VCPUs })
			}},
		{Def: Def{"console", "Console", KindOther, "How to reach its console"},
			from: Live, need: NeedInstances | NeedConsole, get: console},
	}
}

// primaryState is the status of what the primary node has to tell: Offline when
// it is marked so, NoData when it did not answer, else Normal.
func primaryState(v *view, i instance) Status {
	n := v.inv.Node(i.PrimaryNode)
	if n != nil && n.Offline {
		return Offline
	}
	if _, ok := v.live.of(i.PrimaryNode); n == nil || !ok {
		return NoData
	}
	return Normal
}

func instanceStatus(v *view, i instance) string {
	state := primaryState(v, i)
	if state == Offline {
		return statusNodeOffline
	}
	at, found := v.live.instance(i.UUID, i.PrimaryNode)
	switch {
	case !found && state == NoData:
		return statusNodeDown
	case !found:
		return statusUnreported(v, i)
	case at.node != i.PrimaryNode:
		return statusWrongNode
	case at.state.Shutdown:
		return statusShutDown(v, i)
	case i.AdminState == cluster.AdminUp:
		return statusRunning
	}
	return statusErrorUp
}

// statusShutDown is for an instance that its own user shut down.
func statusShutDown(v *view, i instance) string {
	switch {
	case i.AdminState != cluster.AdminUp:
		return statusAdminDown
	case userMayShutDown(v, i):
		return statusUserDown
	}
	return statusErrorDown
}

func statusUnreported(v *view, i instance) string {
	switch i.AdminState {
	case cluster.AdminUp:
		return statusErrorDown
	case cluster.AdminOffline:
		return statusAdminOffline
	case cluster.AdminDown:
		if i.AdminStateSource == cluster.SourceUser && v.cluster.UserShutdown {
			return statusUserDown
		}
	}
	return statusAdminDown
}

func userMayShutDown(v *view, i instance) bool {
	if !v.cluster.UserShutdown {
		return false
	}
	return i.Hypervisor != "kvm" || hvParam(v, i, "user_shutdown").Value == true
}

func operState(v *view, i instance) Cell {
	if primaryState(v, i) != Normal {
		return Cell{Status: NoData}
	}
	_, found := v.live.instance(i.UUID, i.PrimaryNode)
	return truth(found)
}

// reported is a value out of the report on an instance.
func reported(v *view, i instance, get func(InstanceState) any) Cell {
	if s := primaryState(v, i); s != Normal {
		return Cell{Status: s}
	}
	at, found := v.live.instance(i.UUID, i.PrimaryNode)
	if !found {
		return Cell{Status: Unavail}
	}
	return known(get(at.state))
}

// NoConsole is what clients are told about the console of an instance whose
// hypervisor has none to reach, as the reference tells it of its fake.
func NoConsole(i *cluster.Instance) map[string]any {
	return map[string]any{
		"instance": i.Name, "kind": "msg", "message": "Console not available for " + i.Hypervisor + " hypervisor",
	}
}

func console(v *view, i instance) Cell {
	if s := primaryState(v, i); s != Normal {
		return Cell{Status: s}
	}
	answer, _ := v.live.of(i.PrimaryNode)
	if c := answer.Consoles[i.UUID]; c != nil {
		return known(c)
	}
	return Cell{Status: NoData}
}
