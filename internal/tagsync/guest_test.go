package tagsync_test

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/tagsync"
)

// TestSizesWaitForTheFormat: a program of before would forget the size that a server had before.
func TestSizesWaitForTheFormat(t *testing.T) {
	present := format.Sizes - 1
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, format: func() int { return present }}
	r.start()
	defer r.stop()
	s := r.create()
	to := server.Flavor{ID: "d2", RAM: 192, VCPUs: 2}
	as := func(s *server.Server) (*server.Server, error) { return s, nil }
	if _, err := r.engine.Resize(s.ID, to, r.asked(), as); !fault.Is(err, fault.WrongState) {
		t.Errorf("below the format: %v", err)
	}
	present = format.Sizes
	if _, err := r.engine.Resize(s.ID, to, r.asked(), as); err != nil {
		t.Errorf("at the format: %v", err)
	}
	s = r.settled(s.ID)
	if i := r.shown.Load().Inventory.Instance(s.UUID); s.Status() != server.Resized || fmt.Sprint(i.BEParams["maxmem"], i.BEParams["vcpus"]) != "192 2" {
		t.Errorf("it is %s, with %v", s.Status(), i.BEParams)
	}
}

// TestGuestsWaitForTheFormat: a program of before would forget what a server's machine is to be told, and make another one.
func TestGuestsWaitForTheFormat(t *testing.T) {
	present := format.Guests - 1
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, format: func() int { return present }}
	r.start()
	defer r.stop()
	wish := func(net []server.Net, guest *server.Guest) error {
		_, err := r.engine.Create(r.ctx, &tagsync.Wish{Name: "web", Flavor: server.DefaultFlavors()[3], Image: r.engine.Images()[0], Nets: net, Guest: guest, Asked: r.asked()})
		return err
	}
	nets, guest := []server.Net{{ID: "n1"}}, &server.Guest{KeyName: "mine"}
	for what, err := range map[string]error{"a network": wish(nets, nil), "a key": wish(nil, guest)} {
		if !fault.Is(err, fault.WrongState) {
			t.Errorf("%s below the format: %v", what, err)
		}
	}
	if err := wish(nil, nil); err != nil {
		t.Errorf("a server as of before: %v", err)
	}
	present = format.Guests
	if err := wish(nets, guest); err != nil {
		t.Errorf("at the format: %v", err)
	}
}
