package opcode

// networkOpcodes are the opcodes about networks.
var networkOpcodes = []*Definition{
	{
		ID:           "OP_NETWORK_ADD",
		SummaryField: "network_name",
		Doc:          "Adds a network.",
		Result:       "null",
		Params: []Param{
			required("network_name", NonEmptyString, "name of the network"),
			required("network", ipv4Network, "IPv4 network, for example 192.0.2.0/24"),
			optional("gateway", ipv4Address, "IPv4 address of the gateway"),
			optional("network6", ipv6Network, "IPv6 network"),
			optional("gateway6", ipv6Address, "IPv6 address of the gateway"),
			optional("mac_prefix", NonEmptyString, "first three bytes of MAC addresses"),
			optional("add_reserved_ips", List(ipv4Address), "addresses to reserve, so that no instance gets them"),
			defaulted("conflicts_check", Bool, true, "refuse addresses that are in use elsewhere"),
			defaulted("tags", List(NonEmptyString), []any{}, "the tags"),
		},
	},
	{
		ID:           "OP_NETWORK_REMOVE",
		SummaryField: "network_name",
		Doc:          "Removes a network.",
		Result:       "null",
		Params: []Param{
			required("network_name", NonEmptyString, "name of the network"),
			defaulted("force", Bool, false, "go on in spite of warnings"),
		},
	},
	{
		ID:     "OP_NETWORK_RENAME",
		Doc:    "Gives a network another name.",
		Result: "non-empty string",
		Params: []Param{
			required("network_name", NonEmptyString, "name of the network"),
			required("new_name", NonEmptyString, "the new name"),
		},
	},
	{
		ID:           "OP_NETWORK_SET_PARAMS",
		SummaryField: "network_name",
		Doc:          "Changes a network.",
		Result:       "null",
		Params: []Param{
			required("network_name", NonEmptyString, "name of the network"),
			optional("gateway", ipv4Address, "IPv4 address of the gateway; 'none' removes it"),
			optional("network6", ipv6Network, "IPv6 network"),
			optional("gateway6", ipv6Address, "IPv6 address of the gateway; 'none' removes it"),
			optional("mac_prefix", NonEmptyString, "first three bytes of MAC addresses"),
			optional("add_reserved_ips", List(ipv4Address), "addresses to reserve, so that no instance gets them"),
			optional("remove_reserved_ips", List(ipv4Address), "addresses to reserve no longer"),
		},
	},
	{
		ID:           "OP_NETWORK_CONNECT",
		SummaryField: "network_name",
		Doc:          "Connects a network to a node group.",
		Result:       "null",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group to connect"),
			required("network_name", NonEmptyString, "name of the network"),
			required("network_mode", nicMode, "how interfaces are connected"),
			required("network_link", NonEmptyString, "device or bridge that the network is connected to"),
			defaulted("network_vlan", String, "", "VLAN of the connection"),
			defaulted("conflicts_check", Bool, true, "refuse addresses that are in use elsewhere"),
		},
	},
	{
		ID:           "OP_NETWORK_DISCONNECT",
		SummaryField: "network_name",
		Doc:          "Disconnects a network from a node group.",
		Result:       "null",
		Params: []Param{
			required("group_name", NonEmptyString, "name or UUID of the node group to disconnect"),
			required("network_name", NonEmptyString, "name of the network"),
		},
	},
}
