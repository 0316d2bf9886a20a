package rapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
)

// bodyUse says what a resource that makes a job does with the body.
type bodyUse uint8

const (
	// onlyDepends: an object may have the keys depends and reason and no other; what
	// else clients send is read by more, if at all.
	onlyDepends bodyUse = iota
	// bodyOptional: its keys are parameters of the opcode.
	bodyOptional
	// bodyLenient: the same, and any empty value is taken for none.
	bodyLenient
	// bodyRequired: the same, and a request without it is refused.
	bodyRequired
)

// parameters are values by name of an opcode's parameter.
type parameters = map[string]any

// jobSpec describes a resource that makes a job of one opcode.
type jobSpec struct {
	// class is the name of the resource in reason trails.
	class  string
	opcode string
	// needs is what is needed of who asks, if that is not the right to change something.
	needs rights.Right
	body  bodyUse
	// path maps a variable of the path to the parameter that it sets, flags an
	// integer of the query string to a boolean parameter, texts a text of the
	// query string to a parameter that stays unset without it.
	path, flags, texts map[string]string
	// fixed are parameters with the same value in all requests.
	fixed parameters
	// renames maps old keys of the body to parameters.
	renames map[string]string
	// more computes further parameters; body may be changed by it.
	more func(r *request, body parameters) (parameters, error)
}

// submits returns the handler of a resource that makes a job.
func submits(spec jobSpec) handler {
	_, takesUUID := spec.texts[meantUUID]
	return handler{needs: cmp.Or(spec.needs, rights.Change), body: opcodeBody, meant: takesUUID, serve: func(r *request) (any, error) {
		op, err := spec.build(r)
		if err != nil {
			return nil, err
		}
		return r.submit(op)
	}}
}

// submit makes a job. A key in the header Idempotency-Key makes that safe to
// repeat. dry-run=1 is heeded also where the reference does not know it, and
// would do the thing.
func (r *request) submit(ops ...*opcode.Opcode) (any, error) {
	dry, err := r.flag("dry-run")
	if err != nil {
		return nil, err
	}
	signature := r.by.Entry(r.Now())
	signed := make([]*opcode.Opcode, 0, len(ops))
	for _, op := range ops {
		for _, text := range op.Reason.Misread() {
			r.warn(fmt.Sprintf("the reason %q limits nothing: a limit is %sN:LABEL, with N from 1", text, reason.LimitPrefix))
		}
		op = op.WithReason(op.Reason.Then(signature)) // a copy
		op.DryRun = op.DryRun || dry
		signed = append(signed, op)
	}
	return r.Queue.Submit(r.Context(), queue.Submission{Ops: signed, Key: r.Header.Get("Idempotency-Key")})
}

// build makes the opcode out of the request. Parameters that path and query
// string set cannot be set by the body too.
func (s *jobSpec) build(r *request) (*opcode.Opcode, error) {
	body, err := s.readBody(r)
	if err != nil {
		return nil, err
	}
	static, err := s.static(r, body)
	if err != nil {
		return nil, err
	}
	before, err := ownHops(body)
	if err != nil {
		return nil, err
	}
	static["reason"] = before.Append(r.trail(s.class)...)
	if err := s.rename(body); err != nil {
		return nil, err
	}
	if err := checkOverwrite(body, static); err != nil {
		return nil, err
	}
	maps.Copy(static, body)
	return opcode.FromMap(s.opcode, static)
}

func (s *jobSpec) readBody(r *request) (parameters, error) {
	m, isObject := r.body.(map[string]any)
	switch {
	case s.body == onlyDepends && isObject:
		return maps.Clone(m), checkKeys(m, "depends", "reason")
	case s.body == onlyDepends, r.body == nil && s.body == bodyOptional, saysNothing(r.body) && s.body == bodyLenient:
		return parameters{}, nil
	}
	return r.requiredObject()
}

// ownHops takes the hops that the client's program gives of itself out of the
// body: a list as rules have it under the key reason. They stand before those
// of this interface. The reference refuses the key; so is any other value.
func ownHops(body parameters) (reason.Trail, error) {
	list, ok := body["reason"].([]any)
	if !ok {
		return nil, nil
	}
	delete(body, "reason")
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	trail, err := jobfilter.ParseReason(text)
	if err != nil {
		return nil, err
	}
	return trail, reason.CheckOutside(trail, nil)
}

func (s *jobSpec) static(r *request, body parameters) (parameters, error) {
	static := parameters{}
	maps.Copy(static, s.fixed)
	for variable, name := range s.path {
		static[name] = r.variables[variable]
	}
	for key, name := range s.flags {
		on, err := r.flag(key)
		if err != nil {
			return nil, err
		}
		static[name] = on
	}
	for key, name := range s.texts {
		if text := r.text(key); text != "" {
			static[name] = text
		}
	}
	if s.more == nil {
		return static, nil
	}
	more, err := s.more(r, body)
	maps.Copy(static, more)
	return static, err
}

// rename gives keys of the body their present names.
func (s *jobSpec) rename(body parameters) error { return renameKeys(body, s.renames) }

func renameKeys(body parameters, renames map[string]string) error {
	for _, old := range slices.Sorted(maps.Keys(renames)) {
		value, ok := body[old]
		if !ok {
			continue
		}
		if _, both := body[renames[old]]; both {
			return badRequest("Parameter '%s' was renamed to '%s', but both are specified", old, renames[old])
		}
		delete(body, old)
		body[renames[old]] = value
	}
	return nil
}

func checkOverwrite(body, static parameters) error {
	var twice []string
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if _, ok := static[name]; ok {
			twice = append(twice, "'"+name+"'")
		}
	}
	if twice == nil {
		return nil
	}
	return failure(http.StatusBadRequest, "Can't overwrite static parameters {%s}", strings.Join(twice, ", "))
}
