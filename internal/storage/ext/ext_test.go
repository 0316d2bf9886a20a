package ext

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/storagetest"
	"github.com/drover-project/drover/internal/testkit"
)

// shelf is a provider whose volumes are files of a directory, with what its scripts were told.
type shelf struct {
	*testing.T
	dir, providers, volumes string
}

func newShelf(t *testing.T, dir string) *shelf {
	t.Helper()
	s := &shelf{T: t, dir: dir, providers: filepath.Join(dir, "providers"), volumes: filepath.Join(dir, "volumes")}
	if err := errors.Join(os.MkdirAll(s.volumes, 0o700), os.MkdirAll(filepath.Join(s.providers, "shelf"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"create":  `[ ! -e "$at" ] || { echo it is there; exit 1; }; truncate -s "${VOL_SIZE}M" "$at"`,
		"attach":  `[ -e "$at" ] && printf '%s\nkvm:shelf:%s\n' "$at" "$VOL_NAME"`,
		"detach":  ":",
		"remove":  `rm "$at"`,
		"grow":    `[ "$VOL_NEW_SIZE" -gt "$VOL_SIZE" ] && truncate -s "${VOL_NEW_SIZE}M" "$at"`,
		"setinfo": ":",
		"verify":  ":",
	} {
		s.script(name, text)
	}
	s.write("parameters.list", "tier\twhich disks it is on\n\nnas_ip  whose\n", 0o600)
	return s
}

// script is one of the provider's, which tells what it was told.
func (s *shelf) script(name, text string) {
	s.Helper()
	s.write(name, "#!/bin/sh\nenv | grep -E '^(VOL|EXTP|HOME|USER|SECRET)' | sort | tr '\\n' ' ' | sed 's/^/"+name+" /; s/ $/\\n/' >>"+s.dir+"/log\nat="+s.volumes+"/$VOL_NAME\n"+text+"\n", 0o700)
}

func (s *shelf) write(name, text string, mode os.FileMode) {
	s.Helper()
	path := filepath.Join(s.providers, "shelf", name)
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte(text), mode)); err != nil {
		s.Fatal(err)
	}
}

// told is what the scripts were told since it was asked for last.
func (s *shelf) told() string {
	s.Helper()
	text, err := os.ReadFile(s.dir + "/log")
	if err == nil {
		err = os.Remove(s.dir + "/log")
	}
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return string(text)
}

func (s *shelf) open() *Driver {
	s.Helper()
	d, err := Open(filepath.Join(s.dir, "ext"), s.providers)
	if err != nil {
		s.Fatal(err)
	}
	d.files = true
	return d
}

// has tells of volumes that are not those that there should be.
func (s *shelf) has(want ...string) {
	s.Helper()
	entries, err := os.ReadDir(s.volumes)
	if err != nil {
		s.Fatal(err)
	}
	got := []string{}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		s.Errorf("the provider has %q, want %q", got, want)
	}
}

func disk(id string, size int) storage.Disk {
	return storage.Disk{ID: id, Size: size, Provider: "shelf", Name: id + ".ext.disk0", Owner: "web1.example.com"}
}

// provided says of each disk who provides it.
type provided struct{ *Driver }

func (p provided) Ensure(ctx context.Context, of storage.Disk) (made, grown bool, err error) {
	return p.Driver.Ensure(ctx, disk(of.ID, of.Size))
}

func TestConformanceOfStorage(t *testing.T) {
	storagetest.Run(t, func(t *testing.T, dir string) storage.Driver {
		return provided{newShelf(t, dir).open()}
	})
}

// TestEnvironment: what scripts are told is what the interface documents, and nothing of the agent's.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET", "of the agent")
	s := newShelf(t, t.TempDir())
	s.script("open", ":")
	s.script("close", ":")
	d := s.open()
	one := disk("u1", 4)
	one.Label, one.Params = "data", map[string]string{"tier": "gold; rm -rf /", "nas_ip": "192.0.2.1"}
	if made, _, err := d.Ensure(t.Context(), one); err != nil || !made {
		t.Fatal(made, err)
	}
	one.Size = 8
	if _, grown, err := d.Ensure(t.Context(), one); err != nil || !grown {
		t.Fatal(grown, err)
	}
	if removed, err := d.Remove(t.Context(), "u1"); err != nil || !removed {
		t.Fatal(removed, err)
	}
	const params, volume = "EXTP_NAS_IP=192.0.2.1 EXTP_TIER=gold; rm -rf / VOL_CNAME=data ", "VOL_UUID=u1"
	want := ""
	for _, line := range [][2]string{
		{"attach", "VOL_NAME=u1.ext.disk0 "}, {"create", "VOL_NAME=u1.ext.disk0 VOL_SIZE=4 "}, {"attach", "VOL_NAME=u1.ext.disk0 "}, {"open", "VOL_NAME=u1.ext.disk0 VOL_OPEN_EXCLUSIVE=True "},
		{"setinfo", "VOL_METADATA=originstname+web1.example.com VOL_NAME=u1.ext.disk0 "},
		{"grow", "VOL_NAME=u1.ext.disk0 VOL_NEW_SIZE=8 VOL_SIZE=4 "}, {"attach", "VOL_NAME=u1.ext.disk0 "}, {"open", "VOL_NAME=u1.ext.disk0 VOL_OPEN_EXCLUSIVE=True "},
		{"close", "VOL_NAME=u1.ext.disk0 "}, {"detach", "VOL_NAME=u1.ext.disk0 "}, {"remove", "VOL_NAME=u1.ext.disk0 "},
	} {
		want += line[0] + " " + params + line[1] + volume + "\n"
	}
	if got := s.told(); got != want {
		t.Errorf("they were told\n%swant\n%s", got, want)
	}
	s.has()
}

