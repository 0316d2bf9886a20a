package server_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// told is what a history says, an act a word.
func told(acts []server.Act) (out []string) {
	for _, a := range acts {
		out = append(out, fmt.Sprintf("%s by %s job %d %d-%d %s", a.Do, a.Asked.User, a.Job, a.Began, a.Ended, a.Failed))
	}
	return out
}

func wantActs(t *testing.T, what string, got []server.Act, want ...string) {
	t.Helper()
	if !slices.Equal(told(got), want) {
		t.Errorf("%s: %q, want %q", what, told(got), want)
	}
}

// ended is a sight at 100 of a server's own instance, and how a job ended.
func ended(id job.ID, o servertag.Outcome) server.Sight {
	sight := seen("u1")
	sight.Ended[id] = o
	return sight
}

// TestWhatWasDoneIsKept: with who asked and how it ended, what is under way among it, also when the server is gone.
func TestWhatWasDoneIsKept(t *testing.T) {
	s := asked(t)
	wantActs(t, "while it is made", s.Acts(), "create by alice job 7 0-0 ")
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true, Began: 40, Ended: 60})))
	s = begin(t, s, server.Start, bob)
	s = s.Submitted(s.Serial, 8)
	s = s.Settle(policy, s.Own(ended(8, servertag.Outcome{Text: "no memory", Began: 70, Ended: 80})))
	s = begin(t, s, server.Start, alice).Refused(s.Serial+1, "no such opcode", 90)
	wantActs(t, "when it failed", s.Acts(), "create by alice job 7 40-60 ", "start by bob job 8 70-80 no memory", "start by alice job 0 0-90 no such opcode")

	encoded, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := server.Decode(encoded)
	if err != nil || !slices.Equal(told(again.Acts()), told(s.Acts())) {
		t.Errorf("from the store it is %q, %v", told(again.Acts()), err)
	}

	s = begin(t, s, server.Delete, bob)
	s = s.Submitted(s.Serial, 9)
	gone := server.Sight{Sight: servertag.Sight{Now: 200, Ended: map[job.ID]servertag.Outcome{9: {Text: "it is not there", Missing: true, Began: 110, Ended: 120}}}}
	if next := s.Settle(policy, gone); next != nil {
		t.Fatalf("it is there: %+v", next)
	}
	p, err := server.DecodePast(s.Past(gone).Encode())
	if err != nil || p.Deleted != 200 || p.ID != s.ID {
		t.Fatalf("%+v, %v", p, err)
	}
	wantActs(t, "when it is gone", p.Done[3:], "delete by bob job 9 110-120 ")

	never := begin(t, begin(t, &server.Server{ID: "s2"}, server.Create, alice), server.Delete, bob)
	wantActs(t, "one that never was", never.Past(gone).Done, "create by alice job 0 0-200 ", "delete by bob job 0 0-200 ")
}

// TestWhatIsKeptIsBounded: by its end; how the server was made stays.
func TestWhatIsKeptIsBounded(t *testing.T) {
	s := asked(t)
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true})))
	for i := range 2 * server.MaxActs {
		s = begin(t, s, server.RebootHard, bob)
		s = s.Submitted(s.Serial, job.ID(100+i))
		s = s.Settle(policy, s.Own(ended(job.ID(100+i), servertag.Outcome{OK: true, Ended: job.Time(i)})))
	}
	acts := s.Acts()
	if len(acts) != server.MaxActs || acts[0].Do != server.Create || acts[1].Job != 100+server.MaxActs+1 || acts[len(acts)-1].Job != 100+2*server.MaxActs-1 {
		t.Errorf("%d are kept: %q", len(acts), told(acts))
	}
}
