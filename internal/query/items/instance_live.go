package items

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

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

func instanceLiveFields() []query.Field[instance] {
	return []query.Field[instance]{
		{Def: def("status", "Status", query.KindText, "State in one word: running, ADMIN_down, ADMIN_offline, USER_down, or an error: ERROR_up, ERROR_down, ERROR_wrongnode, ERROR_nodedown, ERROR_nodeoffline"),
			From: query.Live, Need: query.NeedInstances,
			Get: func(v *query.View, i instance) query.Cell { return text(instanceStatus(v, i)) }},
		{Def: def("oper_state", "Running", query.KindBool, "Whether a node reports the instance"),
			From: query.Live, Need: query.NeedInstances, Get: operState},
		{Def: def("told_state", "ToldState", query.KindText, "What its primary node told of it last: running or down; also of a node that does not answer now, whose told_at says when that was"),
			From: query.Live, Need: query.NeedInstances, Get: toldState},
		{Def: def("oper_ram", "Memory", query.KindUnit, "Memory in MiB that it has at the moment"),
			From: query.Live, Need: query.NeedInstances,
			Get: func(v *query.View, i instance) query.Cell {
				return reported(v, i, func(s query.InstanceState) any { return s.Memory })
			}},
		{Def: def("oper_vcpus", "VCPUs", query.KindNumber, "Number of virtual processors that it has at the moment"),
			From: query.Live, Need: query.NeedInstances,
			Get: func(v *query.View, i instance) query.Cell {
				return reported(v, i, func(s query.InstanceState) any { return s.VCPUs })
			}},
		{Def: def("console", "Console", query.KindOther, "How to reach its console"),
			From: query.Live, Need: query.NeedInstances | query.NeedConsole, Get: console},
	}
}

// primaryState is the status of what the primary node has to tell: Offline when
// it is marked so, NoData when it did not answer, else Normal.
func primaryState(v *query.View, i instance) query.Status {
	n := v.Inventory.Node(i.PrimaryNode)
	if n != nil && n.Offline {
		return query.Offline
	}
	if _, ok := v.Answers.Of(i.PrimaryNode); n == nil || !ok {
		return query.NoData
	}
	return query.Normal
}

func instanceStatus(v *query.View, i instance) string {
	state := primaryState(v, i)
	if state == query.Offline {
		return statusNodeOffline
	}
	at, found := v.Answers.Instance(i.UUID, i.PrimaryNode)
	switch {
	case !found && state == query.NoData:
		return statusNodeDown
	case !found:
		return statusUnreported(v, i)
	case at.Node != i.PrimaryNode:
		return statusWrongNode
	case at.State.Shutdown:
		return statusShutDown(v, i)
	case i.AdminState == cluster.AdminUp:
		return statusRunning
	}
	return statusErrorUp
}

// statusShutDown is for an instance that its own user shut down.
func statusShutDown(v *query.View, i instance) string {
	switch {
	case i.AdminState != cluster.AdminUp:
		return statusAdminDown
	case userMayShutDown(v, i):
		return statusUserDown
	}
	return statusErrorDown
}

func statusUnreported(v *query.View, i instance) string {
	switch i.AdminState {
	case cluster.AdminUp:
		return statusErrorDown
	case cluster.AdminOffline:
		return statusAdminOffline
	case cluster.AdminDown:
		if i.AdminStateSource == cluster.SourceUser && v.Cluster.UserShutdown {
			return statusUserDown
		}
	}
	return statusAdminDown
}

func userMayShutDown(v *query.View, i instance) bool {
	if !v.Cluster.UserShutdown {
		return false
	}
	return i.Hypervisor != "kvm" || hvParam(v, i, "user_shutdown").Value == true
}

func operState(v *query.View, i instance) query.Cell {
	if primaryState(v, i) != query.Normal {
		return query.Cell{Status: query.NoData}
	}
	_, found := v.Answers.Instance(i.UUID, i.PrimaryNode)
	return truth(found)
}

// toldState is what the primary node told of an instance last, also one that is away.
func toldState(v *query.View, i instance) query.Cell {
	answer := v.Answers.Nodes[i.PrimaryNode]
	if answer.AsOf == 0 {
		return query.Cell{Status: query.NoData}
	}
	if s, reported := answer.Instances[i.UUID]; reported && !s.Shutdown {
		return text(statusRunning)
	}
	return text("down")
}

// reported is a value out of the report on an instance.
func reported(v *query.View, i instance, get func(query.InstanceState) any) query.Cell {
	if s := primaryState(v, i); s != query.Normal {
		return query.Cell{Status: s}
	}
	at, found := v.Answers.Instance(i.UUID, i.PrimaryNode)
	if !found {
		return query.Cell{Status: query.Unavail}
	}
	return known(get(at.State))
}

// NoConsole is what clients are told about the console of an instance whose
// hypervisor has none that they could reach, as the reference tells it of its fake: that of a
// virtual machine is held by its node's agent, and reached through the controller.
func NoConsole(i *cluster.Instance) map[string]any {
	message := "Console not available for " + i.Hypervisor + " hypervisor"
	if i.Hypervisor == "kvm" {
		message = "Type: drover instance console " + i.Name
	}
	return map[string]any{"instance": i.Name, "kind": "msg", "message": message}
}

func console(v *query.View, i instance) query.Cell {
	if s := primaryState(v, i); s != query.Normal {
		return query.Cell{Status: s}
	}
	answer, _ := v.Answers.Of(i.PrimaryNode)
	if c := answer.Consoles[i.UUID]; c != nil {
		return known(c)
	}
	return query.Cell{Status: query.NoData}
}
