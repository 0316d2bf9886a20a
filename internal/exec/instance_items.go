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
	attach = "attach"
	detach = "detach"
)

// itemChange is one change of a list of disks or interfaces.
type itemChange struct {
	action string
	// at is the index (int64), the name or UUID (string), or nil for the end.
	at     any
	values map[string]any
	kind   string // what messages call the item
	place  string // in the opcode, for errors
}

// readChanges reads [action or index, values] and [action, index or name,
// values]. An index as the action means to modify. kind is what messages call
// an item.
func readChanges(field, kind string, list []any) ([]itemChange, error) {
	out := make([]itemChange, len(list))
	unplaced := 0
	for i, item := range list {
		parts, _ := item.([]any)
		c := itemChange{kind: kind, place: field + "[" + strconv.Itoa(i) + "]"}
		if len(parts) < 2 {
			return nil, fault.New(fault.Invalid, "a modification must be [action, values] or [action, index, values]").At(c.place)
		}
		given, _ := parts[len(parts)-1].(map[string]any)
		c.values = withoutNulls(given)
		if len(parts) == 3 {
			c.at = parts[1]
		}
		switch what := parts[0].(type) {
		case int64:
			c.action, c.at = modify, what
		case string:
			if err := checkAction(what); err != nil {
				return nil, err.At(c.place)
			}
			c.action = what
		}
		if c.action == "" {
			return nil, fault.New(fault.Invalid, "'%v' is no action", parts[0]).At(c.place)
		}
		if len(given) > 0 && (c.action == remove || c.action == detach) {
			return nil, fault.New(fault.Invalid, "No settings should be passed when removing or detaching a %s", kind).At(c.place)
		}
		if len(parts) == 2 && c.action != modify {
			unplaced++
		}
		out[i] = c
	}
	if unplaced > 1 {
		return nil, fault.New(fault.Invalid, "Only one %s add/attach/remove/detach operation is supported at a time", kind).At(field).
			WithHint("give each its index: [action, index, values]")
	}
	return out, nil
}

// insteadOf says what to do in place of an action that there is not on interfaces.
var insteadOf = map[string]string{attach: "to make a new one, say add", detach: "to remove it, say so"}

// checkAction refuses what is no action.
func checkAction(word string) *fault.Error {
	if slices.Contains([]string{add, remove, modify, attach, detach}, word) {
		return nil
	}
	return fault.New(fault.Invalid, "'%s' is no action", word)
}

// notOnNICs refuses to attach or detach an interface. It is asked once the place is
// found: that there is no such interface is said first.
func (c itemChange) notOnNICs() error {
	return fault.New(fault.Invalid, "%s%s operation is not supported for NICs", strings.ToUpper(c.action[:1]), c.action[1:]).
		At(c.place).WithHint("%s", insteadOf[c.action])
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
	last, isNew := count-1, c.action == add || c.action == attach
	if isNew {
		last = count
	}
	switch at := c.at.(type) {
	case nil:
		return c.within(last, last, count)
	case int64:
		if at == -1 {
			return c.within(last, last, count)
		}
		return c.within(int(at), last, count)
	case string:
		if n, err := strconv.Atoi(at); err == nil {
			if n == -1 {
				n = last
			}
			return c.within(n, last, count)
		}
		if isNew {
			return 0, fault.New(fault.Invalid, "Only positive integer or -1 is accepted").At(c.place)
		}
		for i := range count {
			if n, uuid := name(i); n == at || uuid == at {
				return i, nil
			}
		}
		return 0, fault.New(fault.NotFound, "Cannot find %s with identifier %s", c.kind, at).At(c.place)
	}
	return 0, fault.New(fault.Invalid, "'%v' is no index", c.at).At(c.place)
}

func (c itemChange) within(i, last, count int) (int, error) {
	if i < 0 || i > last {
		return 0, fault.New(fault.Invalid, "Got %s index %d, but there are only %d", c.kind, i, count).At(c.place)
	}
	return i, nil
}

func insert[T any](list []T, i int, item T) []T { return slices.Insert(slices.Clip(list), i, item) }

func cut[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// changeNICs makes the changes to the interfaces.
func (m *modification) changeNICs(w *wiring, inst *cluster.Instance) error {
	if len(m.nics) == 0 {
		return nil
	}
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
			m.countLink(w, &nic)
			m.note(pair{"nic." + n, describeNIC(w, &nic)})
		case remove:
			w.release(&inst.NICs[i])
			delete(w.macs(), inst.NICs[i].MAC) // one that is added in its place may have it
			inst.NICs = cut(inst.NICs, i)
			m.note(pair{"NIC/" + n, "remove"})
		case attach, detach:
			return c.notOnNICs()
		default:
			if err := m.changeNIC(w, c, &inst.NICs[i], n); err != nil {
				return err
			}
			m.countLink(w, &inst.NICs[i])
		}
	}
	names := map[string]bool{}
	for i := range inst.NICs {
		if err := freeName(names, "NIC", inst.NICs[i].Name, "nics"); err != nil {
			return err
		}
	}
	return nil
}

// countLink counts an interface whose link nobody looks at.
func (m *modification) countLink(w *wiring, nic *cluster.NIC) {
	if w.snap.Cluster().NICParam(nic, "mode") == cluster.NICOpenvSwitch {
		m.unchecked++
	}
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
		"network=" + text(w.networkName(nic.Network))}, ",")
}

// changeNIC connects an interface anew: as it was, with the given values over
// it. Its identity stays.
func (m *modification) changeNIC(w *wiring, c itemChange, nic *cluster.NIC, n string) error {
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
	m.noteNIC(w, c.values, nic, &next, n)
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

// noteNIC notes each property of an interface that was given or changed and, as clients
// know it, how it is then connected.
func (m *modification) noteNIC(w *wiring, given map[string]any, old, next *cluster.NIC, n string) {
	compare := func(what, before, after string) {
		if before != after || given[what] != nil && what != "network" {
			m.note(pair{"nic." + what + "/" + n, orNull(after)})
		}
	}
	compare("mac", old.MAC, next.MAC)
	compare("ip", old.IP, next.IP)
	compare("network", w.networkName(old.Network), w.networkName(next.Network))
	compare("name", old.Name, next.Name)
	for _, param := range []string{"link", "mode", "vlan"} {
		m.note(pair{"nic." + param + "/" + n, w.snap.Cluster().NICParam(next, param)})
	}
}
