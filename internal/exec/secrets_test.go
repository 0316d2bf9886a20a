package exec

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// An opcode whose secrets were lost with the controller must not install an
// instance with their placeholders.
func TestLostSecretsEndTheOpcode(t *testing.T) {
	r := newRig(t)
	_, err := r.run("OP_INSTANCE_CREATE", creating(params{"osparams_secret": params{"root": "<redacted>"}}))
	if !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "osparams_secret") {
		t.Errorf("error %v", err)
	}
}

// What is kept of an opcode's steps, for whoever goes on with it and for all who look at the store, has none of the parameters that are not shown: the
// steps name them, and the opcode has them.
func TestStepsHoldNoSecret(t *testing.T) {
	r := newRig(t)
	r.create("there", false)
	hidden := params{"osparams_private": params{"test_param": "hidden-in-private"}}
	for id, p := range map[string]params{
		"OP_INSTANCE_CREATE":     creating(hidden),
		"OP_INSTANCE_REINSTALL":  {"instance_name": "there", "osparams_secret": params{"test_param": "hidden-in-secret"}},
		"OP_INSTANCE_SET_PARAMS": {"instance_name": "there", "osparams_private": hidden["osparams_private"]},
	} {
		env := r.env(r.opcode(id, p))
		env.Stepwise = true
		kept, stop := "", errors.New("it was only to be seen what is kept")
		env.Keep = func(_ context.Context, w *work.Work) error {
			text, err := w.Encode()
			kept = string(text)
			return errors.Join(err, stop)
		}
		if _, err := r.all.Run(t.Context(), env); !errors.Is(err, stop) {
			t.Fatalf("%s: %v", id, err)
		}
		if kept == "" || strings.Contains(kept, "hidden-in") {
			t.Errorf("of %s is kept %s", id, kept)
		}
	}
	if r.state("node1", "one") != "" || r.keeper.Snapshot().InstanceNamed("one") != nil {
		t.Error("a creation whose steps could not be kept has begun")
	}
}
