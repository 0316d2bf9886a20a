package top

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestEveryKeyIsTold: the help names each key that does something, but for those that lead to it.
func TestEveryKeyIsTold(t *testing.T) {
	told := strings.FieldsFunc(strings.Join(helpLines, "\n"), func(r rune) bool { return strings.ContainsRune(" ,;\n", r) })
	for _, key := range slices.Concat(slices.Collect(maps.Keys(moves)), slices.Collect(maps.Keys(acts))) {
		if key != "?" && key != "h" && !slices.Contains(told, key) {
			t.Errorf("the help does not tell of %q", key)
		}
	}
}
