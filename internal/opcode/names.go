package opcode

// naming are the parameters whose values are names of things in the cluster.
var naming = []string{
	"instance_name", "instances", "new_name",
	"node_name", "node_names", "node", "nodes", "pnode", "snode", "target_node", "remote_node", "on_nodes",
	"group_name", "group", "network_name", "network", "name",
}

// Names returns the names of things that the opcode is about or makes use of, as they
// were given.
func (o *Opcode) Names() []string {
	var out []string
	for _, param := range naming {
		switch v := o.Params[param].(type) {
		case string:
			out = append(out, v)
		case []any:
			out = append(out, o.Strings(param)...)
		}
	}
	return out
}
