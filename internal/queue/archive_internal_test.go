package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/state"
)

// What ended at the very moment is old enough: with the age 0 all goes that has ended.
func TestWhatEndedAtThisMomentIsOldEnough(t *testing.T) {
	now := time.UnixMicro(2e15)
	op, err := opcode.FromMap("OP_TEST_DELAY", map[string]any{"duration": 1.0})
	if err != nil {
		t.Fatal(err)
	}
	shown := picture.New()
	c := &state.Change{}
	for id, ended := range map[job.ID]time.Time{1: now.Add(-time.Microsecond), 2: now, 3: now.Add(time.Microsecond)} {
		c.Jobs = append(c.Jobs, job.New(id, []*opcode.Opcode{op}, "", now).Cancel("", job.At(ended)))
	}
	shown.Committed(c)
	shown.Publish()
	q := &Queue{cfg: Config{Picture: shown, Now: func() time.Time { return now }}}
	if due := q.endedBefore(now); !slices.Equal(due, []job.ID{1, 2}) {
		t.Errorf("old enough are %v, want 1 and 2", due)
	}
}
