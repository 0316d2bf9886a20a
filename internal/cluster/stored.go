package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-project/drover/internal/fault"
)

// Stored is an object as a store keeps it: its kind, its UUID, and its JSON;
// nil data means that it is deleted.
type Stored struct {
	Kind string
	UUID string
	Data []byte
}

// Encode returns the JSON of an object. Equal objects give equal bytes.
func Encode(o Object) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", o.Kind(), o.Identity(), err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Decode returns the object of a kind from its JSON.
func Decode(kind string, data []byte) (Object, error) {
	var o Object
	switch Kind(kind) {
	case KindCluster:
		o = &Cluster{}
	case KindGroup:
		o = &Group{}
	case KindNode:
		o = &Node{}
	case KindInstance:
		o = &Instance{}
	case KindNetwork:
		o = &Network{}
	case KindImage:
		o = &Image{}
	case KindDisk:
		o = &DetachedDisk{}
	default:
		return nil, fault.New(fault.Invalid, "%q is no kind of inventory object", kind)
	}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, fault.New(fault.Internal, "stored %s cannot be read: %w", kind, err)
	}
	return o, nil
}

// Holds reports whether a kind of stored object belongs to the inventory.
func Holds(kind string) bool {
	switch Kind(kind) {
	case KindCluster, KindGroup, KindNode, KindInstance, KindNetwork, KindImage, KindDisk:
		return true
	}
	return false
}

// Apply returns the snapshot after changes that came from a store; objects of
// other kinds are passed over. An object that cannot be read is an error, and
// s is what stands.
func (s *Snapshot) Apply(stored []Stored) (*Snapshot, error) {
	changes := make([]Change, 0, len(stored))
	share := newSharer()
	for _, st := range stored {
		switch {
		case !Holds(st.Kind):
		case st.Data == nil:
			changes = append(changes, Delete(Kind(st.Kind), st.UUID))
		default:
			o, err := Decode(st.Kind, st.Data)
			if err != nil {
				return nil, err
			}
			share.object(o)
			changes = append(changes, Put(o))
		}
	}
	return s.With(changes...), nil
}
