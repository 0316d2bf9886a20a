package confd

import (
	"errors"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// How a question was answered.
const (
	statusOK             = 0
	statusError          = 1
	statusNotImplemented = 2
)

// What an error says in place of a text.
const (
	unknownEntry  = 0
	argumentError = 2
)

// number is an error that is answered as a number.
type number int

func (n number) Error() string {
	if n == argumentError {
		return "the question was put in another form"
	}
	return "there is none"
}

// errNotAnswered is of the questions that are not answered here.
var errNotAnswered = errors.New("this question is not answered here")

// view is what questions are asked about.
type view struct {
	inv *cluster.Snapshot
	// config is the version of the configuration that the reference would have.
	config int64
}

// questions are the types of questions, by their numbers there, and how each is answered: with a value, and the serial number of what it is about.
var questions = map[int]func(v view, query any) (value any, serial int64, err error){
	0: view.ping,
	1: view.nodeRole,
	2: view.nodeOfAddress,
	3: view.master,
	4: func(v view, _ any) (any, int64, error) { return v.addresses(func(*cluster.Node) bool { return true }) },
	5: func(v view, _ any) (any, int64, error) {
		return v.addresses(func(n *cluster.Node) bool { return n.MasterCandidate })
	},
	6:  view.instanceAddresses,
	7:  view.drbd,
	8:  notAnswered, // the instances of a node, each with its whole configuration in the form of the reference's own file
	9:  view.disks,
	10: notAnswered, // any value of the reference's configuration file, which there is not
	11: view.collectors,
}

func notAnswered(view, any) (any, int64, error) { return nil, 0, errNotAnswered }

// reply answers a question of any type that there is; nil for one that there is not, which the reference does not answer either.
func reply(inv *cluster.Snapshot, config int64, q question) *answer {
	ask, known := questions[q.Type]
	if !known {
		return nil
	}
	a := &answer{Protocol: version}
	if inv == nil || inv.Cluster() == nil {
		a.Status, a.Answer = statusError, "Configuration not yet loaded"
		return a
	}
	var err error
	a.Answer, a.Serial, err = ask(view{inv, config}, q.Query)
	if err != nil {
		a.Status, a.Answer = refusal(err)
		a.Serial = 0
	}
	return a
}

// refusal is how an error is answered.
func refusal(err error) (status int, said any) {
	if errors.Is(err, errNotAnswered) {
		return statusNotImplemented, err.Error()
	}
	if n, is := errors.AsType[number](err); is {
		return statusError, int(n)
	}
	return statusError, err.Error()
}

func (v view) serial() int64 { return v.inv.Cluster().Serial }

func (v view) ping(any) (any, int64, error) { return v.config, 0, nil }

// named reads a question that is a name.
func named(query any) (string, error) {
	if name, is := query.(string); is {
		return name, nil
	}
	return "", fault.New(fault.Invalid, "the query is to be a name")
}

func (v view) node(query any) (*cluster.Node, error) {
	name, err := named(query)
	if err != nil {
		return nil, err
	}
	return v.inv.FindNode(name)
}

// roles are the numbers of the roles of nodes.
var roles = map[string]int{cluster.RoleMaster: 0, cluster.RoleCandidate: 1, cluster.RoleOffline: 2, cluster.RoleDrained: 3, cluster.RoleRegular: 4}

// nodeRole is the role of a node. One that is drained or offline is that first here, though it may be a candidate: as there, and unlike in queries.
func (v view) nodeRole(query any) (any, int64, error) {
	n, err := v.node(query)
	if err != nil {
		return nil, 0, err
	}
	role := v.inv.Cluster().Role(n)
	switch {
	case role == cluster.RoleMaster:
	case n.Drained:
		role = cluster.RoleDrained
	case n.Offline:
		role = cluster.RoleOffline
	}
	return roles[role], v.serial(), nil
}

// The keys of a question that is an object.
const (
	keyLink, keyAddress, keyAddresses, keyFields = "0", "1", "2", "3"
)

// object reads a question that is an object.
func object(query any) (map[string]any, error) {
	o, is := query.(map[string]any)
	if !is {
		return nil, number(argumentError)
	}
	for key := range o {
		if !slices.Contains([]string{keyLink, keyAddress, keyAddresses, keyFields}, key) {
			return nil, number(argumentError)
		}
	}
	return o, nil
}

func (v view) master(query any) (any, int64, error) {
	c := v.inv.Cluster()
	master := v.inv.Node(c.MasterNode)
	if master == nil {
		return nil, 0, fault.New(fault.NotFound, "the cluster has no master")
	}
	if query == nil {
		return master.Name, v.serial(), nil
	}
	o, err := object(query)
	if err != nil {
		return nil, 0, err
	}
	wanted, _ := o[keyFields].([]any)
	values := []any{}
	for _, field := range wanted {
		switch field {
		case 0.0:
			values = append(values, master.Name)
		case 1.0:
			values = append(values, c.MasterIP)
		case 2.0:
			values = append(values, master.PrimaryIP)
		default:
			return nil, 0, number(argumentError)
		}
	}
	return values, v.serial(), nil
}

func (v view) addresses(wanted func(*cluster.Node) bool) (any, int64, error) {
	out := []string{}
	for n := range v.inv.Nodes() {
		if wanted(n) {
			out = append(out, n.PrimaryIP)
		}
	}
	return out, v.serial(), nil
}

// onLink calls each with the address of a NIC on a link, and whose it is.
func (v view) onLink(link string, each func(address string, of *cluster.Instance)) {
	c := v.inv.Cluster()
	for i := range v.inv.Instances() {
		for n := range i.NICs {
			if nic := &i.NICs[n]; nic.IP != "" && c.NICParam(nic, "link") == link {
				each(nic.IP, i)
			}
		}
	}
}

// link is the one that was asked for; that which NICs have by default if none was.
func (v view) link(asked any) (string, error) {
	switch asked := asked.(type) {
	case nil:
		return v.inv.Cluster().NICParam(&cluster.NIC{}, "link"), nil
	case string:
		return asked, nil
	}
	return "", fault.New(fault.Invalid, "the link is to be a text")
}

func (v view) instanceAddresses(query any) (any, int64, error) {
	link, err := v.link(query)
	if err != nil {
		return nil, 0, err
	}
	out := []string{}
	v.onLink(link, func(address string, _ *cluster.Instance) { out = append(out, address) })
	slices.Sort(out)
	return slices.Compact(out), v.serial(), nil
}

// nodeOfAddress is the address of the node that runs the instance with an address, or a list of answers for a list of those.
func (v view) nodeOfAddress(query any) (any, int64, error) {
	o, err := object(query)
	if err != nil {
		return nil, 0, err
	}
	link, err := v.link(o[keyLink])
	if err != nil {
		return nil, 0, err
	}
	nodes := map[string]string{}
	v.onLink(link, func(address string, of *cluster.Instance) {
		if n := v.inv.Node(of.PrimaryNode); n != nil {
			nodes[address] = n.PrimaryIP
		}
	})
	if asked, one := o[keyAddress]; one {
		address, is := asked.(string)
		if !is {
			return nil, 0, number(argumentError)
		}
		node, there := nodes[address]
		if !there {
			return nil, 0, number(unknownEntry)
		}
		return node, v.serial(), nil
	}
	asked, _ := o[keyAddresses].([]any)
	answers := [][3]any{}
	for _, a := range asked {
		address, is := a.(string)
		if !is {
			return nil, 0, number(argumentError)
		}
		if node, there := nodes[address]; there {
			answers = append(answers, [3]any{statusOK, node, v.serial()})
		} else {
			answers = append(answers, [3]any{statusError, unknownEntry, 0})
		}
	}
	return answers, v.serial(), nil
}

// drbd is what a node has of mirrored disks: the node, the number of the device, the instance, the disk, the part that the node has in it, and the other node.
func (v view) drbd(query any) (any, int64, error) {
	n, err := v.node(query)
	if err != nil {
		return nil, 0, err
	}
	out := [][6]any{}
	tell := func(i *cluster.Instance, role string) {
		for d := range i.Disks {
			disk := &i.Disks[d]
			if len(disk.LogicalID) < 5 || disk.Type != cluster.DiskDRBD {
				continue
			}
			minor, other := disk.LogicalID[3], disk.LogicalID[1]
			if disk.LogicalID[0] != n.UUID {
				minor, other = disk.LogicalID[4], disk.LogicalID[0]
			}
			out = append(out, [6]any{n.Name, minor, i.Name, disk.IVName, role, v.nodeName(other)})
		}
	}
	for i := range v.inv.PrimariesOn(n.UUID) {
		tell(i, "primary")
	}
	for i := range v.inv.SecondariesOn(n.UUID) {
		tell(i, "secondary")
	}
	return out, n.Serial, nil
}

func (v view) nodeName(uuid any) string {
	id, _ := uuid.(string)
	if n := v.inv.Node(id); n != nil {
		return n.Name
	}
	return id
}

func (v view) disks(query any) (any, int64, error) {
	name, err := named(query)
	if err != nil {
		return nil, 0, err
	}
	i, err := v.inv.FindInstance(name)
	if err != nil {
		return nil, 0, err
	}
	return disksOf(i.Disks), i.Serial, nil
}

// disksOf are disks in the form of the reference's configuration. What the pair of a mirrored disk knows one another by is not told.
func disksOf(disks []cluster.Disk) []map[string]any {
	out := []map[string]any{}
	for n := range disks {
		d := &disks[n]
		told := map[string]any{
			"dev_type": d.Type, "logical_id": d.LogicalID, "children": disksOf(d.Children), "nodes": d.Nodes, "iv_name": d.IVName, "size": d.Size, "mode": d.Mode,
			"params": d.Params, "uuid": d.UUID, "serial_no": 1, "ctime": seconds(d.CTime), "mtime": seconds(d.MTime), "forthcoming": false,
		}
		if d.Name != "" {
			told["name"] = d.Name
		}
		if d.Spindles != 0 {
			told["spindles"] = d.Spindles
		}
		out = append(out, told)
	}
	return out
}

func seconds(at int64) float64 { return float64(at) / float64(time.Second) }

// collectors are the settings of the collectors of the monitoring agent.
func (v view) collectors(any) (any, int64, error) {
	out := map[string]any{}
	for name, c := range v.inv.Cluster().Collectors {
		out[name] = map[string]any{"active": c.Active, "interval": c.Interval}
	}
	return out, v.serial(), nil
}