// half is a driver that comes behind one which was killed while it made or removed a volume, of which there is something or nothing.
func (s *shelf) half(doing string, there bool) *Driver {
	s.Helper()
	d := s.open()
	err := d.write(&record{Disk: disk("one", 4), Doing: doing})
	if err == nil && there {
		err = os.WriteFile(filepath.Join(s.volumes, "one.ext.disk0"), []byte("half"), 0o600)
	}
	if err == nil && !there && doing == removing { // the script ended well behind its agent
		err = os.WriteFile(d.outcome("one"), []byte("0\n"), 0o600)
	}
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// TestWhatAKillLeaves: whoever was killed while a volume was made, or removed, has left what the next call clears.
func TestWhatAKillLeaves(t *testing.T) {
	for _, doing := range []string{making, removing} {
		for _, there := range []bool{false, true} {
			s := newShelf(t, t.TempDir())
			half := func() *Driver { return s.half(doing, there) }
			d := half()
			if _, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
				t.Errorf("what was left by %s: %v", doing, err)
			}
			if list, err := d.Volumes(t.Context()); err != nil || len(list) > 0 {
				t.Errorf("what was left by %s: %v, %v", doing, list, err)
			}
			if removed, err := d.Remove(t.Context(), "one"); err != nil || !removed {
				t.Errorf("what was left by %s is removed: %v, %v", doing, removed, err)
			}
			s.has()
			d = half()
			if made, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil || !made {
				t.Errorf("behind %s: %v, %v", doing, made, err)
			}
			if v, err := d.Volume(t.Context(), "one"); err != nil || v.Size != 4 {
				t.Errorf("behind %s: %+v, %v", doing, v, err)
			}
			if info, err := os.Stat(filepath.Join(s.volumes, "one.ext.disk0")); err != nil || info.Size() != 4<<20 {
				t.Errorf("behind %s: %v, %v", doing, info, err)
			}
		}
	}
}

// TestARemovalThatWasEnded is not taken for one that was done, while the provider cannot be reached.
func TestARemovalThatWasEnded(t *testing.T) {
	s := newShelf(t, t.TempDir())
	d := s.open()
	if _, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil {
		t.Fatal(err)
	}
	if err := d.write(&record{Disk: disk("one", 4), Doing: removing}); err != nil {
		t.Fatal(err)
	}
	d = s.open()
	s.script("attach", "echo the shelf is away; exit 1")
	s.script("remove", "echo the shelf is away; exit 1")
	for range 2 {
		removed, err := d.Remove(t.Context(), "one")
		if !fault.Is(err, fault.Failed) || removed || !strings.Contains(err.Error(), "the volume one.ext.disk0, whose removal was ended in its midst, so it may be there still") {
			t.Errorf("%v, %v", removed, err)
		}
		if _, _, err := d.Ensure(t.Context(), disk("one", 4)); err == nil {
			t.Error("it is made anew")
		}
	}
	s.has("one.ext.disk0")
	s.script("remove", `rm "$at"; echo done`)
	if removed, err := d.Remove(t.Context(), "one"); err != nil || !removed {
		t.Errorf("it can be attached no more, but removed: %v, %v", removed, err)
	}
	s.has()
	if removed, err := d.Remove(t.Context(), "one"); err != nil || removed {
		t.Errorf("it is forgotten: %v, %v", removed, err)
	}
}

