package exec

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
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
