package cluster

import "github.com/drover-project/drover/internal/lock"

// LockName is the name of a lock for people: that of the thing it is about, where
// the lock has its UUID.
func (s *Snapshot) LockName(n lock.Name) string {
	item := n.Item
	switch n.Level {
	case lock.Node, lock.NodeRes:
		if x := s.Node(item); x != nil {
			item = x.Name
		}
	case lock.NodeGroup:
		if x := s.Group(item); x != nil {
			item = x.Name
		}
	case lock.Network:
		if x := s.Network(item); x != nil {
			item = x.Name
		}
	case lock.Cluster, lock.Instance:
	}
	return lock.Name{Level: n.Level, Item: item}.String()
}
