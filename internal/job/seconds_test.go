package job_test

import (
	"math"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
)

func TestSecondsDoNotOverflow(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for n, want := range map[float64]time.Duration{
		0: 0, 1.5: 1500 * time.Millisecond, -2: -2 * time.Second, math.MaxInt64: century, 1e300: century, math.Inf(1): century, -1e300: -century,
	} {
		if got := job.Seconds(n); got != want {
			t.Errorf("%v seconds: %v, want %v", n, got, want)
		}
	}
}
