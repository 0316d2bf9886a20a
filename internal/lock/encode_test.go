package lock

import (
	"encoding/json"
	"testing"
)

func TestRequestsAreStored(t *testing.T) {
	r := Request{{Name{Cluster, BGL}, Shared}, {Name{Instance, "a/b"}, Exclusive}, {Name{Node, All}, Shared}, {Name{Network, "u"}, Exclusive}}
	text, err := json.Marshal(r)
	if want := `[["cluster/BGL","shared"],["instance/a/b","exclusive"],["node/[lockset]","shared"],["network/u","exclusive"]]`; err != nil || string(text) != want {
		t.Fatalf("stored as %s, %v", text, err)
	}
	var got Request
	if err := json.Unmarshal(text, &got); err != nil || !got.Equal(r) {
		t.Errorf("read as %v, %v", got, err)
	}
	for _, bad := range []string{`[["moon/x","shared"]]`, `[["node/","shared"]]`, `[["node/x","perhaps"]]`, `[["node"]]`, `[5]`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
