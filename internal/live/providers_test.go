package live

import (
	"context"
	"reflect"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/storage"
)

// shelves is a node that tells of storage providers alone.
type shelves struct {
	Node
	has []storage.Provider
	err error
}

func (s shelves) Providers(context.Context) ([]storage.Provider, error) { return s.has, s.err }

// Nodes are asked which storage providers they have, and nothing else besides; of one that does not tell it is said why.
func TestProvidersAreAskedFor(t *testing.T) {
	node := shelves{has: []storage.Provider{{Name: "good", Path: "/good", Parameters: [][2]string{{"tier", "which disks"}}}, {Name: "bad", Path: "/bad", Problem: "it has no scripts"}}}
	q := &Querier{Nodes: func(string) (Node, error) { return node, nil }}
	got := q.ask(t.Context(), query.NeedExtStorage, "node1")
	want := map[string]query.ExtStorageState{
		"good": {Path: "/good", Valid: true, Parameters: [][2]string{{"tier", "which disks"}}},
		"bad":  {Path: "/bad", Diagnose: "it has no scripts"},
	}
	if got.Failed != "" || got.AsOf == 0 || !reflect.DeepEqual(got.ExtStorage, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	node.err = fault.New(fault.Unavailable, "it does not answer")
	if got := q.ask(t.Context(), query.NeedExtStorage, "node1"); got.Failed != "it does not answer" || got.ExtStorage != nil {
		t.Errorf("%+v", got)
	}
}
