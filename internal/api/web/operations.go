package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
)

// operation is something that people have done to a thing from its screen: a job of one opcode. It is shown first what the opcode would do.
type operation struct {
	// Name is what the command line calls it: drover ITEM NAME.
	Name  string `json:"name"`
	Title string `json:"title"`
	// Doc is what it does, and what becomes of the thing.
	Doc  string     `json:"doc"`
	Asks []question `json:"asks"`
	// Destroys: what it takes away does not come back. The page has the thing's name typed for it.
	Destroys bool `json:"destroys"`

	opcode string
	// target is the parameter with the thing's name, and uuid the one with what it is, which has it refused where another has the name by now; empty where it makes the thing.
	target, uuid string
	fixed        map[string]any
	// complete adds to the parameters what several answers make together; nil for nothing.
	complete func(params map[string]any, given map[string]string)
}

// question is what an operation has to know beside its thing.
type question struct {
	Name        string `json:"name"`
	Label       string `json:"label"`
	Placeholder string `json:"placeholder,omitempty"`
	// Kind is text, lines, number, size, choice or check.
	Kind string `json:"kind"`
	// Choices are the values of a choice, and those that are offered for a text.
	Choices []string `json:"choices,omitempty"`

	// option is what the command line has for it; a check's stands alone.
	option string
	// param is the opcode's parameter that has it; empty where complete puts it somewhere.
	param string
	// offers are queries of one field whose values are offered, with what is put before each.
	offers []answers
}

// answers are a query whose values may be some.
type answers struct{ item, field, before string }

// elsewhere is a node to name in place of the one that would be chosen.
var elsewhere = question{Name: "node", Label: "To which node", Placeholder: "the other one that has its disks", Kind: "text", option: "--target-node", param: "target_node", offers: []answers{{"node", "name", ""}}}

// operations are all of them, by the kind of thing.
var operations = map[string][]operation{
	"instance": {
		{Name: "start", Title: "Start", Doc: "It starts on its node, and is to run from then on.", opcode: "OP_INSTANCE_STARTUP", target: "instance_name", uuid: "instance_uuid"},
		{Name: "stop", Title: "Stop", Doc: "It is asked to shut down, switched off if it does not, and is to stay down from then on.", opcode: "OP_INSTANCE_SHUTDOWN", target: "instance_name", uuid: "instance_uuid",
			Asks: []question{{Name: "timeout", Label: "Seconds until it is switched off", Placeholder: "120", Kind: "number", option: "--timeout", param: "timeout"}}},
		{Name: "reboot", Title: "Reboot", Doc: "It stops and starts again where it is.", opcode: "OP_INSTANCE_REBOOT", target: "instance_name", uuid: "instance_uuid",
			Asks: []question{{Name: "type", Label: "How", Kind: "choice", Choices: []string{"hard", "soft", "full"}, option: "--type", param: "reboot_type"}}},
		{Name: "migrate", Title: "Migrate", Doc: "It moves to another node that has its disks, and runs on meanwhile.", opcode: "OP_INSTANCE_MIGRATE", target: "instance_name", uuid: "instance_uuid", Asks: []question{elsewhere}},
		{Name: "failover", Title: "Fail over", Doc: "It stops, and starts on another node that has its disks.", opcode: "OP_INSTANCE_FAILOVER", target: "instance_name", uuid: "instance_uuid", Asks: []question{elsewhere}},
		{Name: "remove", Title: "Remove", Doc: "It stops, and its disks are removed with all that is on them.", Destroys: true, opcode: "OP_INSTANCE_REMOVE", target: "instance_name", uuid: "instance_uuid"},
		{Name: "add", Title: "Create", Doc: "A new instance is made.", opcode: "OP_INSTANCE_CREATE", target: "instance_name",
			fixed: map[string]any{"mode": "create", "name_check": false, "ip_check": false}, complete: creation, Asks: []question{
				{Name: "os", Label: "Operating system or image", Kind: "text", option: "--os", param: "os_type", offers: []answers{{"image", "name", cluster.ImageOS + "+"}, {"os", "name", ""}}},
				{Name: "size", Label: "Size of its disk", Placeholder: "10G; none without", Kind: "size", option: "--os-size"},
				{Name: "template", Label: "How its disk is kept", Placeholder: "as the cluster does", Kind: "text", option: "--disk-template", param: "disk_template",
					Choices: []string{"file", "sharedfile", "plain", "drbd", "ext"}},
				{Name: "memory", Label: "Memory", Placeholder: "as the cluster has it", Kind: "size"},
				{Name: "vcpus", Label: "Processors", Placeholder: "as the cluster has them", Kind: "number"},
				{Name: "network", Label: "Network", Placeholder: "none of the cluster's", Kind: "text", offers: []answers{{"network", "name", ""}}},
				{Name: "node", Label: "Node", Placeholder: "the one that fits best", Kind: "text", option: "--node", param: "pnode", offers: []answers{{"node", "name", ""}}},
				{Name: "group", Label: "Group of nodes", Placeholder: "any", Kind: "text", option: "--group-name", param: "group_name", offers: []answers{{"group", "name", ""}}},
				{Name: "keys", Label: "Public keys of who may log in to an image, one a line", Kind: "lines"},
				{Name: "stopped", Label: "leave it stopped", Kind: "check", option: "--no-start"},
			}},
	},
	"node": {
		{Name: "drain", Title: "Drain", Doc: "It takes no new instances. Those on it go on.", opcode: "OP_NODE_SET_PARAMS", target: "node_name", uuid: "node_uuid", fixed: map[string]any{"drained": true, "auto_promote": true}},
		{Name: "undrain", Title: "Undrain", Doc: "It takes new instances again.", opcode: "OP_NODE_SET_PARAMS", target: "node_name", uuid: "node_uuid", fixed: map[string]any{"drained": false}},
		{Name: "evacuate", Title: "Evacuate", Doc: "The instances on it move to other nodes, by a job each.", opcode: "OP_NODE_EVACUATE", target: "node_name", uuid: "node_uuid",
			Asks: []question{{Name: "mode", Label: "What leaves it", Kind: "choice", Choices: []string{"all", "primary-only", "secondary-only"}, param: "mode"}}},
	},
}

