package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// networkFields are what the classic tool shows of a network, in the order of
// the row that networkRow reads.
var networkFields = []string{"name", "uuid", "serial_no", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count",
	"reserved_count", "map", "external_reservations", "group_list", "inst_list"}

type networkRow struct {
	name, uuid, mac, usage, external   string
	subnet, gateway, subnet6, gateway6 any
	serial, free, reserved             int64
	groups                             [][]any // name, mode, link, VLAN
	instances                          []string
}

// UnmarshalJSON reads the row in the order of networkFields.
func (n *networkRow) UnmarshalJSON(data []byte) error {
	places := []any{&n.name, &n.uuid, &n.serial, &n.subnet, &n.gateway, &n.subnet6, &n.gateway6, &n.mac, &n.free,
		&n.reserved, &n.usage, &n.external, &n.groups, &n.instances}
	return json.Unmarshal(data, &places)
}

// networkInfo shows networks: all fields under our own name, the text that
// scripts know under the classic one.
func networkInfo(sh *shell) *cobra.Command {
	cmd := itemInfo(sh, networkList)
	fields := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !sh.persona.classic() || sh.flags.output != "table" {
			return fields(cmd, args)
		}
		var found []networkRow
		if err := sh.ask(cmd.Context(), "QueryNetworks", &found, nonNil(args), networkFields, false); err != nil {
			return err
		}
		for i := range found {
			addresses, err := sh.addressesIn(cmd, &found[i])
			if err != nil {
				return err
			}
			if err := sh.printf("%s", found[i].text(addresses)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// addressesIn returns, for each instance of a network, its addresses there as
// "INTERFACE:ADDRESS".
func (sh *shell) addressesIn(cmd *cobra.Command, n *networkRow) (map[string]string, error) {
	if len(n.instances) == 0 {
		return nil, nil
	}
	var rows []interfaceRow
	if err := sh.ask(cmd.Context(), "QueryInstances", &rows, n.instances, []string{"name", "nic.ips", "nic.networks"}, false); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, r := range rows {
		var texts []string
		for i, network := range r.networks {
			if network == n.uuid && i < len(r.ips) {
				texts = append(texts, fmt.Sprintf("%d:%s", i, pythonText(r.ips[i])))
			}
		}
		out[r.name] = strings.Join(texts, ", ")
	}
	return out, nil
}

// interfaceRow is an instance with the address and network of each interface.
type interfaceRow struct {
	name          string
	ips, networks []any
}

// UnmarshalJSON reads the three values in order.
func (r *interfaceRow) UnmarshalJSON(data []byte) error {
	places := []any{&r.name, &r.ips, &r.networks}
	return json.Unmarshal(data, &places)
}

// usageWidth is how many addresses a line of the map shows, and how wide other
// long texts become.
const usageWidth = 64

// text is what the classic tool writes.
func (n *networkRow) text(addresses map[string]string) string {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) } // to memory
	line("Network name: %s\nUUID: %s\nSerial number: %d", n.name, n.uuid, n.serial)
	for _, e := range []entry{{"Subnet", n.subnet}, {"Gateway", n.gateway}, {"IPv6 Subnet", n.subnet6}, {"IPv6 Gateway", n.gateway6}} {
		line("  %s: %s", e.key, pythonText(e.value))
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
			line("    %s (mode:%s link:%s vlan:%s)", pythonText(g[0]), pythonText(g[1]), pythonText(g[2]), pythonText(g[3]))
		}
	}
	if len(n.instances) == 0 {
		line("  not used by any instances")
	} else {
		line("  used by %d instances:", len(n.instances))
	}
	for _, name := range n.instances {
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
