package tagsync_test

import (
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/tagsync"
)

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
