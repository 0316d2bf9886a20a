package dump_test

import (
	"bufio"
	"os"
	"testing"

	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// TestTextsOfTheReference compares with what PyYAML 6.0.3 with libyaml and CPython's json wrote for the same values.
func TestTextsOfTheReference(t *testing.T) {
	f, err := os.Open("testdata/pyyaml.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		v, err := yaqljson.Decode(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		n++
		c := v.(*yaql.Dict)
		value, _ := c.Get("value")
		want, _ := c.Get("yaml")
		if got, err := dump.YAML(value); got != want || err != nil {
			t.Errorf("line %d: YAML of %s: error %v\n got %q\nwant %q", n, lines.Text(), err, got, want)
		}
		want, _ = c.Get("json")
		if got, err := dump.JSON(value); got != want || err != nil {
			t.Errorf("line %d: JSON: error %v\n got %q\nwant %q", n, err, got, want)
		}
	}
	if err := lines.Err(); err != nil || n < 100 {
		t.Fatalf("%d cases, %v", n, err)
	}
}
