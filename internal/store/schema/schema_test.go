package schema_test

import (
	"strings"
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
	if err != nil || len(steps) != 2 || steps[1] != (schema.Step{Version: 2, Name: "0002_b.sql", SQL: "0002_b.sql", Format: 1}) {
		t.Errorf("got %v, %v", steps, err)
	}
	for _, names := range [][]string{{"0002_x.sql"}, {"0001_x.sql", "0003_x.sql"}, {"0001_x.sql", "0001_y.sql"}, {"x.sql"},
		{"0001_format_1.sql"}, {"0001_format_x.sql"}, {"0001_format_99.sql"}, {"0001_format_2.sql", "0002_format_2.sql"}} {
		if _, err := schema.Steps(files(names...)); err == nil {
			t.Errorf("%v: accepted", names)
		}
	}
}

// ofFormats are the steps of a program that knows two formats.
func ofFormats(t *testing.T) []schema.Step {
	t.Helper()
	steps, err := schema.Steps(files("0001_a.sql", "0002_b.sql", "0003_format_2.sql", "0004_c.sql"))
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// TestMissing: what belongs to a format is not taken by opening a store that does not have it.
func TestMissing(t *testing.T) {
	steps := ofFormats(t)
	for have, want := range []int{2, 1, 0, 1, 0} {
		if got, err := schema.Missing(steps, int64(have)); err != nil || len(got) != want || want > 0 && got[0].Version != int64(have+1) {
			t.Errorf("at %d: %d steps, %v", have, len(got), err)
		}
	}
	if _, err := schema.Missing(steps, 5); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestStepsOfAFormat(t *testing.T) {
	steps := ofFormats(t)
	for have, want := range [][2]int{{2, 4}, {1, 3}, {0, 2}, {0, 1}, {0, 0}} { // to the first format, and to the second
		for i, count := range want {
			if got := schema.Raise(steps, int64(have), i+1); len(got) != count || count > 0 && got[0].Version != int64(have+1) {
				t.Errorf("from %d to format %d: %v", have, i+1, got)
			}
		}
	}
	for have, want := range [][2]bool{{}, {}, {true, false}, {}, {false, true}} {
		for i, good := range want {
			if err := schema.Agree(steps, int64(have), i+1); (err == nil) != good {
				t.Errorf("version %d of a store with format %d: %v", have, i+1, err)
			}
		}
	}
	if err := schema.Agree(steps, 4, 0); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a format that cannot be read: %v", err)
	}
	// A format that changes no table has no step, and is kept in the schema of the one before.
	if schema.Version(steps, 3) != schema.Version(steps, 2) {
		t.Errorf("format 3 is kept in version %d", schema.Version(steps, 3))
	}
}

// TestAProgramThatKnowsOfNoFormatsIsKeptOut: behind a raise it finds a number that it does not know.
func TestAProgramThatKnowsOfNoFormatsIsKeptOut(t *testing.T) {
	steps := ofFormats(t)
	before, now := steps[:2], schema.Version(steps, 2)
	if _, err := schema.Missing(before, now); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "this program knows versions up to 2") {
		t.Errorf("it opens it: %v", err)
	}
	if _, err := schema.Missing(before, schema.Version(steps, 1)); err != nil {
		t.Errorf("before the raise: %v", err)
	}
}
