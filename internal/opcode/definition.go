package opcode

import (
	"slices"
	"strings"
)

// Definition is an opcode's entry in the catalogue.
type Definition struct {
	// ID is the OP_ID, for example "OP_INSTANCE_SHUTDOWN".
	ID string
	// SummaryField names the parameter that summaries show; empty for none.
	SummaryField string
	// Doc says in one sentence what the opcode does.
	Doc string
	// Result describes the value that the opcode returns on success.
	Result string
	// Params are the opcode's own parameters in the order of documentation.
	Params []Param
	// Since is the format of the store from which on jobs may have the opcode, for programs of before do not know it; 0 for any.
	Since int
	// Unsupported says that nothing carries the opcode out in this version: clients
	// may ask about it, but no job with it is taken.
	Unsupported bool
	// MadeBy says what makes jobs with it, which clients cannot submit; empty for what they can.
	MadeBy string

	place map[string]int
	// source is of the trail entry that submission adds.
	source string
	// secrecy is the highest among the parameters.
	secrecy Secrecy
}

// Param is one parameter of an opcode.
type Param struct {
	Name string
	Type Type
	// Default is the value of a parameter that was left out; nil when it then
	// stays absent, or is required.
	Default  any
	Required bool
	// Own: the reference does not have it. Those come last.
	Own bool
	Doc string
}

// required, optional and defaulted are the three kinds of parameter; the
// table reads like a list of them.
func required(name string, t Type, doc string) Param {
	return Param{Name: name, Type: t, Required: true, Doc: doc}
}

func optional(name string, t Type, doc string) Param {
	return Param{Name: name, Type: Optional(t), Doc: doc}
}

// ours marks a parameter that the reference does not have.
func ours(p Param) Param {
	p.Own = true
	return p
}

func defaulted(name string, t Type, value any, doc string) Param {
	return Param{Name: name, Type: t, Default: value, Doc: doc}
}

// commonParams are the parameters of every opcode.
var commonParams = []Param{
	optional("dry_run", Bool, "stop after all checks and change nothing"),
	optional("debug_level", NonNegative, "how much the executor should log"),
	defaulted("priority", submitPriority, int64(PriorityNormal), "urgency: -10 high, 0 normal, 10 low"),
	optional("depends", List(dependency), "jobs to wait for, each [job id, [statuses that will do]]; a negative id counts back from this job's own"),
	optional("comment", String, "free text that travels with the opcode"),
	required("reason", List(reasonEntry), "who wants this and why, hop by hop, each [source, reason, nanoseconds]"),
}

// CommonParams returns the parameters that every opcode has besides its own.
func CommonParams() []Param { return slices.Clone(commonParams) }

var (
	catalogue = slices.Concat(clusterOpcodes, queryOpcodes, nodeOpcodes, groupOpcodes, instanceOpcodes,
		instanceDiskOpcodes, instanceMoveOpcodes, networkOpcodes, imageOpcodes, tagOpcodes, backupOpcodes, testOpcodes, deployOpcodes)
	byID = indexByID(catalogue)
)

func indexByID(all []*Definition) map[string]*Definition {
	m := make(map[string]*Definition, len(all))
	for _, d := range all {
		d.place, d.source = make(map[string]int, len(d.Params)), sourceOf(d.ID)
		for i := range d.Params {
			d.place[d.Params[i].Name] = i
			d.secrecy = max(d.secrecy, d.Params[i].Type.Secrecy())
		}
		m[d.ID] = d
	}
	return m
}

// All returns every definition, sorted by id.
func All() []*Definition {
	all := slices.Clone(catalogue)
	slices.SortFunc(all, func(a, b *Definition) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Lookup finds a definition by OP_ID.
func Lookup(id string) (*Definition, bool) {
	d, ok := byID[id]
	return d, ok
}

// Param finds one of the opcode's own parameters.
func (d *Definition) Param(name string) (*Param, bool) {
	i, ok := d.place[name]
	if !ok {
		return nil, false
	}
	return &d.Params[i], true
}

// Class is the name that RAPI error texts and documentation use for the
// opcode: "OpInstanceShutdown" for OP_INSTANCE_SHUTDOWN.
func (d *Definition) Class() string {
	var b strings.Builder
	for word := range strings.SplitSeq(d.ID, "_") {
		b.WriteString(word[:1])
		b.WriteString(strings.ToLower(word[1:]))
	}
	return b.String()
}

// FieldNames returns the names of all keys that the opcode's wire form may
// have, sorted.
func (d *Definition) FieldNames() []string {
	names := make([]string, 0, len(d.Params)+len(commonParams)+1)
	names = append(names, "OP_ID")
	for i := range d.Params {
		names = append(names, d.Params[i].Name)
	}
	for i := range commonParams {
		names = append(names, commonParams[i].Name)
	}
	slices.Sort(names)
	return names
}