// creation is what a new instance has of disks, interfaces and parameters.
func creation(params map[string]any, given map[string]string) {
	disks, nic, be := []any{}, map[string]any{}, map[string]any{}
	switch size, ok := cluster.Mebibytes(given["size"]); {
	case ok:
		disks = append(disks, map[string]any{"size": size})
	case given["template"] == "":
		params["disk_template"] = "diskless"
	}
	if m, ok := cluster.Mebibytes(given["memory"]); ok {
		be["memory"] = m
	}
	if n, err := strconv.Atoi(given["vcpus"]); err == nil {
		be["vcpus"] = n
	}
	if given["network"] != "" {
		nic["network"], nic["ip"] = given["network"], "pool"
	}
	if given["keys"] != "" {
		params["osparams"] = map[string]any{cluster.SSHKeys: strings.TrimSpace(given["keys"]) + "\n"}
	}
	params["disks"], params["nics"], params["beparams"], params["start"] = disks, []any{nic}, be, given["stopped"] == ""
}

// creationOptions are the command line's options for what creation puts together.
func creationOptions(given map[string]string) (options []string) {
	var be []string
	for _, name := range []string{"memory", "vcpus"} {
		if given[name] != "" {
			be = append(be, name+"="+given[name])
		}
	}
	if len(be) > 0 {
		options = append(options, "-B", quoted(strings.Join(be, ",")))
	}
	if given["network"] != "" {
		options = append(options, "--net", quoted("0:network="+given["network"]+",ip=pool"))
	}
	if given["keys"] != "" {
		options = append(options, "--ssh-key FILE")
	}
	return options
}

// operationsOf tells what can be done to things of a kind, with what may be answered.
func operationsOf(s *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	item := r.PathValue("item")
	all, known := operations[item]
	if !known {
		return nil, noOperation(item)
	}
	out := slices.Clone(all)
	for i := range out {
		out[i].Asks = append([]question{}, out[i].Asks...)
		for k := range out[i].Asks {
			a := &out[i].Asks[k]
			offered, err := s.offered(r.Context(), a.offers)
			if err != nil {
				return nil, err
			}
			a.Choices = append(slices.Clip(a.Choices), offered...)
		}
	}
	return out, nil
}

