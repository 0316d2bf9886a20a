package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

var (
	small  = server.Flavor{ID: "s", RAM: 512, VCPUs: 4, Disk: 5}
	large  = server.Flavor{ID: "l", RAM: 2048, VCPUs: 2, Disk: 5}
	larger = server.Flavor{ID: "x", RAM: 2048, VCPUs: 2, Disk: 9}
)

// standing is a server of a size that is there.
func standing(size server.Flavor, stopped bool) *server.Server {
	return &server.Server{ID: "s1", Instance: "snf-1", UUID: "u1", Built: 1, Flavor: size, Stopped: stopped}
}

// end has the task under way end as job 8.
func end(s *server.Server, ok bool, text string) *server.Server {
	s = s.Submitted(s.Doing().Serial, 8)
	return s.Settle(policy, server.Sight{UUID: "u1", Name: "snf-1", Stopped: s.Stopped,
		Sight: servertag.Sight{Now: 100, Instance: true, Ended: map[job.ID]servertag.Outcome{8: {OK: ok, Text: text, Began: 90, Ended: 95}}}})
}

// sizeTold is what is seen of a server: its status, its size, and how its acts ended.
func sizeTold(s *server.Server) string {
	out := []string{string(s.Status()), s.Flavor.ID}
	for _, a := range s.Acts() {
		how := "ok"
		switch {
		case a.Ended == 0:
			how = "runs"
		case a.Failed != "":
			how = a.Failed
		}
		out = append(out, string(a.Do)+" "+how)
	}
	return strings.Join(out, ", ")
}

func steps(t *testing.T, s *server.Server, all ...func(*server.Server) *server.Server) (out []string) {
	t.Helper()
	for _, step := range all {
		s = step(s)
		out = append(out, sizeTold(s))
	}
	return out
}

// TestSizes: a server has its new size when that was confirmed, and the one before when it was not wanted; what runs begins anew behind each change, and
// what fails leaves the size that there was.
func TestSizes(t *testing.T) {
	act := func(do func(*server.Server) (*server.Server, error)) func(*server.Server) *server.Server {
		return func(s *server.Server) *server.Server {
			next, err := do(s)
			if err != nil {
				t.Fatal(err)
			}
			return next
		}
	}
	to := func(f server.Flavor) func(*server.Server) *server.Server {
		return act(func(s *server.Server) (*server.Server, error) { return s.Resize(f, alice) })
	}
	confirm := act(func(s *server.Server) (*server.Server, error) { return s.ConfirmResize(alice) })
	revert := act(func(s *server.Server) (*server.Server, error) { return s.RevertResize(alice) })
	ends := func(s *server.Server) *server.Server { return end(s, true, "") }
	fails := func(s *server.Server) *server.Server { return end(s, false, "no room") }
	for name, x := range map[string]struct {
		stopped bool
		steps   []func(*server.Server) *server.Server
		want    []string
	}{
		"kept": {false, []func(*server.Server) *server.Server{to(large), ends, ends, confirm}, []string{
			"RESIZE, s, resize runs", "RESIZE, l, resize runs", "VERIFY_RESIZE, l, resize ok", "ACTIVE, l, resize ok, confirm-resize ok",
		}},
		"kept with a larger disk": {false, []func(*server.Server) *server.Server{to(larger), ends, ends, confirm, fails, confirm, ends}, []string{
			"RESIZE, s, resize runs", "RESIZE, x, resize runs", "VERIFY_RESIZE, x, resize ok", "VERIFY_RESIZE, x, resize ok, confirm-resize runs",
			"VERIFY_RESIZE, x, resize ok, confirm-resize no room", "VERIFY_RESIZE, x, resize ok, confirm-resize no room, confirm-resize runs",
			"ACTIVE, x, resize ok, confirm-resize no room, confirm-resize ok",
		}},
		"not wanted": {false, []func(*server.Server) *server.Server{to(large), ends, ends, revert, ends, ends}, []string{
			"RESIZE, s, resize runs", "RESIZE, l, resize runs", "VERIFY_RESIZE, l, resize ok", "REVERT_RESIZE, l, resize ok, revert-resize runs",
			"REVERT_RESIZE, s, resize ok, revert-resize runs", "ACTIVE, s, resize ok, revert-resize ok",
		}},
		"of one that does not run": {true, []func(*server.Server) *server.Server{to(large), ends, revert, ends, to(large), ends, confirm}, []string{
			"RESIZE, s, resize runs", "VERIFY_RESIZE, l, resize ok", "REVERT_RESIZE, l, resize ok, revert-resize runs", "SHUTOFF, s, resize ok, revert-resize ok",
			"RESIZE, s, resize ok, revert-resize ok, resize runs", "VERIFY_RESIZE, l, resize ok, revert-resize ok, resize ok", "SHUTOFF, l, resize ok, revert-resize ok, resize ok, confirm-resize ok",
		}},
		"no room": {false, []func(*server.Server) *server.Server{to(large), fails, to(large)}, []string{
			"RESIZE, s, resize runs", "ACTIVE, s, resize no room", "RESIZE, s, resize no room, resize runs",
		}},
		"it does not come up again": {false, []func(*server.Server) *server.Server{to(large), ends, fails, revert, fails, revert, ends, ends}, []string{
			"RESIZE, s, resize runs", "RESIZE, l, resize runs", "VERIFY_RESIZE, l, resize no room", "REVERT_RESIZE, l, resize no room, revert-resize runs",
			"VERIFY_RESIZE, l, resize no room, revert-resize no room", "REVERT_RESIZE, l, resize no room, revert-resize no room, revert-resize runs",
			"REVERT_RESIZE, s, resize no room, revert-resize no room, revert-resize runs", "ACTIVE, s, resize no room, revert-resize no room, revert-resize ok",
		}},
	} {
		if got := steps(t, standing(small, x.stopped), x.steps...); !slices.Equal(got, x.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(x.want, "\n"))
		}
	}
}

