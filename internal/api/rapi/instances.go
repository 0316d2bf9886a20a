package rapi

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// creationRenames are the keys that had other names in creation requests.
var creationRenames = map[string]string{"os": "os_type", "name": "instance_name"}

// versionKey says in the body of a creation request which form it has.
const versionKey = "__version__"

func requireVersion(_ *request, body parameters) (parameters, error) {
	version, given := body[versionKey]
	delete(body, versionKey)
	switch version {
	case int64(1), 1.0, true:
		return nil, nil
	case int64(0), 0.0, false:
		given = false
	}
	if !given {
		return nil, badRequest("Instance creation request version 0 is no longer supported")
	}
	raw, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	word := strings.Trim(string(raw), `"`)
	if version == nil {
		word = "None"
	}
	return nil, badRequest("Unsupported request data version %s", word)
}

// innerCreations reads the creation requests of several instances at once.
func innerCreations(_ *request, body parameters) (parameters, error) {
	list, ok := body["instances"].([]any)
	if !ok {
		return nil, badRequest("Request is missing required 'instances' field in body")
	}
	inner := make([]any, len(list))
	for i, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, badRequest("Body contents of instances[%d]: Type is '%s', but 'dict' is expected", i, typeName(item))
		}
		m = maps.Clone(m)
		delete(m, "OP_ID")
		if err := renameKeys(m, creationRenames); err != nil {
			return nil, err
		}
		op, err := opcode.FromMap("OP_INSTANCE_CREATE", m)
		if err != nil {
			return nil, err
		}
		if err := reason.CheckOutside(op.Reason, nil); err != nil {
			return nil, err
		}
		if inner[i], err = opcode.ParseValue(op.AppendJSON(nil)); err != nil {
			return nil, err
		}
	}
	body["instances"] = inner
	return nil, nil
}

func onlyThisInstance(r *request, _ parameters) (parameters, error) {
	return parameters{"instances": []string{r.variables["name"]}}, nil
}

func rebootType(r *request, _ parameters) (parameters, error) {
	kind := r.text("type")
	if kind == "" {
		kind = "hard"
	}
	return parameters{"reboot_type": kind}, nil
}

// replacedDisks also takes the disks as text, "0,1", and all parameters from
// the query string, as old clients send them.
func replacedDisks(r *request, body parameters) (parameters, error) {
	if saysNothing(r.body) {
		for _, name := range []string{"remote_node", "mode", "disks", "iallocator"} {
			if text := r.text(name); text != "" {
				body[name] = text
			}
		}
	}
	text, ok := body["disks"].(string)
	if !ok {
		return nil, nil
	}
	disks := []any{}
	for _, word := range splitWords(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, badRequest("Invalid disk index passed: %s", word)
		}
		disks = append(disks, n)
	}
	body["disks"] = disks
	return nil, nil
}

// splitUSBDevices lets spaces separate USB devices, which commas do inside.
func splitUSBDevices(_ *request, body parameters) (parameters, error) {
	for _, key := range []string{"hvparams", "custom_hvparams"} {
		hvparams, ok := body[key].(map[string]any)
		if !ok {
			continue
		}
		if devices, ok := hvparams["usb_devices"].(string); ok {
			hvparams["usb_devices"] = strings.ReplaceAll(devices, " ", ",")
		}
	}
	return nil, nil
}

func diskOfPath(r *request, _ parameters) (parameters, error) {
	n, err := strconv.ParseInt(r.variables["disk"], 10, 64)
	if err != nil {
		return nil, badRequest("Invalid disk index passed: %s", r.variables["disk"])
	}
	return parameters{"disk": n}, nil
}

// saysNothing tells whether a body is one of those that old resources take for none:
// null, or an empty value of any kind. Some languages write an object without keys as [].
func saysNothing(body any) bool {
	switch v := body.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return body == nil || body == "" || body == false || body == int64(0) || body == 0.0
}

// reinstall makes a job of two or three opcodes: stop, install, start. Old
// clients say in the query string what newer ones say in the body.
func reinstall(r *request) (any, error) {
	if saysNothing(r.body) {
		r.body = nil
	}
	body, err := r.object()
	if err != nil {
		return nil, err
	}
	if r.text("os") != "" || r.text("nostartup") != "" {
		if r.body != nil {
			return nil, badRequest("Can't combine query and body parameters")
		}
		noStart, err := r.flag("nostartup")
		if err != nil {
			return nil, err
		}
		body["start"] = !noStart
		if os := r.text("os"); os != "" {
			body["os"] = os
		}
	}
	start, ok := body["start"].(bool)
	if !ok && body["start"] != nil {
		return nil, badRequest("'start' parameter: Type is '%s', but 'bool' is expected", typeName(body["start"]))
	}
	ops, err := r.reinstallOpcodes(body, start || !ok)
	if err != nil {
		return nil, err
	}
	return r.submit(ops...)
}

// reinstallWhole are the parameters that a reinstallation shares with the stop before it and the start behind it.
var reinstallWhole = []string{"instance_uuid", "dry_run", "debug_level", "priority", "comment"}

func (r *request) reinstallOpcodes(body parameters, start bool) ([]*opcode.Opcode, error) {
	static := parameters{"instance_name": r.variables["name"], "reason": r.trail("instances_name_reinstall")}
	if uuid := r.text(meantUUID); uuid != "" {
		static["instance_uuid"] = uuid
	}
	delete(body, "start")
	if err := renameKeys(body, map[string]string{"os": "os_type"}); err != nil {
		return nil, err
	}
	if err := checkOverwrite(body, static); err != nil {
		return nil, err
	}
	stop, begin := maps.Clone(static), maps.Clone(static)
	for _, name := range reinstallWhole { // what is said of the whole is said of each part, or a dry run would stop the instance in earnest
		if value, ok := body[name]; ok {
			stop[name], begin[name] = value, value
		}
	}
	if depends, ok := body["depends"]; ok {
		stop["depends"] = depends
	}
	maps.Copy(body, static)
	steps := []struct {
		opcode string
		params parameters
	}{{"OP_INSTANCE_SHUTDOWN", stop}, {"OP_INSTANCE_REINSTALL", body}, {"OP_INSTANCE_STARTUP", begin}}
	if !start {
		steps = steps[:2]
	}
	var ops []*opcode.Opcode
	for _, step := range steps {
		op, err := opcode.FromMap(step.opcode, step.params)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// console tells how to reach the console of a running instance.
func console(r *request) (any, error) {
	result, err := instanceItem.find(r, []string{"oper_state", "console"})
	if err != nil {
		return nil, err
	}
	row := make([]query.Cell, len(result.Fields))
	result.Row(0, row)
	if row[0].Value != true || row[1].Value == nil {
		return nil, fault.New(fault.Unavailable, "Instance console unavailable")
	}
	return row[1].Value, nil
}
