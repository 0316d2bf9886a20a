package tinyguest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// kernel is the version of the kernel that Debian has in these tests.
const kernel = "6.1.0-1-cloud-amd64"

// debian stands in for a Debian machine: its programs are scripts that note that they were run.
type debianMachine struct {
	*testing.T
	bin, tree, log, cache string
}

func newDebian(t *testing.T) *debianMachine {
	t.Helper()
	d := &debianMachine{t, t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "cache")}
	t.Setenv("TINY_TREE", d.tree)
	t.Setenv("TINY_LOG", d.log)
	t.Setenv("PATH", d.bin+":"+os.Getenv("PATH"))
	d.program("apt-cache", "echo linux-image-cloud-amd64; echo '  Depends: linux-image-"+kernel+"'")
	d.program("apt-get", `shift 4
for p; do
	case $p in --print-uris) uris=y ;; *) all="$all $p" ;; esac
done
for p in $all; do
	if [ "$uris" ]; then [ -e "${p}_1%3a1_amd64.deb" ] || echo "'http://192.0.2.1/$p' ${p}_1%3a1_amd64.deb 5 SHA256:0"; else echo "$p" >"${p}_1%3a1_amd64.deb"; fi
done`)
	d.program("dpkg-deb", `cp -R "$TINY_TREE/." "$3"`)
	for _, name := range wanted {
		write(t, d.tree, "lib/modules/"+kernel+"/kernel/"+name+".ko", elfModule(t, "depends=\x00"))
	}
	write(t, d.tree, "lib/modules/"+kernel+"/modules.builtin", nil)
	write(t, d.tree, "boot/vmlinuz-"+kernel, []byte("kernel"))
	write(t, d.tree, "bin/busybox", []byte("busybox"))
	return d
}

// program puts a program in the path.
func (d *debianMachine) program(name, script string) {
	d.Helper()
	write(d.T, d.bin, name, []byte("#!/bin/sh\necho "+name+` "$@" >>"$TINY_LOG"`+"\n"+script+"\n"))
}

