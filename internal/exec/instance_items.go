package exec

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// The actions on an item of a list.
const (
	add    = "add"
	modify = "modify"
	remove = "remove"
)

// itemChange is one change of a list of disks or interfaces.
type itemChange struct {
	action string
	// at is the index (int64), the name or UUID (string), or nil for the end.
	at     any
	values map[string]any
	place  string // in the opcode, for errors
}

// readChanges reads [action or index, values] and [action, index or name,
// values]. An index as the action means to modify.
func readChanges(field string, list []any) ([]itemChange, error) {
	out := make([]itemChange, len(list))
	for i, item := range list {
		parts, _ := item.([]any)
		c := itemChange{place: field + "[" + strconv.Itoa(i) + "]"}
		if len(parts) < 2 {
			return nil, fault.New(fault.Invalid, "a modification must be [action, values] or [action, index, values]").At(c.place)
		}
		c.values, _ = parts[len(parts)-1].(map[string]any)
		c.values = withoutNulls(c.values)
		if len(parts) == 3 {
			c.at = parts[1]
		}
		switch what := parts[0].(type) {
		case int64:
			c.action, c.at = modify, what
		case string:
			c.action = canonicalAction(what)
		}
		if c.action == "" {
			return nil, fault.New(fault.Invalid, "'%v' is no action", parts[0]).At(c.place)
		}
		out[i] = c
	}
	return out, nil
}

// canonicalAction returns the action for a word. To attach is to add, to
// detach to remove: the difference is what becomes of a disk's data, and
// disks cannot live without an instance yet.
func canonicalAction(word string) string {
	switch word {
	case "add", "attach":
		return add
	case "remove", "detach":
		return remove
	case "modify":
		return modify
	}
	return ""
}

func withoutNulls(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if v != nil {
			out[k] = v
		}
	}
	return out
}

// find returns the position that the change is about in a list of count items.
// An added item may go to the position behind the last.
func (c itemChange) find(count int, name func(i int) (name, uuid string)) (int, error) {
	last := count - 1
	if c.action == add {
		last = count
	}
	switch at := c.at.(type) {
	case nil:
		return c.within(last, last)
	case int64:
		if at == -1 {
			return c.within(last, last)
		}
		return c.within(int(at), last)
	case string:
		if n, err := strconv.Atoi(at); err == nil {
			return c.within(n, last)
		}
		for i := range count {
			if n, uuid := name(i); n == at || uuid == at {
				return i, nil
			}
		}
		return 0, fault.New(fault.NotFound, "Cannot find an item with name or UUID '%s'", at).At(c.place)
	}
	return 0, fault.New(fault.Invalid, "'%v' is no index", c.at).At(c.place)
}

func (c itemChange) within(i, last int) (int, error) {
	if i < 0 || i > last {
		return 0, fault.New(fault.Invalid, "Item index %d is out of range (0 to %d)", i, last).At(c.place)
	}
	return i, nil
}

func insert[T any](list []T, i int, item T) []T { return slices.Insert(slices.Clip(list), i, item) }

func cut[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// changeNICs makes the changes to the interfaces.
func (m *modification) changeNICs(w *wiring, inst *cluster.Instance) error {
	for _, c := range m.nics {
		i, err := c.find(len(inst.NICs), func(i int) (string, string) { return inst.NICs[i].Name, inst.NICs[i].UUID })
		if err != nil {
			return err
		}
		n := strconv.Itoa(i)
		switch c.action {
		case add:
			nic, err := newNIC(w, c)
			if err != nil {
				return err
			}
			inst.NICs = insert(inst.NICs, i, nic)
			m.note(pair{"nic/" + n, describeNIC(w, &nic)})
		case remove:
			w.release(&inst.NICs[i])
			inst.NICs = cut(inst.NICs, i)
			m.note(pair{"nic/" + n, "remove"})
		default:
			if err := m.changeNIC(w, c, &inst.NICs[i], n); err != nil {
				return err
			}
		}
	}
	return nil
}

func newNIC(w *wiring, c itemChange) (cluster.NIC, error) {
	r, err := readNIC(c.values, c.place)
	if err != nil {
		return cluster.NIC{}, err
	}
	return w.connect(r)
}

func describeNIC(w *wiring, nic *cluster.NIC) string {
	text := func(s string) string {
		if s == "" {
			return "None"
		}
		return s
	}
	param := func(name string) string { return text(w.snap.Cluster().NICParam(nic, name)) }
	return strings.Join([]string{"add:mac=" + nic.MAC, "ip=" + text(nic.IP), "mode=" + param("mode"), "link=" + param("link"),
		"network=" + text(nic.Network)}, ",")
}

// changeNIC connects an interface anew: as it was, with the given values over
// it. Its identity stays.
func (m *modification) changeNIC(w *wiring, c itemChange, nic *cluster.NIC, n string) error {
	if len(c.values) == 0 {
		return nil
	}
	given, err := readNIC(withOld(c.values, nic), c.place)
	if err != nil {
		return err
	}
	if !given.hasNetwork() && nic.Network == "" {
		given.params = cluster.SetParams(nic.Params, given.params)
	}
	w.release(nic)
	delete(w.macs(), nic.MAC)
	next, err := w.connect(given)
	if err != nil {
		return err
	}
	next.UUID = nic.UUID
	m.noteNIC(w, nic, &next, n)
	*nic = next
	return nil
}

// withOld returns the given values of an interface with those it has for what
// was not given.
func withOld(given map[string]any, nic *cluster.NIC) map[string]any {
	out := map[string]any{"mac": nic.MAC}
	for key, old := range map[string]string{"name": nic.Name, "ip": nic.IP, "network": nic.Network} {
		if old != "" {
			out[key] = old
		}
	}
	maps.Copy(out, given)
	if given["network"] == none && given["ip"] == nil {
		delete(out, "ip") // the address was the network's
	}
	return out
}

// noteNIC notes each property of an interface that changed.
func (m *modification) noteNIC(w *wiring, old, next *cluster.NIC, n string) {
	c := w.snap.Cluster()
	compare := func(what, before, after string) {
		if before != after {
			m.note(pair{"nic." + what + "/" + n, orNull(after)})
		}
	}
	compare("mac", old.MAC, next.MAC)
	compare("ip", old.IP, next.IP)
	compare("network", old.Network, next.Network)
	compare("name", old.Name, next.Name)
	for _, param := range []string{"mode", "link", "vlan"} {
		compare(param, c.NICParam(old, param), c.NICParam(next, param))
	}
}
