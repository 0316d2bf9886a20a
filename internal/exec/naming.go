package exec

import (
	"context"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// Names answers the questions about host names that new names of instances
// raise (name_check, ip_check).
type Names struct {
	// Resolve returns the full name and the first address of a host.
	Resolve func(ctx context.Context, name string) (full, address string, err error)
	// Answers reports whether a machine answers at an address.
	Answers func(ctx context.Context, address string) bool

	// Allocators are the programs that may choose nodes in place of placement; nil for none.
	Allocators Allocators
	// OutOfBand are the programs that ask management controllers of nodes; nil for none.
	OutOfBand Programs
	// Machine is that of the controller; nil where nothing is to be done there.
	Machine Machine

	places *places
}

// Allocators are programs that choose nodes, by name.
type Allocators interface {
	// Has reports whether there is one of that name.
	Has(name string) bool
	// Run asks one, and returns what it says: fault.Failed if that does not come, or is too long.
	Run(ctx context.Context, name string, options []string, input []byte) ([]byte, error)
}

// checkNewName carries name_check and ip_check out for the name that a
// parameter holds. It returns the opcode with the full name in it, and the
// address of that name, empty when names are not checked.
func (n Names) checkNewName(ctx context.Context, env *Env, param, refusal string) (op *opcode.Opcode, address string, err error) {
	op = env.Op
	if !op.Bool("name_check") {
		if op.Bool("ip_check") {
			return nil, "", fault.New(fault.Invalid, "%s", refusal).At("ip_check")
		}
		return op, "", nil
	}
	name := op.Str(param)
	if _, err := cluster.NormalName(name); err != nil {
		return nil, "", err
	}
	full, address, err := n.Resolve(ctx, name)
	if err != nil {
		return nil, "", fault.New(fault.Unresolved, "The given name (%s) does not resolve: %w", name, err).At(param).
			WithHint("name_check: false takes any name")
	}
	if full != name {
		env.firstf("Resolved given name '%s' to '%s'", name, full)
	}
	if !matchesName(name, full) {
		return nil, "", fault.New(fault.Invalid, "Resolved hostname '%s' does not look the same as given hostname '%s'", full, name).At(param)
	}
	normal, err := cluster.NormalName(full)
	if err != nil {
		return nil, "", err
	}
	if op.Bool("ip_check") && n.Answers(ctx, address) {
		return nil, "", fault.New(fault.Ambiguous, "IP address %s of instance %s already in use", address, normal).At(param)
	}
	return op.With(param, normal), address, nil
}

// nameLocks are the locks of a new name: the name, and its first label, which
// every name that it may be resolved to begins with.
func nameLocks(name string) (lock.Request, error) {
	normal, err := cluster.NormalName(name)
	if err != nil {
		return nil, err
	}
	request := lock.Request{want(lock.Instance, normal, lock.Exclusive)}
	if label, _, more := strings.Cut(normal, "."); more {
		request = append(request, want(lock.Instance, label, lock.Exclusive))
	}
	return request, nil
}

// matchesName reports whether a full name is what was given, or that with a
// domain behind it.
func matchesName(given, full string) bool {
	given, full = strings.ToLower(strings.TrimSuffix(given, ".")), strings.ToLower(strings.TrimSuffix(full, "."))
	return full == given || strings.HasPrefix(full, given+".")
}
