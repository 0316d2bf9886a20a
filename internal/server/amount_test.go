package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// TestWhatThereIsRoomFor: as many as a limit allows, or a refusal that says of what there is too little, and who has it.
func TestWhatThereIsRoomFor(t *testing.T) {
	const none = -1
	size := func(cores, ram int64) server.Flavor { return server.Flavor{VCPUs: cores, RAM: ram} }
	has := []*server.Server{{Name: "small", Flavor: size(1, 64)}, {Name: "big", Flavor: size(4, 512)}}
	many := slices.Repeat(has, 4)
	for _, c := range []struct {
		what        string
		limit       server.Amount
		has         []*server.Server
		least, most int
		want        int
		says        string
	}{
		{"no limit", server.Amount{Instances: none, Cores: none, RAM: none}, has, 1, 100, 100, ""},
		{"room for all", server.Amount{Instances: 4, Cores: 9, RAM: 832}, has, 2, 2, 2, ""},
		{"for some", server.Amount{Instances: none, Cores: 10, RAM: none}, has, 1, 5, 2, ""},
		{"for too few", server.Amount{Instances: 3, Cores: none, RAM: none}, has, 2, 5, 0, "Quota exceeded for instances: Requested 2, but already used 2 of 3 instances (used by small, big; "},
		{"for none", server.Amount{Instances: 10, Cores: 6, RAM: 600}, has, 1, 1, 0, "Quota exceeded for cores, ram: Requested 2, 128, but already used 5, 576 of 6, 600 cores, ram (used by big (4 cores), small (1 cores); "},
		{"of many", server.Amount{Instances: none, Cores: none, RAM: 64}, many, 1, 1, 0, "used by big (512 MiB), big (512 MiB), big (512 MiB), big (512 MiB), small (64 MiB), 3 more; "},
		{"nothing at all", server.Amount{Instances: 0, Cores: none, RAM: none}, nil, 1, 1, 0, "nothing uses it"},
	} {
		n, err := c.limit.Admit(slices.Values(c.has), size(2, 128), c.least, c.most)
		if n != c.want || (err == nil) != (c.says == "") || err != nil && (!fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d, %v", c.what, n, err)
		}
	}
}
