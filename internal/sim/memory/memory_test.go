package memory_test

import (
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/storetest"
)

// databases are those of a test, by the names under which a suite opens them.
type databases struct {
	mu   sync.Mutex
	open map[string]*memory.Database
}

func (d *databases) named(name string, opts memory.Options) *memory.Database {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[name] == nil {
		d.open[name] = memory.New(opts)
	}
	return d.open[name]
}

func TestConformanceOfStore(t *testing.T) {
	all := databases{open: map[string]*memory.Database{}}
	storetest.Run(t, func(_ testing.TB, s storetest.Setting) store.Store {
		return all.named(s.Dir, memory.Options{Now: s.Now}).Open(memory.Handle{Keep: s.Keep})
	})
}

func TestConformanceOfSharedStore(t *testing.T) {
	all := databases{open: map[string]*memory.Database{}}
	storetest.RunShared(t, func(_ testing.TB, name string) store.Shared {
		return all.named(name, memory.Options{}).Open(memory.Handle{})
	})
}