// ran is how many programs have run.
func (d *debianMachine) ran() int {
	d.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil && !os.IsNotExist(err) {
		d.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// built builds, which must succeed.
func (d *debianMachine) built() Guest {
	d.Helper()
	g, err := Build(d.Context(), Options{Dir: d.cache})
	if err != nil {
		d.Fatal(err)
	}
	return g
}

// names are what is in the cache.
func (d *debianMachine) names() string {
	d.Helper()
	all, err := os.ReadDir(d.cache)
	if err != nil && !os.IsNotExist(err) {
		d.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// content is that of a guest's files.
func (d *debianMachine) content(g Guest) string {
	d.Helper()
	var all strings.Builder
	for _, name := range []string{g.Kernel, g.Initrd, filepath.Join(filepath.Dir(g.Kernel), labelFile)} {
		text, err := os.ReadFile(name)
		if err != nil {
			d.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestAGuestIsKept(t *testing.T) {
	d := newDebian(t)
	g := d.built()
	if g.Version != kernel || !filepath.IsAbs(g.Kernel) || !filepath.IsAbs(g.Initrd) {
		t.Errorf("%+v", g)
	}
	before, err := os.Stat(g.Initrd)
	if err != nil {
		t.Fatal(err)
	}
	ran := d.ran()
	again, err := Build(t.Context(), Options{Dir: d.cache, Progress: func(text string) { t.Errorf("there is something to do: %s", text) }})
	after, errStat := os.Stat(g.Initrd)
	if err != nil || errStat != nil || again != g || d.ran() != ran || after.ModTime() != before.ModTime() {
		t.Errorf("the second time: %+v, %v, %v, %d programs", again, err, errStat, d.ran()-ran)
	}
	if d.names() != "tiny-"+recipe() {
		t.Errorf("there is %s", d.names())
	}
}

func TestADamagedGuestIsMadeAnew(t *testing.T) {
	d := newDebian(t)
	g := d.built()
	whole := d.content(g)
	written := filepath.Join(filepath.Dir(g.Kernel), labelFile)
	for _, name := range []string{g.Kernel, g.Initrd, written} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(bytes.ReplaceAll(text, []byte(recipe()), []byte("another")), ' ')
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if again := d.built(); again != g || d.content(again) != whole || d.names() != "tiny-"+recipe() {
			t.Errorf("after damage to %s: %+v, beside it %s", name, again, d.names())
		}
	}
}

func TestTheSamePackagesAreTheSameGuest(t *testing.T) {
	d := newDebian(t)
	first := d.content(d.built())
	d.cache = filepath.Join(t.TempDir(), "another")
	if second := d.content(d.built()); second != first {
		t.Error("the second guest is another")
	}
	d.cache = filepath.Join(t.TempDir(), "third")
	write(t, d.tree, "bin/busybox", []byte("another"))
	if third := d.content(d.built()); third == first {
		t.Error("other packages are the same guest")
	}
}

func TestSeveralBuildOnce(t *testing.T) {
	d := newDebian(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := Build(t.Context(), Options{Dir: d.cache}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	const programs = 5 // what depends, which files, fetching, and two to unpack
	if d.ran() != programs {
		t.Errorf("%d programs ran, want %d", d.ran(), programs)
	}
}

func TestPackagesAreKept(t *testing.T) {
	d := newDebian(t)
	packages := filepath.Join(t.TempDir(), "packages")
	for _, name := range []string{"first", "second"} {
		if _, err := Build(t.Context(), Options{Dir: filepath.Join(d.cache, name), Packages: packages}); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := filepath.Glob(packages + "/*.deb"); err != nil || len(kept) != 2 {
		t.Errorf("there are %q, %v", kept, err)
	}
}

// TestWhoIsInterruptedLeavesNothingHalfMade cancels, and kills, before each step.
func TestWhoIsInterruptedLeavesNothingHalfMade(t *testing.T) {
	for n := 1; ; n++ {
		d := newDebian(t)
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		g, err := Build(ctx, Options{Dir: d.cache, Progress: func(string) {
			if steps++; steps == n {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			if steps < 5 || g.Version != kernel {
				t.Errorf("after %d steps there is %+v", steps, g)
			}
			return
		}
		if !fault.Is(err, fault.Canceled) || d.names() != "" {
			t.Errorf("cancelled before step %d: %v, and it leaves %q", n, err, d.names())
		}
		if err := killedBefore(d, n); err == nil || strings.Contains(d.names(), "tiny-") {
			t.Errorf("killed before step %d: %v, and it leaves %q", n, err, d.names())
		}
		if d.built(); d.names() != "tiny-"+recipe() {
			t.Errorf("made after a kill before step %d, it leaves %q", n, d.names())
		}
	}
}

// killedBefore has a process of its own build, which kills itself.
func killedBefore(d *debianMachine, step int) error {
	cmd := exec.CommandContext(d.Context(), os.Args[0], "-test.run=^TestBuildsAndDies$")
	cmd.Env = append(os.Environ(), fmt.Sprint("TINY_DIES=", step), "TINY_CACHE="+d.cache)
	return cmd.Run()
}

// TestBuildsAndDies is what such a process does.
func TestBuildsAndDies(t *testing.T) {
	dies := os.Getenv("TINY_DIES")
	if dies == "" {
		return
	}
	steps := 0
	_, err := Build(t.Context(), Options{Dir: os.Getenv("TINY_CACHE"), Progress: func(string) {
		if steps++; strconv.Itoa(steps) == dies {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	t.Logf("it lives after %d steps: %v", steps, err) // which whoever waits for its end sees as a success
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(d *debianMachine)
		code  fault.Code
		want  []string
	}{
		"not Debian": {func(d *debianMachine) { d.Setenv("PATH", d.TempDir()) }, fault.Environment, []string{"apt-cache is not there", "on a Debian machine"}},
		"no lists": {
			func(d *debianMachine) { d.program("apt-cache", "echo 'E: No packages found' >&2; exit 100") },
			fault.Unavailable, []string{"linux-image-cloud-amd64 is not known", "E: No packages found", "apt-get update"},
		},
		"no kernel": {func(d *debianMachine) { d.program("apt-cache", "echo '  Depends: linux-image-generic'") }, fault.Unsupported, []string{"depends on no kernel"}},
		"no network": {
			func(d *debianMachine) { d.program("apt-get", "echo 'E: Failed to fetch' >&2; exit 100") },
			fault.Unavailable, []string{"linux-image-" + kernel + " and busybox-static cannot be fetched", "E: Failed to fetch", "apt-get update"},
		},
		"another apt": {func(d *debianMachine) { d.program("apt-get", "echo hello") }, fault.Unsupported, []string{"apt-get names 0 packages and not 2"}},
		"a damaged package": {
			func(d *debianMachine) { d.program("dpkg-deb", "echo 'unexpected end of file' >&2; exit 2") },
			fault.Unsupported, []string{"cannot be unpacked", "unexpected end of file", "_1%3a1_amd64.deb"},
		},
		"another layout": {
			func(d *debianMachine) {
				if err := os.RemoveAll(filepath.Join(d.tree, "boot")); err != nil {
					d.Fatal(err)
				}
			}, fault.Unsupported, []string{"no kernel for its modules", "Debian 12 and 13"},
		},
		"a module less": {
			func(d *debianMachine) {
				if err := os.Remove(filepath.Join(d.tree, "lib/modules", kernel, "kernel/evdev.ko")); err != nil {
					d.Fatal(err)
				}
			}, fault.Unsupported, []string{"no module evdev"},
		},
		"no directory": {func(d *debianMachine) { write(d.T, d.cache, "file", nil); d.cache += "/file" }, fault.Environment, []string{"cannot make the tiny guest in", "may be written"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDebian(t)
			tc.spoil(d)
			g, err := Build(t.Context(), Options{Dir: d.cache})
			if !fault.Is(err, tc.code) || g != (Guest{}) {
				t.Errorf("%+v, %s: %v", g, fault.CodeOf(err), err)
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if info, err := os.Stat(d.cache); err == nil && info.IsDir() && d.names() != "" {
				t.Errorf("it leaves %q", d.names())
			}
		})
	}
}

// TestDebian13 has everything below usr.
func TestDebian13(t *testing.T) {
	d := newDebian(t)
	if err := os.Mkdir(filepath.Join(d.tree, "usr"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lib", "bin"} {
		if err := os.Rename(filepath.Join(d.tree, name), filepath.Join(d.tree, "usr", name)); err != nil {
			t.Fatal(err)
		}
	}
	if g := d.built(); g.Version != kernel {
		t.Errorf("%+v", g)
	}
}

// TestCommandsOfASeed runs what the guest reads a cloud-config with.
func TestCommandsOfASeed(t *testing.T) {
	for text, want := range map[string]string{
		"#cloud-config\nruncmd:\n - echo a\n - echo b # c\n":                        "run echo a|run echo b # c",
		"#cloud-config\nruncmd:\n- echo a\n-   echo b\n":                            "run echo a|run echo b",
		"#cloud-config\r\nruncmd:\r\n - echo a\r\n":                                 "run echo a",
		"#cloud-config\nusers:\n - root\nruncmd:\n\n # c\n - a\npackages:\n - b\n":  "run a",
		"#cloud-config\nruncmd:\n - [a, b]\n - \"a\"\n - 'a'\n - {a: b}\n - last\n": `skip [a, b]|skip "a"|skip 'a'|skip {a: b}|run last`,
		"#cloud-config\nruncmd:\n - |\n   - a\n   b\n - c\n":                        "skip ||skip - a|skip b|run c",
		"#cloud-config\nruncmd:\n - - a\n   - b\n":                                  "skip - a|skip - b",
		"#cloud-config\n":            "",
		"":                           "",
		"#!/bin/sh\nruncmd:\n - a\n": "skip user-data: it is no cloud-config",
		"#cloud-config\nruncmd:\n - a\n# c\n - b\n": "run a|run b",
	} {
		cmd := exec.CommandContext(t.Context(), "awk", "-f", "root/lib/runcmd.awk")
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if got := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "|"); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
