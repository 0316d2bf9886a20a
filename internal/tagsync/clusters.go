package tagsync

// ClusterHealth is how a cluster of servers is.
type ClusterHealth struct {
	// Name is the cluster's; empty for Drover's own.
	Name string `json:"name"`
	// Servers are on it; those that were deleted are not counted.
	Servers int `json:"servers"`
	// Working is how many of its servers are worked on at this moment, of AtOnce at most: a cluster that does not answer holds up its own.
	Working int `json:"working"`
	AtOnce  int `json:"at_once"`
	Met
}

// Clusters tells how the clusters of servers are, by name.
func (e *Engine) Clusters() []ClusterHealth {
	servers := map[string]int{}
	for s := range e.Servers().All() {
		if s.Deleted == 0 {
			servers[s.Backend]++
		}
	}
	out := []ClusterHealth{}
	for _, name := range e.Backends() {
		places := e.places[name]
		out = append(out, ClusterHealth{Name: name, Servers: servers[name], Working: len(places), AtOnce: cap(places), Met: e.cfg.Backends[name].Met()})
	}
	return out
}
