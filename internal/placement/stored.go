package placement

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"

	"github.com/drover-project/drover/internal/fault"
)

// stored is a decision as jobs keep it: columns, for what is alike in them is then written beside one another.
type stored struct {
	UUID   string           `json:"uuid,omitempty"`
	Node   string           `json:"node,omitempty"`
	Why    string           `json:"why"`
	Memory int64            `json:"memory"`
	Disk   int64            `json:"disk"`
	VCPUs  int64            `json:"vcpus"`
	Nodes  []string         `json:"nodes"`
	Fails  []Constraint     `json:"fails"`          // behind those that fit
	Need   []int64          `json:"need,omitempty"` // where it is not
	Have   []int64          `json:"have"`
	Detail map[string][]int `json:"detail,omitempty"` // which nodes it is said of
	Mirror *stored          `json:"mirror,omitempty"`
}

// packed is a stored decision that is too large to be kept in plain text.
type packed struct {
	Deflated []byte `json:"deflated"`
}

// The size in bytes beyond which a decision is packed, and the size that one may have when it is unpacked.
const (
	plainSize = 1024
	maxSize   = 16 << 20
)

// Encode returns the decision as a job keeps it, as JSON.
func (d *Decision) Encode() (json.RawMessage, error) {
	text, err := json.Marshal(d.stored())
	if err != nil || len(text) <= plainSize {
		return text, err
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "a placement decision cannot be packed: %w", err)
	}
	return json.Marshal(packed{b.Bytes()})
}

// stored is the decision as columns.
func (d *Decision) stored() *stored {
	s := &stored{UUID: d.UUID, Node: d.Node, Why: d.Why, Memory: d.Need.Memory, Disk: d.Need.Disk, VCPUs: d.Need.VCPUs}
	for i, v := range d.Nodes {
		s.Nodes, s.Need, s.Have = append(s.Nodes, v.Node), append(s.Need, v.Need), append(s.Have, v.Have)
		if v.Fails != "" {
			s.Fails = append(s.Fails, v.Fails)
		}
		if v.Detail != "" {
			if s.Detail == nil {
				s.Detail = map[string][]int{}
			}
			s.Detail[v.Detail] = append(s.Detail[v.Detail], i)
		}
	}
	if d.Mirror != nil {
		s.Mirror = d.Mirror.stored()
	}
	return s
}

// Decode reads a decision that a job has kept; fault.WrongState if it is none.
func Decode(text json.RawMessage) (*Decision, error) {
	var p packed
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fault.New(fault.WrongState, "a stored placement decision cannot be read: %w", err)
	}
	if len(p.Deflated) > 0 {
		plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(p.Deflated)), maxSize))
		if err != nil {
			return nil, fault.New(fault.WrongState, "a stored placement decision cannot be unpacked: %w", err)
		}
		text = plain
	}
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fault.New(fault.WrongState, "a stored placement decision cannot be read: %w", err)
	}
	return s.decision()
}

func (s *stored) decision() (*Decision, error) {
	fits := len(s.Nodes) - len(s.Fails)
	if fits < 0 || len(s.Need) != len(s.Nodes) || len(s.Have) != len(s.Nodes) {
		return nil, fault.New(fault.WrongState, "a stored placement decision tells of %d nodes and not the same of each", len(s.Nodes))
	}
	d := &Decision{UUID: s.UUID, Node: s.Node, Why: s.Why, Need: Need{s.Memory, s.Disk, s.VCPUs}}
	for i, name := range s.Nodes {
		v := Verdict{Node: name, Need: s.Need[i], Have: s.Have[i]}
		if i < fits {
			v.Rank = i + 1
		} else {
			v.Fails = s.Fails[i-fits]
		}
		d.Nodes = append(d.Nodes, v)
	}
	for detail, nodes := range s.Detail {
		for _, i := range nodes {
			if i < 0 || i >= len(d.Nodes) {
				return nil, fault.New(fault.WrongState, "a stored placement decision tells of node %d of %d", i+1, len(d.Nodes))
			}
			d.Nodes[i].Detail = detail
		}
	}
	if s.Mirror == nil {
		return d, nil
	}
	var err error
	d.Mirror, err = s.Mirror.decision()
	return d, err
}