// mostAnswers is how many answers of one query are offered.
const mostAnswers = 200

// offered are answers out of queries. What nodes that are away would have to tell is left out.
func (s *Server) offered(ctx context.Context, offers []answers) (out []string, err error) {
	for _, o := range offers {
		result, err := s.cfg.Querier.Query(ctx, query.Request{What: o.item, Fields: []string{o.field}, Filter: &qlang.All{}, Options: query.Options{Limit: mostAnswers}})
		if err != nil {
			return nil, err
		}
		for row := range result.Rows() {
			if text, ok := row[0].Value.(string); ok {
				out = append(out, o.before+text)
			}
		}
	}
	return out, nil
}

func noOperation(what string) error {
	return fault.New(fault.NotFound, "the page does nothing to %q", fault.Clip(what, 100)).WithHint("drover has a command for all that there is: drover --help")
}

// operationWish is an operation that somebody wants.
type operationWish struct {
	// Name is that of the thing, UUID what it was when it was shown; empty for one that is made.
	Name string `json:"name"`
	UUID string `json:"uuid"`
	// Given are the answers, by the names of what is asked; those that are empty are none.
	Given map[string]string `json:"given"`
	// Typed is the thing's name, typed anew for what destroys something.
	Typed  string `json:"typed"`
	Reason string `json:"reason"`
	// Key tells this wish from another of the same words: handed in twice it is done once.
	Key string `json:"key"`
}

// wished is an operation as it was wished for.
type wished struct {
	item string
	does operation
	wish operationWish
	by   queue.By
}

// wishedFor reads an operation with its thing and answers.
func (s *Server) wishedFor(w http.ResponseWriter, r *http.Request, v *visitor, preview bool) (o wished, err error) {
	o.item = r.PathValue("item")
	i := slices.IndexFunc(operations[o.item], func(does operation) bool { return does.Name == r.PathValue("do") })
	if i < 0 {
		return o, noOperation(o.item + " " + r.PathValue("do"))
	}
	o.does = operations[o.item][i]
	if err := read(w, r, &o.wish); err != nil {
		return o, err
	}
	if preview && strings.TrimSpace(o.wish.Reason) == "" {
		o.wish.Reason = "a preview" // nothing comes of it
	}
	if o.by, err = s.because(v, o.wish.Reason); err != nil {
		return o, err
	}
	o.wish.Name = strings.TrimSpace(o.wish.Name)
	switch {
	case o.wish.Name == "":
		return o, fault.New(fault.Invalid, "say which %s it is about", o.item).At("name")
	case o.does.uuid != "" && o.wish.UUID == "":
		return o, fault.New(fault.Invalid, "say which %s was shown under that name", o.item).At("uuid")
	case !preview && o.wish.Key == "":
		return o, fault.New(fault.Invalid, "give it a key, under which it is done once").At("key")
	case !preview && o.does.Destroys && o.wish.Typed != o.wish.Name:
		return o, fault.New(fault.Invalid, "type the name of the %s: what this takes away does not come back", o.item).At("typed")
	}
	for name := range o.wish.Given {
		if !slices.ContainsFunc(o.does.Asks, func(a question) bool { return a.Name == name }) {
			return o, fault.New(fault.Invalid, "%s %s asks for no %q", o.item, o.does.Name, fault.Clip(name, 50)).At("given")
		}
	}
	return o, nil
}

// op is the opcode, with who wants it and why.
func (o *wished) op(s *Server) (*opcode.Opcode, error) {
	params := map[string]any{o.does.target: o.wish.Name}
	maps.Copy(params, o.does.fixed)
	if o.does.uuid != "" {
		params[o.does.uuid] = o.wish.UUID
	}
	for _, a := range o.does.Asks {
		value, err := a.read(o.wish.Given[a.Name])
		if err != nil {
			return nil, err
		}
		if value != nil && a.param != "" {
			params[a.param] = value
		}
	}
	if o.does.complete != nil {
		o.does.complete(params, o.wish.Given)
	}
	op, err := opcode.FromMap(o.does.opcode, params)
	if err != nil {
		return nil, err
	}
	return op.WithReason(o.by.Trail.Then(o.by.Account.Entry(s.cfg.Now()))), nil
}

