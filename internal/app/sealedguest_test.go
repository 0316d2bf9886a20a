package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/tagsync"
)

// TestWhatMachinesAreToldIsSealed: user data of a server that is not made yet is in its record, and in the store nobody reads it.
func TestWhatMachinesAreToldIsSealed(t *testing.T) {
	below, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = below.Close() }()
	ring, err := sealed.MakeRing(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	over := sealed.Over(below, ring, sealedParts())
	text, err := (&server.Server{ID: "s", Name: "shop", Guest: &server.Guest{KeyName: "mine", UserData: "planted"}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	key := store.Key{Kind: tagsync.KindServer, ID: "s"}
	if _, err := store.Commit(t.Context(), over, store.Tx{Put: []store.Put{{Key: key, Value: text}}}); err != nil {
		t.Fatal(err)
	}
	if o, err := below.Get(t.Context(), key); err != nil || strings.Contains(string(o.Value), "planted") || !strings.Contains(string(o.Value), "shop") {
		t.Errorf("the store has %s (%v)", o.Value, err)
	}
	if o, err := over.Get(t.Context(), key); err != nil || !strings.Contains(string(o.Value), "planted") {
		t.Errorf("who has the key reads %s (%v)", o.Value, err)
	}
}
