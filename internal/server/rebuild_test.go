package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

var (
	system  = server.Image{ID: "i1", Name: "noop", OS: "noop"}
	picture = server.Image{ID: "i2", Name: "debian", OS: "image+debian", File: &server.ImageFile{Room: 2048, RAM: 256}}
	huge    = server.Image{ID: "i3", Name: "huge", OS: "image+huge", File: &server.ImageFile{Room: 1 << 20}}
)

// rebuilt is a server that is about to be rebuilt.
func rebuilt(t *testing.T, s *server.Server, w server.Renewal) *server.Server {
	t.Helper()
	next, err := s.Rebuild(w, alice)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// opcodesOf are those of what is being done, with the system, and what the machine is told.
func opcodesOf(t *testing.T, s *server.Server) string {
	t.Helper()
	ops, err := s.Opcodes(s.Doing())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, op := range ops {
		if op.Str("instance_name") != "snf-1" || op.Str("instance_uuid") != "u1" || len(op.Reason) == 0 {
			t.Errorf("%s is about %s, %s", op.ID, op.Str("instance_name"), op.Str("instance_uuid"))
		}
		text := strings.TrimPrefix(op.ID, "OP_INSTANCE_")
		for _, p := range []string{"os_type", "osparams", "osparams_private"} {
			if v, given := op.Params[p]; given {
				text += fmt.Sprint(" ", v)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestRebuilds: one job stops what runs, installs its disk and starts it again; what was stopped stays so. One that fails is told, and another try ends that, or a
// look at what is there.
func TestRebuilds(t *testing.T) {
	for what, x := range map[string]struct {
		from *server.Server
		ops  string
		end  []string
	}{
		"one that runs":     {standing(small, false), "SHUTDOWN, REINSTALL image+debian map[ssh_keys:default] map[user_data:default], STARTUP", []string{"REBUILD, s, rebuild runs", "ACTIVE, s, rebuild ok"}},
		"one that does not": {standing(small, true), "SHUTDOWN, REINSTALL image+debian map[ssh_keys:default] map[user_data:default]", []string{"REBUILD, s, rebuild runs", "SHUTOFF, s, rebuild ok"}},
	} {
		s := rebuilt(t, x.from, server.Renewal{Image: picture})
		if got := opcodesOf(t, s); got != x.ops || s.Image.OS != picture.OS || s.Image.File != nil {
			t.Errorf("%s is rebuilt by %s, as %+v", what, got, s.Image)
		}
		failed := end(s, false, "no such image")
		if got := []string{sizeTold(s), sizeTold(end(s, true, ""))}; !slices.Equal(got, x.end) {
			t.Errorf("%s: %q", what, got)
		}
		if got := sizeTold(failed); got != "ERROR, s, rebuild no such image" || failed.Trouble().Text != "no such image" {
			t.Errorf("%s that fails: %s", what, got)
		}
		refused := s.Refused(s.Doing().Serial, "taken by nobody", 9)
		if got := sizeTold(refused); got != "ERROR, s, rebuild taken by nobody" || refused.Trouble().Text != "taken by nobody" {
			t.Errorf("%s that is refused: %s", what, got)
		}
		for _, do := range []server.Do{server.Start, server.Stop, server.Reboot, server.Resize} {
			if _, err := failed.Begin(do, alice); !fault.Is(err, fault.WrongState) {
				t.Errorf("behind that %s: %v", do, err)
			}
		}
		again := rebuilt(t, failed, server.Renewal{Image: system})
		if got := opcodesOf(t, again); !strings.HasSuffix(got, "STARTUP") || again.Status() != server.Rebuilding {
			t.Errorf("%s, again: %s, %s", what, got, again.Status())
		}
		if whole := end(again, true, ""); whole.Trouble() != nil || whole.Status() == server.Failed {
			t.Errorf("%s, again: %s", what, sizeTold(whole))
		}
		reset, err := failed.Begin(server.RebootHard, alice)
		if err != nil || end(reset, false, "no").Status() != server.Failed || end(reset, true, "").Status() == server.Failed {
			t.Errorf("%s, reset: %v", what, err)
		}
		if gone, err := failed.Begin(server.Delete, alice); err != nil || !gone.Deleting() {
			t.Errorf("%s, deleted: %v", what, err)
		}
		text, err := again.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if decoded, err := server.Decode(text); err != nil || *decoded.Doing().Anew != *again.Doing().Anew || decoded.Broken.Text != again.Broken.Text {
			t.Errorf("read again it is %+v, %v", decoded, err)
		}
	}
}

// TestWhatIsNotRebuilt: nothing is lost where the new content would not fit, or not be what the user has.
func TestWhatIsNotRebuilt(t *testing.T) {
	diskless, busy, sized := standing(server.Flavor{ID: "d", RAM: 512}, false), standing(small, false), standing(small, false)
	busy.Tasks = []server.Task{{Serial: 1, Do: server.Rebuild}}
	sized.Before = &large
	building := &server.Server{ID: "s1", Flavor: small, Tasks: []server.Task{{Do: server.Create}}}
	failed := &server.Server{ID: "s1", Flavor: small, Fault: &server.Fault{Text: "no room"}}
	gone := standing(small, false)
	gone.Deleted = 5
	far, keyed := standing(small, false), standing(small, false)
	far.Backend, keyed.Guest = "far", &server.Guest{KeyName: "mine", PublicKey: "ssh-ed25519 A"}
	none := "run"
	for what, x := range map[string]struct {
		s    *server.Server
		w    server.Renewal
		code fault.Code
		says string
	}{
		"without a disk":           {diskless, server.Renewal{Image: system}, fault.Invalid, "no disk"},
		"while it is rebuilt":      {busy, server.Renewal{Image: system}, fault.WrongState, "being changed"},
		"while it has two sizes":   {sized, server.Renewal{Image: system}, fault.WrongState, "vm_state resized"},
		"while it is built":        {building, server.Renewal{Image: system}, fault.WrongState, "being changed"},
		"that was never built":     {failed, server.Renewal{Image: system}, fault.WrongState, "vm_state error"},
		"that is gone":             {gone, server.Renewal{Image: system}, fault.WrongState, "vm_state deleted"},
		"of a larger image":        {standing(small, false), server.Renewal{Image: huge}, fault.Invalid, "disk is too small"},
		"elsewhere":                {far, server.Renewal{Image: picture}, fault.Invalid, "zone"},
		"with a key, of a system":  {keyed, server.Renewal{Image: system}, fault.Invalid, "takes no key_name"},
		"with data, of a system":   {standing(small, false), server.Renewal{Image: system, UserData: &none}, fault.Invalid, "takes no user_data"},
		"with a new key, the same": {standing(small, false), server.Renewal{Image: system, Key: &server.Key{Name: "k", Public: "p"}}, fault.Invalid, "takes no key_name"},
	} {
		if _, err := x.s.Rebuild(x.w, alice); !fault.Is(err, x.code) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("one %s: %v", what, err)
		}
	}
}

// TestWhatARebuiltMachineIsTold: the key that the server has or gets, and the user data of before where nothing is said of them. Nothing of them is kept behind it.
func TestWhatARebuiltMachineIsTold(t *testing.T) {
	text := func(s string) *string { return &s }
	for what, x := range map[string]struct {
		had  *server.Guest
		w    server.Renewal
		ops  string
		then string
	}{
		"nothing said":      {&server.Guest{KeyName: "mine", PublicKey: "A"}, server.Renewal{Image: picture}, "map[ssh_keys:A]", "&{mine A }"},
		"another key":       {&server.Guest{KeyName: "mine", PublicKey: "A"}, server.Renewal{Image: picture, Key: &server.Key{Name: "his", Public: "B"}}, "map[ssh_keys:B]", "&{his B }"},
		"no key":            {&server.Guest{KeyName: "mine", PublicKey: "A"}, server.Renewal{Image: picture, Key: &server.Key{}}, "map[ssh_keys:default]", "&{  }"},
		"user data":         {nil, server.Renewal{Image: picture, UserData: text("#!x")}, "map[ssh_keys:default] map[user_data:#!x]", "&{  }"},
		"none any more":     {&server.Guest{}, server.Renewal{Image: picture, UserData: text("")}, "map[ssh_keys:default] map[user_data:default]", "&{  }"},
		"those of before":   {&server.Guest{}, server.Renewal{Image: picture}, "map[ssh_keys:default]", "&{  }"},
		"a system":          {&server.Guest{}, server.Renewal{Image: system}, "map[ssh_keys:default] map[user_data:default]", "<nil>"},
		"a system, no key":  {&server.Guest{KeyName: "mine", PublicKey: "A"}, server.Renewal{Image: system, Key: &server.Key{}}, "map[ssh_keys:default] map[user_data:default]", "<nil>"},
		"elsewhere nothing": {nil, server.Renewal{Image: system}, "", "<nil>"},
	} {
		s := standing(small, true)
		if s.Guest = x.had; x.ops == "" {
			s.Backend = "far"
		}
		s = rebuilt(t, s, x.w)
		if got, want := opcodesOf(t, s), strings.TrimSpace("SHUTDOWN, REINSTALL "+x.w.Image.OS+" "+x.ops); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
		for _, over := range []*server.Server{end(s, true, ""), end(s, false, "no"), s.Refused(s.Doing().Serial, "no", 9)} {
			if got := fmt.Sprint(over.Guest); got != x.then {
				t.Errorf("%s: it keeps %s, want %s", what, got, x.then)
			}
		}
	}
}

// TestHanded: it is written down, without touching what others hold, and taken back.
func TestHanded(t *testing.T) {
	s := rebuilt(t, standing(small, false), server.Renewal{Image: system, Life: "l"})
	h := s.Handed(s.Doing().Serial, 7, 3)
	if s.Doing().Anew.Handed != 0 || *h.Doing().Anew != (server.Anew{Run: true, Life: "l", Handed: 7, After: 3}) {
		t.Errorf("of %+v it becomes %+v", s.Doing().Anew, h.Doing().Anew)
	}
	if back := h.Handed(h.Doing().Serial, 0, 0); *back.Doing().Anew != *s.Doing().Anew {
		t.Errorf("and of that %+v", back.Doing().Anew)
	}
	if other := h.Handed(99, 0, 0); *other.Doing().Anew != *h.Doing().Anew {
		t.Errorf("of another task %+v", other.Doing().Anew)
	}
}