// TestARefusedResize: what a cluster does not take leaves the size, and nothing begins anew behind it; a deletion that waits does.
func TestARefusedResize(t *testing.T) {
	s, err := standing(small, false).Resize(large, alice)
	if err != nil {
		t.Fatal(err)
	}
	s = begin(t, s, server.Delete, bob)
	s = s.Refused(s.Doing().Serial, "not here", 9)
	if len(s.Tasks) != 1 || s.Doing().Do != server.Delete || s.Flavor.ID != "s" || s.Before != nil || sizeTold(s) != "ACTIVE, s, resize not here, delete runs" {
		t.Errorf("it is %s", sizeTold(s))
	}
}

// TestALockWhileItRestarts: what becomes of the restart is told of the resize, though a lock was noted behind it.
func TestALockWhileItRestarts(t *testing.T) {
	s, err := standing(small, false).Resize(large, alice)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = end(s, true, "").Locked(server.Lock{Asked: alice}); err != nil {
		t.Fatal(err)
	}
	if got, want := sizeTold(s), "RESIZE, l, resize runs, lock ok"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
	if got, want := sizeTold(end(s, false, "it does not come up")), "VERIFY_RESIZE, l, resize it does not come up, lock ok"; got != want {
		t.Errorf("it is %s, want %s", got, want)
	}
}

// TestAResizeThatADeletionEnds: what is kept of a server that went amid a resize has the resize, and no act that users do not know.
func TestAResizeThatADeletionEnds(t *testing.T) {
	s, err := standing(small, false).Resize(large, alice)
	if err != nil {
		t.Fatal(err)
	}
	s = begin(t, end(s, true, ""), server.Delete, bob)
	var done []string
	for _, a := range s.Past(server.Sight{Sight: servertag.Sight{Now: 200}}).Done {
		if done = append(done, string(a.Do)); a.Flavor != nil {
			t.Errorf("of what was done a size is kept: %+v", a)
		}
	}
	if got := strings.Join(done, " "); got != "resize delete" {
		t.Errorf("what was done is %s", got)
	}
}

