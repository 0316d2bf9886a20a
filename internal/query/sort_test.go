package query

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCellsAreInATotalOrder(t *testing.T) {
	cell := rapid.Custom(func(t *rapid.T) Cell {
		values := []any{nil, true, false, int64(1), 1.5, int64(-2), int64(1<<53 + 1), int64(1 << 53), float64(1 << 53), 1e300, "a", "a10", "a9", "A", []string{"x"}, []any{int64(1)}, [2]int64{1, 2}}
		if s := Status(rapid.IntRange(0, 6).Draw(t, "status")); s > Normal && s <= Offline {
			return Cell{Status: s}
		}
		return Cell{Value: rapid.SampledFrom(values).Draw(t, "value")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := cell.Draw(t, "a"), cell.Draw(t, "b"), cell.Draw(t, "c")
		if CompareCells(a, b) != -CompareCells(b, a) {
			t.Fatalf("not antisymmetric: %v %v", a, b)
		}
		if CompareCells(a, b) <= 0 && CompareCells(b, c) <= 0 && CompareCells(a, c) > 0 {
			t.Fatalf("not transitive: %v %v %v", a, b, c)
		}
	})
}

func TestWholeAndBrokenNumbersAreInOneOrder(t *testing.T) {
	whole, next, broken := Cell{Value: int64(1 << 53)}, Cell{Value: int64(1<<53 + 1)}, Cell{Value: float64(1 << 53)}
	if CompareCells(whole, broken) != 0 || CompareCells(next, broken) != 1 || CompareCells(broken, next) != -1 {
		t.Errorf("%d, %d, %d", CompareCells(whole, broken), CompareCells(next, broken), CompareCells(broken, next))
	}
}
