package tagsync_test

import (
	"testing"

	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/tagsync/backendtest"
	"github.com/drover-project/drover/internal/testkit/controller"
)

func TestConformanceOfDroversOwnCluster(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.World {
		t.Helper()
		core := controller.New(t, controller.Options{Memory: 1 << 20})
		return backendtest.World{Backend: tagsync.Local{Queue: core.Queue, Picture: core.Picture, Store: core.Store}, Core: core}
	})
}
