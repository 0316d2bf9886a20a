package schema_test

import (
	"testing"
	"testing/fstest"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/schema"
)

func files(names ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for _, name := range names {
		fs["migrations/"+name] = &fstest.MapFile{Data: []byte(name)}
	}
	return fs
}

func TestStepsAreNumberedWithoutGaps(t *testing.T) {
	steps, err := schema.Steps(files("0002_b.sql", "0001_a.sql"))
	if err != nil || len(steps) != 2 || steps[1] != (schema.Step{Version: 2, Name: "0002_b.sql", SQL: "0002_b.sql"}) {
		t.Errorf("got %v, %v", steps, err)
	}
	for _, names := range [][]string{{"0002_x.sql"}, {"0001_x.sql", "0003_x.sql"}, {"0001_x.sql", "0001_y.sql"}, {"x.sql"}} {
		if _, err := schema.Steps(files(names...)); err == nil {
			t.Errorf("%v: accepted", names)
		}
	}
}

func TestMissing(t *testing.T) {
	steps := []schema.Step{{Version: 1}, {Version: 2}}
	for have, want := range []int{2, 1, 0} {
		if got, err := schema.Missing(steps, int64(have)); err != nil || len(got) != want {
			t.Errorf("at %d: %d steps, %v", have, len(got), err)
		}
	}
	if _, err := schema.Missing(steps, 3); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a newer schema: %v", err)
	}
}
