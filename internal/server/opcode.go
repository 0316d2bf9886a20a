package server

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/servertag"
)

// source is what our own entries of reason trails begin with: what a job has to
// do with a server. That of its tags is told apart.
const (
	source       = reason.ReservedPrefix + "server"
	tagSource    = reason.ReservedPrefix + "server-tag"
	effectSource = reason.ReservedPrefix + "server-tag-effect"
)

// simple are the opcodes of tasks upon an instance that is there, with what each has always.
var simple = map[Do]struct {
	opcode string
	params map[string]any
}{
	Delete:     {"OP_INSTANCE_REMOVE", map[string]any{"ignore_failures": true}},
	Start:      {"OP_INSTANCE_STARTUP", nil},
	Stop:       {"OP_INSTANCE_SHUTDOWN", nil},
	Reboot:     {"OP_INSTANCE_REBOOT", map[string]any{"reboot_type": "soft"}},
	RebootHard: {"OP_INSTANCE_REBOOT", map[string]any{"reboot_type": "hard"}},
	Resize:     {setParams, nil},
	Revert:     {setParams, nil},
	Restart:    {"OP_INSTANCE_REBOOT", map[string]any{"reboot_type": "full"}}, // no other looks at the new size
	Confirm:    {"OP_INSTANCE_GROW_DISK", map[string]any{"disk": 0, "absolute": true}},
}

// setParams gives an instance other parameters.
const setParams = "OP_INSTANCE_SET_PARAMS"

// gib is a GiB in MiB.
const gib = 1024

// beParams are the backend parameters of a size.
func (f *Flavor) beParams() map[string]any {
	return map[string]any{"maxmem": f.RAM, "minmem": f.RAM, "vcpus": f.VCPUs}
}

// creationOpcode is what makes an instance, and installation what installs its disk anew.
const (
	creationOpcode = "OP_INSTANCE_CREATE"
	installation   = "OP_INSTANCE_REINSTALL"
)

// OpcodeOf names the opcode by which a task is carried out, of several the one that does it.
func OpcodeOf(do Do) string {
	switch do {
	case Create:
		return creationOpcode
	case Rebuild:
		return installation
	}
	return simple[do].opcode
}

// CreationReason begins the reason of the job that makes a server.
func CreationReason(id string) string { return string(Create) + " server " + id }

// Opcodes returns what a task is carried out by, in one job.
func (s *Server) Opcodes(task *Task) ([]*opcode.Opcode, error) {
	if task.Do == Rebuild && task.Anew != nil {
		return s.rebuilding(task)
	}
	op, err := s.Opcode(task)
	return []*opcode.Opcode{op}, err
}

// Opcode returns what a task is carried out by that is no rebuild. A new server's tags go with its
// creation, so that it never is without them.
func (s *Server) Opcode(task *Task) (*opcode.Opcode, error) {
	trail := s.trail(source, string(task.Do)+" server", task.Asked)
	if task.Do == Create {
		return s.creation(trail, task.Marked)
	}
	how := simple[task.Do]
	params := map[string]any{"instance_name": s.Instance, "reason": trail}
	maps.Copy(params, how.params)
	switch {
	case task.Flavor != nil:
		params["beparams"] = task.Flavor.beParams()
	case task.Do == Confirm:
		params["amount"] = s.Flavor.Disk * gib
	}
	return s.opcode(how.opcode, params)
}

// opcode is one about the server's instance: that of the name if it is still the server's when
// its turn comes. Nothing is done by name alone.
func (s *Server) opcode(id string, params map[string]any) (*opcode.Opcode, error) {
	if s.UUID == "" {
		return nil, fault.New(fault.WrongState, "it is not known which instance of its cluster server %s is", s.ID)
	}
	params["instance_uuid"] = s.UUID
	return opcode.FromMap(id, params)
}

