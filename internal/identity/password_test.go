package identity

import (
	"fmt"
	"strings"
	"testing"
)

// TestCostsAreBounded: what is stored can have a try cost so much, and no more; what is more, or none, is no hash.
func TestCostsAreBounded(t *testing.T) {
	rest := "$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	for said, want := range map[string]bool{
		fmt.Sprintf("m=%d,t=%d,p=%d", highest.memory, highest.passes, highest.lanes): true, "m=64,t=1,p=1": true,
		fmt.Sprintf("m=%d,t=1,p=1", highest.memory+1): false, fmt.Sprintf("m=64,t=%d,p=1", highest.passes+1): false, fmt.Sprintf("m=64,t=1,p=%d", highest.lanes+1): false,
		"m=64,t=0,p=1": false, "m=64,t=1,p=0": false, "m=-1,t=1,p=1": false, "m=64": false, "": false,
	} {
		if _, _, hash := decode("$argon2id$v=19$" + said + rest); (hash != nil) != want {
			t.Errorf("%q is taken: %v", said, hash != nil)
		}
	}
	for _, other := range []string{"$argon2i$v=19$m=64,t=1,p=1" + rest, "$argon2id$v=16$m=64,t=1,p=1" + rest, "$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA"} {
		if _, _, hash := decode(other); hash != nil {
			t.Errorf("%s is taken", other)
		}
	}
}
