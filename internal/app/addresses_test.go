package app

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// TestANewControllerThatCannotListenLeavesNothing: no store, account, key or certificate.
func TestANewControllerThatCannotListenLeavesNothing(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for setting, change := range map[string]func(*Options){
		"rapi":    func(o *Options) { o.RAPI = taken.Addr().String() },
		"health":  func(o *Options) { o.Health = taken.Addr().String() },
		"web":     func(o *Options) { o.Web = taken.Addr().String() },
		"compute": func(o *Options) { o.Compute = taken.Addr().String() },
	} {
		dir := filepath.Join(t.TempDir(), "data")
		o := Options{Data: dir, RAPI: "127.0.0.1:0", Nodes: 1, Log: slog.New(slog.DiscardHandler)}
		change(&o)
		if err := Run(t.Context(), o); !fault.Is(err, fault.Environment) {
			t.Errorf("%s is taken: %v", setting, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is taken, and something was made: %v", setting, err)
		}
	}
}
