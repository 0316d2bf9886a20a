package app_test

import (
	"path/filepath"
	"testing"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// TestWhatIsPutBackHasANewLife: job ids may come again there. A copy goes on with the one that it has, and so does a restart.
func TestWhatIsPutBackHasANewLife(t *testing.T) {
	stores.Each(t, func(t *testing.T, url string) {
		dir, seen := t.TempDir(), map[string]string{}
		lives := func(what, place string) (life string) {
			t.Helper()
			life = app.LifeAt(t, place)
			if was, known := seen[life]; life == "" || known {
				t.Errorf("%s has the life %s, as %s", what, life, was)
			}
			seen[life] = what
			return life
		}
		run := func(o app.Options) {
			t.Helper()
			c := startWith(t, o)
			c.delay(t)
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
		}
		here := placeOf(dir, url)
		run(app.Options{Data: dir, Store: url})
		first := lives("a new store", here)
		run(app.Options{Data: dir, Store: url})
		if again := app.LifeAt(t, here); again != first {
			t.Errorf("behind a restart the life is %s, and was %s", again, first)
		}
		file, copied := filepath.Join(t.TempDir(), "backup"), t.TempDir()
		must(t, app.BackupCommand(), "create", file, "--at", here)
		must(t, app.StoreCommand(), "copy", here, copied)
		if life := app.LifeAt(t, copied); life != first {
			t.Errorf("the copy has the life %s, and %s was copied", life, first)
		}
		for range 2 { // each restore is another life
			restored := t.TempDir()
			must(t, app.BackupCommand(), "restore", file, "--at", restored)
			life := lives("a restored store", restored)
			run(app.Options{Data: restored})
			if now := app.LifeAt(t, restored); now != life {
				t.Errorf("once it was led the restored store has the life %s, and had %s", now, life)
			}
		}
		if url == "" {
			return
		}
		must(t, app.StoreCommand(), "advance", url)
		if life := app.LifeAt(t, url); life != first {
			t.Errorf("what was not done has changed the life to %s", life)
		}
		must(t, app.StoreCommand(), "advance", url, "--yes")
		lives("a database that was put back", url)
		must(t, app.StoreCommand(), "check", url)
	})
}
