package exec

import (
	"context"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// Nothing that goes wrong with an opcode that is run again says that nothing was
// begun: it was, before the controller ended.
func TestErrorsBehindARestartAreNeverPrerequisites(t *testing.T) {
	r := newRig(t)
	refusals := map[string]Executor{
		"OP_CLUSTER_VERIFY": {Prepare: func(context.Context, *Env) (Plan, error) {
			return Plan{}, fault.New(fault.WrongState, "it is marked to be up")
		}},
		"OP_TEST_DELAY": {Prepare: func(context.Context, *Env) (Plan, error) {
			return Plan{}, fault.New(fault.BadTag, "bad tag")
		}},
	}
	secret := creating(params{"osparams_secret": params{"root": "<redacted>"}})
	for _, test := range []struct {
		id   string
		with params
		all  Catalogue
	}{{"OP_CLUSTER_VERIFY", nil, refusals}, {"OP_TEST_DELAY", params{"duration": 1.0}, refusals}, {"OP_INSTANCE_CREATE", secret, r.all}, {"OP_CLUSTER_VERIFY", nil, Catalogue{}}} {
		for _, resumed := range []bool{false, true} {
			env := r.env(r.opcode(test.id, test.with))
			env.Resumed = resumed
			_, err := test.all.Run(t.Context(), env)
			class, text, _ := job.DecodeError(job.EncodeError(err))
			if err == nil || (class == "OpExecError") != resumed {
				t.Errorf("%s, resumed %v: %s %s", test.id, resumed, class, text)
			}
		}
	}
}
