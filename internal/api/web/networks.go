package web

import (
	"context"

	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// connection is that of a group to a network.
type connection struct {
	Name   string `json:"name"`
	Subnet string `json:"subnet"`
	Mode   string `json:"mode"`
	Link   string `json:"link"`
	VLAN   string `json:"vlan,omitempty"`
	Free   int64  `json:"free"`
}

// networksOfGroup are the networks that a group is connected to. No filter says it: the field is a list of lists.
func networksOfGroup(ctx context.Context, s *Server, id string) (any, error) {
	r := query.Request{What: "network", Fields: []string{"name", "network", "free_count", "group_list"}, Options: query.Options{Sort: query.ParseSort([]string{"name"})}}
	result, err := s.cfg.Querier.Query(ctx, r)
	if err != nil {
		return nil, err
	}
	out := []connection{}
	for row := range result.Rows() {
		groups, _ := row[3].Value.([]any)
		for _, g := range groups {
			parts, _ := g.([]any)
			if len(parts) != 4 || textOf(parts[0]) != id {
				continue
			}
			free, _ := row[2].Value.(int64)
			out = append(out, connection{textOf(row[0].Value), textOf(row[1].Value), textOf(parts[1]), textOf(parts[2]), textOf(parts[3]), free})
		}
	}
	return out, nil
}

// textOf is a value that is a text; one that is not set, which lists show as a dash, is empty.
func textOf(value any) string {
	text, _ := value.(string)
	if text == "-" {
		return ""
	}
	return text
}

// onNetwork is an instance with its addresses on a network.
type onNetwork struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	Node      string   `json:"node"`
	Addresses []string `json:"addresses"`
}

// mostOnNetwork is how many instances of a network are shown.
const mostOnNetwork = 500

// users are the instances of a network, the first ones by name, and how many there are beside.
type users struct {
	Instances []onNetwork `json:"instances"`
	More      int         `json:"more"`
}

// instancesOnNetwork are those with an interface on a network. They are looked up by their names, which the network has, not by a filter on their
// networks: that has no index, and is an error of instances with an interface on none.
func instancesOnNetwork(ctx context.Context, s *Server, id string) (any, error) {
	out := users{Instances: []onNetwork{}}
	named := &qlang.Compare{Op: qlang.Eq, Field: "name", Value: qlang.TextValue(id)}
	found, err := s.cfg.Querier.Query(ctx, query.Request{What: "network", Fields: []string{"inst_list"}, Filter: qlang.Strict(named)})
	if err != nil {
		return nil, err
	}
	var names []string
	for row := range found.Rows() {
		names, _ = row[0].Value.([]string)
	}
	if len(names) == 0 {
		return out, nil
	}
	filter := &qlang.And{Args: []qlang.Node{qlang.AnyOf("name", names...), &qlang.Not{Arg: &qlang.Missing{Field: "name"}}}} // by names alone it would be an error that one has gone
	result, err := s.cfg.Querier.Query(ctx, query.Request{What: "instance", Fields: []string{"name", "status", "pnode", "nic.ips", "nic.networks.names"}, Filter: filter,
		Options: query.Options{Sort: query.ParseSort([]string{"name"}), Limit: mostOnNetwork}})
	if err != nil {
		return nil, err
	}
	for row := range result.Rows() {
		i := onNetwork{textOf(row[0].Value), textOf(row[1].Value), textOf(row[2].Value), []string{}}
		ips, _ := row[3].Value.([]any)
		networks, _ := row[4].Value.([]any)
		for n := range min(len(ips), len(networks)) {
			if ip := textOf(ips[n]); ip != "" && textOf(networks[n]) == id {
				i.Addresses = append(i.Addresses, ip)
			}
		}
		out.Instances = append(out.Instances, i)
	}
	out.More = max(len(names)-len(out.Instances), 0)
	return out, nil
}