// read makes a value of an answer, nil for none.
func (a *question) read(text string) (any, error) {
	text = strings.TrimSpace(text)
	wrong := func(format string) error {
		return fault.New(fault.Invalid, format, a.Label, fault.Clip(text, 50)).At("given." + a.Name)
	}
	if text == "" && a.Kind == "choice" {
		return a.Choices[0], nil
	}
	if text == "" {
		return nil, nil
	}
	switch a.Kind {
	case "number":
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return nil, wrong("%s is a number, not %q")
		}
		return n, nil
	case "size":
		n, ok := cluster.Mebibytes(text)
		if !ok || n == 0 {
			return nil, wrong("%s is a number with a unit M, G or T, not %q")
		}
		return n, nil
	case "choice":
		if !slices.Contains(a.Choices, text) {
			return nil, fault.New(fault.Invalid, "%s is one of %s, not %q", a.Label, strings.Join(a.Choices, ", "), fault.Clip(text, 50)).At("given." + a.Name)
		}
	}
	return text, nil
}

// command is what does the same on the command line.
func (o *wished) command() string {
	parts := []string{"drover", o.item, o.does.Name, quoted(o.wish.Name)}
	for _, a := range o.does.Asks {
		switch text := strings.TrimSpace(o.wish.Given[a.Name]); {
		case text == "":
		case a.Kind == "check":
			parts = append(parts, a.option)
		case a.option != "":
			parts = append(parts, a.option, quoted(text))
		case a.Name == "mode" && text != a.Choices[0]:
			parts = append(parts, "--"+text)
		}
	}
	if o.does.complete != nil {
		parts = append(parts, creationOptions(o.wish.Given)...)
	}
	return strings.Join(parts, " ")
}

// operationShown is what an operation would do, as the cluster is now.
type operationShown struct {
	Command string `json:"command"`
	// Problem is why it would be refused; nil where nothing is known against it. Pending are jobs after which it may be otherwise.
	Problem *problem `json:"problem"`
	Pending []job.ID `json:"pending"`
	// Rule says what a filter rule would do with the job, empty where none holds, limits or refuses it.
	Rule      string            `json:"rule"`
	Steps     []items.Step      `json:"steps"`
	Says      []json.RawMessage `json:"says"`
	Placement *items.Placement  `json:"placement"`
}

// previewOperation tells what an operation would do. No job is made.
func previewOperation(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	o, err := s.wishedFor(w, r, v, true)
	if err != nil {
		return nil, err
	}
	out := operationShown{Command: o.command(), Pending: []job.ID{}, Says: []json.RawMessage{}, Steps: []items.Step{}}
	op, err := o.op(s)
	if err != nil {
		p := problemOf(err)
		out.Problem = &p
		return out, nil
	}
	found, err := s.cfg.Queue.Check(r.Context(), []*opcode.Opcode{op})
	if err != nil {
		return nil, err
	}
	c := found[0]
	if c.Err != nil {
		p := problemOf(c.Err)
		out.Problem = &p
	}
	out.Pending = append(out.Pending, c.Pending...)
	out.Steps, out.Placement = items.StepsOf(c.Steps), items.PlacementOf(c.Placement)
	for _, e := range c.Log {
		out.Says = append(out.Says, e.Payload)
	}
	if c.Rule != nil {
		out.Rule = c.Rule.Would()
	}
	return out, nil
}

// carriedOut is the job that does it.
type carriedOut struct {
	Job job.ID `json:"job"`
}

// operate makes the job of an operation.
func operate(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	o, err := s.wishedFor(w, r, v, false)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("drover-web-%x", sha256.Sum256(encoded([]any{v.name, o.item, o.does.Name, o.wish})))
	op, err := o.op(s)
	if err != nil {
		return nil, err
	}
	id, err := s.cfg.Queue.Submit(r.Context(), queue.Submission{Ops: []*opcode.Opcode{op}, Key: key})
	return carriedOut{id}, err
}