func (s *Server) creation(trail reason.Trail, marked bool) (*opcode.Opcode, error) {
	template, disks, nics, tags := "diskless", []any{}, []any{}, []any{}
	if s.Flavor.Disk > 0 {
		template = "file"
		disks = append(disks, map[string]any{"size": s.Flavor.Disk * gib})
	}
	for i := range s.NICs {
		nic := map[string]any{}
		if i < len(s.Nets) {
			nic["network"], nic["ip"] = s.Nets[i].ID, cmp.Or(s.Nets[i].IP, "pool")
		}
		nics = append(nics, nic)
	}
	for i := range s.Tags.Tags {
		if t := &s.Tags.Tags[i]; t.Wanted {
			tags = append(tags, t.Raw)
		}
	}
	if marked {
		tags = append(tags, Mark(s.ID))
	}
	params := map[string]any{
		"instance_name": s.Instance, "mode": "create", "disk_template": template, "disks": disks, "nics": nics,
		"os_type": s.Image.OS, "beparams": s.Flavor.beParams(),
		"name_check": false, "ip_check": false, "tags": tags, "reason": trail,
	}
	if g := s.Guest; g != nil && g.PublicKey != "" {
		params["osparams"] = map[string]any{cluster.SSHKeys: g.PublicKey}
	}
	if g := s.Guest; g != nil && g.UserData != "" {
		params["osparams_private"] = map[string]any{cluster.UserData: g.UserData}
	}
	return opcode.FromMap(creationOpcode, params)
}

// tagOpcodes are the opcodes of what is done to tags.
var tagOpcodes = map[servertag.Action]string{servertag.Add: "OP_TAGS_SET", servertag.Remove: "OP_TAGS_DEL"}

// maxAskers is how many requests the reason trail of one job names. The rest is
// told by the tags' own lives.
const maxAskers = 20

// TagOpcode returns what a job about tags is carried out by. Its reason trail
// names each request that it serves: who asked, over which interface, by which
// request, for how many tags. It does not name them: rules of operators search
// reasons, and users choose the names of tags.
func (s *Server) TagOpcode(j *servertag.Job) (*opcode.Opcode, error) {
	var raws []any
	var askers []servertag.Asked
	asked := map[servertag.Asked]int{}
	for _, ref := range j.Tags {
		raws = append(raws, ref.Raw)
		i := slices.IndexFunc(s.Tags.Tags, func(t servertag.Tag) bool { return t.Raw == ref.Raw && t.Generation == ref.Generation })
		if i < 0 {
			continue
		}
		t := &s.Tags.Tags[i]
		if asked[t.Asked]++; asked[t.Asked] == 1 {
			askers = append(askers, t.Asked)
		}
	}
	var trail reason.Trail
	for _, by := range askers[:min(len(askers), maxAskers)] {
		trail = trail.Append(s.trail(tagSource, string(j.Action)+" "+tagCount(asked[by])+" of server", by)...)
	}
	return s.opcode(tagOpcodes[j.Action], map[string]any{"kind": "instance", "name": s.Instance, "tags": raws, "reason": trail})
}

func tagCount(n int) string {
	if n == 1 {
		return "1 tag"
	}
	return strconv.Itoa(n) + " tags"
}

// unset is the value that makes a backend parameter the cluster's default again.
const unset = "default"

// EffectOpcode returns what an effect of a tag is applied or taken back by. Its
// reason trail names the tag, and who asked for that.
func (s *Server) EffectOpcode(a *servertag.Applied) (*opcode.Opcode, error) {
	what := "apply "
	if a.Undo {
		what = "take back "
	}
	by := servertag.Asked{User: "drover", Front: "controller", Time: s.Updated}
	if t := s.Tags.Find(a.Namespace, a.Tag); t != nil {
		by = t.Asked
	}
	trail := s.trail(effectSource, what+a.String()+" of tag "+strconv.Quote(a.Tag)+" of server", by)
	if a.Label != "" {
		action := map[bool]servertag.Action{false: servertag.Add, true: servertag.Remove}[a.Undo]
		return s.opcode(tagOpcodes[action], map[string]any{"kind": "instance", "name": s.Instance, "tags": []any{a.Label}, "reason": trail})
	}
	value := a.Value
	if a.Undo {
		value = unset
	}
	return s.opcode(setParams, map[string]any{"instance_name": s.Instance, "beparams": map[string]any{a.Parameter: value}, "reason": trail})
}

// trail tells who asked for something and by which request.
func (s *Server) trail(source, what string, by servertag.Asked) reason.Trail {
	now := time.UnixMicro(int64(by.Time))
	text := what + " " + s.ID
	if by.Request != "" {
		text += ", request " + by.Request
	}
	return reason.Trail{
		reason.Account{Surface: by.Front, Name: by.User, From: by.From}.Entry(now),
		{Source: source, Reason: text, Time: now.UnixNano()},
	}
}