// TestAVolumeThatIsAnotherNodes is neither made anew nor removed by a node that knows nothing of it.
func TestAVolumeThatIsAnotherNodes(t *testing.T) {
	s := newShelf(t, t.TempDir())
	if _, _, err := s.open().Ensure(t.Context(), disk("one", 4)); err != nil {
		t.Fatal(err)
	}
	s.told()
	other, err := Open(filepath.Join(s.dir, "other"), s.providers)
	if err != nil {
		t.Fatal(err)
	}
	other.files = true
	for range 2 {
		if made, _, err := other.Ensure(t.Context(), disk("one", 8)); made || !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "has a volume one.ext.disk0 already") {
			t.Errorf("%v, %v", made, err)
		}
	}
	if got := s.told(); strings.Contains(got, "create") || strings.Contains(got, "remove") || strings.Count(got, "attach") != strings.Count(got, "detach") {
		t.Errorf("the scripts were told\n%s", got)
	}
	s.has("one.ext.disk0")
	if removed, err := other.Remove(t.Context(), "one"); removed || err != nil {
		t.Errorf("what it knows nothing of: %v, %v", removed, err)
	}
	s.has("one.ext.disk0")
}

// givenUp has something done that a script ends never, and gives it up when the script has written to the file that it is told.
func (s *shelf) givenUp(name, script string, do func(ctx context.Context) error) {
	s.Helper()
	begun := filepath.Join(s.dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		s.Fatal(err)
	}
	s.script(name, fmt.Sprintf(script, begun))
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- do(ctx) }()
	if _, err := os.ReadFile(begun); err != nil {
		s.Fatal(err)
	}
	cancel()
	if err := <-failed; !fault.Is(err, fault.Canceled) {
		s.Error(err)
	}
}

// TestARemovalThatWasGivenUp by who asked for it, behind the end of the volume, does not count as one that did nothing: who looks finds no volume, and the
// next removal ends it.
func TestARemovalThatWasGivenUp(t *testing.T) {
	s := newShelf(t, t.TempDir())
	s.script("detach", `[ -e "$at" ]`)
	d := s.open()
	if _, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil {
		t.Fatal(err)
	}
	s.givenUp("remove", `rm "$at"; echo begun >%s; sleep 3600`, func(ctx context.Context) error {
		_, err := d.Remove(ctx, "one")
		return err
	})
	if _, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it was removed: %v", err)
	}
	if list, err := d.Volumes(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("it was removed: %v, %v", list, err)
	}
	s.script("remove", `rm -f "$at"`)
	if removed, err := d.Remove(t.Context(), "one"); err != nil || !removed {
		t.Errorf("again: %t, %v", removed, err)
	}
}

// TestARemovalThatCannotBeForgotten is one all the same: the next call forgets it.
func TestARemovalThatCannotBeForgotten(t *testing.T) {
	s := newShelf(t, t.TempDir())
	s.script("detach", `[ -e "$at" ]`)
	d := s.open()
	if _, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil {
		t.Fatal(err)
	}
	away, record := filepath.Join(s.dir, "record"), d.path("one")
	s.script("remove", `rm "$at"; mv `+record+" "+away+"; mkdir -p "+record+"/in-the-way")
	if removed, err := d.Remove(t.Context(), "one"); removed || !fault.Is(err, fault.Environment) {
		t.Errorf("%t, %v", removed, err)
	}
	if err := errors.Join(os.RemoveAll(record), os.Rename(away, record)); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Remove(t.Context(), "one"); !removed || err != nil {
		t.Errorf("again: %t, %v", removed, err)
	}
}

// TestScriptsThatFail leave what was there, and their words are told.
func TestScriptsThatFail(t *testing.T) {
	for script, text := range map[string]string{
		"create": `truncate -s 1M "$at"; echo "no room left" >&2; exit 3`, "setinfo": `echo "no room left"; exit 3`,
		"attach": `if [ -e "$at" ]; then echo "$at.gone"; else echo "no room left"; exit 3; fi`,
	} {
		s := newShelf(t, t.TempDir())
		d := s.open()
		s.script(script, text)
		_, _, err := d.Ensure(t.Context(), disk("one", 4))
		if err == nil || script != "attach" && (!fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "no room left") || !strings.Contains(err.Error(), "script "+script+" of the storage provider shelf")) {
			t.Errorf("%s: %v", script, err)
		}
		s.has()
		if removed, err := d.Remove(t.Context(), "one"); err != nil || removed {
			t.Errorf("%s: it is known of: %v, %v", script, removed, err)
		}
	}
	s := newShelf(t, t.TempDir())
	d := s.open()
	if _, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil {
		t.Fatal(err)
	}
	s.script("grow", "exit 1")
	s.script("remove", "exit 1")
	if _, grown, err := d.Ensure(t.Context(), disk("one", 8)); err == nil || grown {
		t.Errorf("grown: %v, %v", grown, err)
	}
	if removed, err := d.Remove(t.Context(), "one"); err == nil || removed {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if v, err := d.Volume(t.Context(), "one"); err != nil || v.Size != 4 {
		t.Errorf("what could not be changed: %+v, %v", v, err)
	}
}

func TestWhatAProviderIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *shelf, one *storage.Disk)
		code   fault.Code
		want   string
	}{
		"no provider":             {func(_ *shelf, one *storage.Disk) { one.Provider = "none" }, fault.Environment, "no script create"},
		"a way elsewhere":         {func(_ *shelf, one *storage.Disk) { one.Provider = "../shelf" }, fault.Invalid, "cannot be the name"},
		"a script less":           {func(s *shelf, _ *storage.Disk) { s.write("grow", "", 0o600) }, fault.Environment, "no script grow"},
		"a parameter of nobody's": {func(_ *shelf, one *storage.Disk) { one.Params = map[string]string{"teir": "gold"} }, fault.Invalid, `no parameter "teir"`},
		"a variable of its own":   {func(_ *shelf, one *storage.Disk) { one.Params = map[string]string{"tier=x\nPATH": "."} }, fault.Invalid, "no parameter"},
		"no name":                 {func(_ *shelf, one *storage.Disk) { one.Name = "" }, fault.Invalid, "no name"},
		"a list that is none":     {func(s *shelf, _ *storage.Disk) { s.write("parameters.list", strings.Repeat("x", maxList+1), 0o600) }, fault.Environment, "too long"},
		"no device":               {func(s *shelf, _ *storage.Disk) { s.script("attach", "echo") }, fault.Unsupported, "no block device"},
		"a character device":      {func(s *shelf, _ *storage.Disk) { s.script("attach", "echo /dev/zero") }, fault.Environment, "no block device"},
		"a path from nowhere":     {func(s *shelf, _ *storage.Disk) { s.script("attach", "echo disk") }, fault.Environment, "no whole path"},
	} {
		s := newShelf(t, t.TempDir())
		one := disk("one", 4)
		c.change(s, &one)
		d := s.open()
		if _, _, err := d.Ensure(t.Context(), one); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %s", name, err, c.code, c.want)
		}
		if r, err := d.read("one"); r != nil || err != nil {
			t.Errorf("%s: it is known of: %+v, %v", name, r, err)
		}
	}
	if _, err := Open(t.TempDir(), "/nonexistent/providers"); !fault.Is(err, fault.Environment) {
		t.Error(err)
	}
}

// TestAFileIsNoDevice: outside of tests volumes are what the interface says.
func TestAFileIsNoDevice(t *testing.T) {
	s := newShelf(t, t.TempDir())
	d := s.open()
	d.files = false
	if _, _, err := d.Ensure(t.Context(), disk("one", 4)); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "no block device") {
		t.Error(err)
	}
}

// TestACancelEndsAScript, with what it has started.
func TestACancelEndsAScript(t *testing.T) {
	s := newShelf(t, t.TempDir())
	d := s.open()
	s.givenUp("create", "sleep 3600 & echo begun >%s; wait", func(ctx context.Context) error {
		_, _, err := d.Ensure(ctx, disk("one", 4))
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	if held, err := d.lock(ctx, "one"); err != nil { // which what it had started would hold
		t.Error(err)
	} else if err := held.Close(); err != nil {
		t.Error(err)
	}
}

// TestAScriptThatOutlivesItsAgent is waited for before another one is begun for its volume.
func TestAScriptThatOutlivesItsAgent(t *testing.T) {
	s := newShelf(t, t.TempDir())
	d := s.open()
	if err := d.write(&record{Disk: disk("one", 4), Doing: making}); err != nil {
		t.Fatal(err)
	}
	left, err := d.lock(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := d.Ensure(ctx, disk("one", 4)); !fault.Is(err, fault.Canceled) || s.told() != "" {
		t.Errorf("it was not waited for: %v", err)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	if made, _, err := d.Ensure(t.Context(), disk("one", 4)); err != nil || !made {
		t.Error(made, err)
	}
}

// TestProviders: each directory is told of: those that can be used with their parameters, others with what is wrong.
func TestProviders(t *testing.T) {
	s := newShelf(t, t.TempDir())
	d := s.open()
	broken := filepath.Join(s.providers, "broken")
	if err := errors.Join(os.Mkdir(broken, 0o700), os.Mkdir(filepath.Join(s.providers, ".hidden"), 0o700), os.Mkdir(filepath.Join(s.providers, "no way"), 0o700),
		os.WriteFile(filepath.Join(s.providers, "README"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := d.Providers(t.Context())
	want := []storage.Provider{
		{Name: "broken", Path: broken, Problem: "the storage provider broken has no script create on this node"},
		{Name: "no way", Path: filepath.Join(s.providers, "no way"), Problem: `"no way" cannot be the name of a storage provider`},
		{Name: "shelf", Path: filepath.Join(s.providers, "shelf"), Parameters: [][2]string{{"tier", "which disks it is on"}, {"nas_ip", "whose"}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if err := os.RemoveAll(s.providers); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Providers(t.Context()); !fault.Is(err, fault.Environment) {
		t.Errorf("a directory that is gone: %v", err)
	}
}
