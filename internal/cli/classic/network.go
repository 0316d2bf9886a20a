package classic

import (
	"encoding/json"
	"fmt"
	"strings"
)

// NetworkFields are what the classic tool shows of a network, in the order of
// the row that Network reads.
var NetworkFields = []string{"name", "uuid", "serial_no", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count",
	"reserved_count", "map", "external_reservations", "group_list", "inst_list"}

// Network is a row of NetworkFields.
type Network struct {
	// Instances are the names of those that use it.
	Instances []string

	name, uuid, mac, usage, external   string
	subnet, gateway, subnet6, gateway6 any
	serial, free, reserved             int64
	groups                             [][]any // name, mode, link, VLAN
}

// UnmarshalJSON reads the row in the order of NetworkFields.
func (n *Network) UnmarshalJSON(data []byte) error {
	places := []any{&n.name, &n.uuid, &n.serial, &n.subnet, &n.gateway, &n.subnet6, &n.gateway6, &n.mac, &n.free,
		&n.reserved, &n.usage, &n.external, &n.groups, &n.Instances}
	return json.Unmarshal(data, &places)
}

// InterfaceFields are what Interfaces reads, in that order.
var InterfaceFields = []string{"name", "nic.ips", "nic.networks"}

// Interfaces is an instance with the address and the network (its UUID) of each
// interface.
type Interfaces struct {
	name          string
	ips, networks []any
}

// UnmarshalJSON reads the row in the order of InterfaceFields.
func (r *Interfaces) UnmarshalJSON(data []byte) error {
	places := []any{&r.name, &r.ips, &r.networks}
	return json.Unmarshal(data, &places)
}

// usageWidth is how many addresses a line of the map shows, and how wide other
// long texts become.
const usageWidth = 64

// in returns the addresses in a network, as "INTERFACE:ADDRESS".
func (r *Interfaces) in(network string) string {
	var texts []string
	for i, uuid := range r.networks {
		if uuid == network && i < len(r.ips) {
			texts = append(texts, fmt.Sprintf("%d:%s", i, Text(r.ips[i])))
		}
	}
	return strings.Join(texts, ", ")
}

// Text is what the classic tool writes; users are the interfaces of the
// network's instances.
func (n *Network) Text(users []Interfaces) string {
	addresses := map[string]string{}
	for i := range users {
		addresses[users[i].name] = users[i].in(n.uuid)
	}
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) } // to memory
	line("Network name: %s\nUUID: %s\nSerial number: %d", n.name, n.uuid, n.serial)
	for _, e := range []Entry{{"Subnet", n.subnet}, {"Gateway", n.gateway}, {"IPv6 Subnet", n.subnet6}, {"IPv6 Gateway", n.gateway6}} {
		line("  %s: %s", e.Key, Text(e.Value))
	}
	size := n.free + n.reserved
	line("  Mac Prefix: %s\n  Size: %d\n  Free: %d (%.2f%%)\n  Usage map:", n.mac, size, n.free, 100*float64(n.free)/float64(max(size, 1)))
	for at := 0; at < len(n.usage); at += usageWidth {
		line("     %4d %-*s %d", at, usageWidth, n.usage[at:min(at+usageWidth, len(n.usage))], at+usageWidth-1)
	}
	line("         (X) used    (.) free")
	if n.external != "" {
		line("  externally reserved IPs:\n    %s", strings.Join(wrapped(n.external, usageWidth), "\n    "))
	}
	if len(n.groups) == 0 {
		line("  not connected to any node group")
	} else {
		line("  connected to node groups:")
	}
	for _, g := range n.groups {
		if len(g) == 4 {
			line("    %s (mode:%s link:%s vlan:%s)", Text(g[0]), Text(g[1]), Text(g[2]), Text(g[3]))
		}
	}
	if len(n.Instances) == 0 {
		line("  not used by any instances")
	} else {
		line("  used by %d instances:", len(n.Instances))
	}
	for _, name := range n.Instances {
		line("    %s: %s", name, addresses[name])
	}
	return b.String()
}

// wrapped breaks a text at blanks into lines of at most that width; a longer
// word has a line of its own.
func wrapped(text string, width int) []string {
	var out []string
	for word := range strings.FieldsSeq(text) {
		if last := len(out) - 1; last >= 0 && len(out[last])+1+len(word) <= width {
			out[last] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}
