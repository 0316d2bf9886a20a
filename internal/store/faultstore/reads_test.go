package faultstore_test

import (
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

func TestReadsFailUntilTheyAreMended(t *testing.T) {
	s := open(t)
	for _, id := range []string{"1", "2", "3"} {
		if _, err := store.Commit(t.Context(), s, job(id)); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (ids []string, err error) {
		for o, err := range s.List(t.Context(), "job", store.Options{}) {
			if err != nil {
				return ids, err
			}
			ids = append(ids, o.ID)
		}
		return ids, nil
	}
	one := s.FailReads(faultstore.ReadFault{When: func(kind store.Kind, id string) bool { return kind == "job" && id == "2" }})
	for _, id := range []string{"1", "2", "3"} {
		_, err := s.Get(t.Context(), store.Key{Kind: "job", ID: id})
		if (err != nil) != (id == "2") {
			t.Errorf("job %s: %v", id, err)
		}
	}
	one()
	all := s.FailReads(faultstore.ReadFault{Yields: 2, Err: fault.New(fault.Internal, "broken")})
	if ids, err := list(); len(ids) != 2 || !fault.Is(err, fault.Internal) {
		t.Errorf("the list is %v, %v", ids, err)
	}
	_, errGet := s.Get(t.Context(), store.Key{Kind: "job", ID: "1"})
	_, errRevision := s.Revision(t.Context())
	_, errChanges := s.Changes(t.Context(), 0, 10)
	for _, err := range []error{errGet, errRevision, errChanges} {
		if !fault.Is(err, fault.Internal) {
			t.Errorf("read: %v", err)
		}
	}
	all()
	if ids, err := list(); len(ids) != 3 || err != nil {
		t.Errorf("mended, the list is %v, %v", ids, err)
	}
}