// TestSizesThatAreRefused: what nobody can get, or not now.
func TestSizesThatAreRefused(t *testing.T) {
	none := server.Flavor{ID: "d", RAM: 128, VCPUs: 1}
	resized := standing(large, false)
	resized.Before = &small
	busy := begin(t, standing(small, false), server.Stop, bob)
	gone := standing(small, false)
	gone.Deleted = 5
	for what, x := range map[string]struct {
		s    *server.Server
		do   func(*server.Server) (*server.Server, error)
		code fault.Code
		says string
	}{
		"the size that it has":       {standing(small, false), to(small), fault.Invalid, "must change flavor"},
		"a smaller disk":             {standing(larger, false), to(large), fault.Invalid, "Unable to resize disk down: the server has 9 GiB"},
		"a disk where there is none": {standing(none, false), to(large), fault.Invalid, "the server has none"},
		"while something is done":    {busy, to(large), fault.WrongState, "while it is being changed: stop by bob"},
		"one that is gone":           {gone, to(large), fault.WrongState, "vm_state deleted"},
		"twice":                      {resized, to(larger), fault.WrongState, "vm_state resized"},
		"a stop in between":          {resized, func(s *server.Server) (*server.Server, error) { return s.Begin(server.Stop, bob) }, fault.WrongState, "vm_state resized"},
		"nothing to confirm":         {standing(small, false), func(s *server.Server) (*server.Server, error) { return s.ConfirmResize(bob) }, fault.WrongState, "vm_state active"},
		"nothing to revert":          {standing(small, true), func(s *server.Server) (*server.Server, error) { return s.RevertResize(bob) }, fault.WrongState, "vm_state shutoff"},
	} {
		if _, err := x.do(x.s); !fault.Is(err, x.code) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := begin(t, resized, server.Delete, bob); s.Doing().Do != server.Delete {
		t.Error("what is resized is not deleted")
	}
}

func to(f server.Flavor) func(*server.Server) (*server.Server, error) {
	return func(s *server.Server) (*server.Server, error) { return s.Resize(f, bob) }
}

// TestWhatSizesTake: with two sizes a server takes the larger of each part, from when it is asked for until one of them is settled.
func TestWhatSizesTake(t *testing.T) {
	want := server.Amount{Instances: 1, Cores: 4, RAM: 2048}
	s, err := standing(small, true).Resize(large, alice)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s.Takes() != want {
			t.Errorf("%s takes %+v", sizeTold(s), s.Takes())
		}
		if s.Doing() != nil {
			s = end(s, true, "")
		}
	}
	if s, _ = s.ConfirmResize(alice); s.Takes() != (server.Amount{Instances: 1, Cores: 2, RAM: 2048}) {
		t.Errorf("then it takes %+v", s.Takes())
	}
	const none = -1
	has := []*server.Server{standing(small, true), standing(small, true)}
	for _, x := range []struct {
		limit server.Amount
		says  string
	}{
		{server.Amount{Instances: none, Cores: none, RAM: none}, ""}, {server.Amount{Instances: 1, Cores: 8, RAM: 512 + 2048}, ""},
		{server.Amount{Instances: 1, Cores: 1, RAM: 2559}, "Quota exceeded for ram: Requested 1536, but already used 1024 of 2559 ram"},
	} {
		if err := x.limit.Grow(slices.Values(has), has[0], large); (err == nil) != (x.says == "") || err != nil && (!fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("with %+v: %v", x.limit, err)
		}
	}
}

// TestSizesAreStored: who leads next has both.
func TestSizesAreStored(t *testing.T) {
	s, err := standing(small, false).Resize(larger, alice)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := server.Decode(text)
		if err != nil || sizeTold(again) != sizeTold(s) || fmt.Sprint(again.Before) != fmt.Sprint(s.Before) || fmt.Sprint(again.Takes()) != fmt.Sprint(s.Takes()) {
			t.Errorf("%s is read as %s (%v)", sizeTold(s), sizeTold(again), err)
		}
		if s = again; s.Doing() != nil {
			s = end(s, true, "")
		}
	}
}
