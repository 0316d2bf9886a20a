package plan

import (
	"math/big"
	"strconv"
	"strings"
)

// Tolerance returns how many of a group's nodes may fail: a number, a share such as "10%" of them rounded down, or if
// it is negative all but so many. Without a value, and with one that says nothing, more than there are.
func Tolerance(value any, total int) (allowed int, understood bool) {
	n := 0
	switch x := value.(type) {
	case nil:
		return total + 1, true
	case bool:
		if x {
			n = 1
		}
	case int64:
		n = int(min(max(x, -1<<31), 1<<31))
	case float64:
		n = int(min(max(x, -1<<31), 1<<31))
	case string:
		var err error
		text, share := strings.CutSuffix(strings.TrimSpace(x), "%")
		if n, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
			return total + 1, false
		}
		if share {
			n = floorShare(n, total)
		}
	default:
		return total + 1, false
	}
	if n < 0 {
		return max(0, total+n), true
	}
	return n, true
}

func floorShare(percent, total int) int {
	p := new(big.Int).Mul(big.NewInt(int64(percent)), big.NewInt(int64(total)))
	return int(p.Div(p, big.NewInt(100)).Int64())
}
