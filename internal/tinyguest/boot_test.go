package tinyguest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/seed"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// TestDebiansGuestBoots makes a guest of what Debian has, and uses it as people do: on a machine q35, without a seed.
func TestDebiansGuestBoots(t *testing.T) {
	t.Parallel()
	g := tinyguesttest.Built(t, t.TempDir())
	m := tinyguesttest.Boot(t, g, "q35", "-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0")
	m.Await("tiny login: ")
	login(m)
	m.Type("echo hi-$((6*7))")
	m.Await("hi-42")
	m.Type("cat /proc/modules | wc -l; ls /dev/hwrng; free")
	m.Await("Mem:")
	m.Type("until ip address show dev eth0 | grep -q 'inet 10.0.2.'; do usleep 100000; done; echo leased-$((1+1))")
	m.Await("leased-2")
	m.Type("exit")
	m.Await("tiny login: ") // for whoever is next
	pressed := time.Now()
	m.Order("system_powerdown")
	if reason := m.Ended(); reason != "guest-shutdown" {
		t.Errorf("it ended by %s", reason)
	}
	t.Logf("it ended %v after the power button was pressed", time.Since(pressed).Round(time.Millisecond))
}

func login(m *tinyguesttest.Machine) {
	m.Type("root")
	m.Await("root has no password")
	m.Await("# ")
}

// TestASeedIsFollowed boots on a machine pc, with a seed as a CD, and types that it is to start anew: a second start would take as long as the first.
func TestASeedIsFollowed(t *testing.T) {
	t.Parallel()
	image, err := seed.Seed{
		UserData: []byte("#cloud-config\nruncmd:\n - echo ran-$((40+2))-$(hostname)\n - [not, done]\n - cat\n - echo last-$((1+1))\n"),
		MetaData: []byte("instance-id: i1\nlocal-hostname: \"web1\"\n"),
	}.ISO()
	if err != nil {
		t.Fatal(err)
	}
	cd := filepath.Join(t.TempDir(), "seed.iso")
	if err := os.WriteFile(cd, image, 0o600); err != nil {
		t.Fatal(err)
	}
	m := tinyguesttest.Boot(t, tinyguesttest.Guest(t), "pc", "-no-reboot",
		"-device", "virtio-scsi-pci", "-drive", "if=none,id=cd,media=cdrom,format=raw,readonly=on,file="+cd, "-device", "scsi-cd,drive=cd")
	if name := strings.TrimSpace(m.Await("\n")); name != "web1" {
		t.Errorf("its name is %q", name)
	}
	m.Await("ran-42-web1", "GUEST-SKIPS [not, done]", "last-2", "web1 login: ") // commands run while somebody may log in
	login(m)
	m.Type("reboot")
	if reason := m.Ended(); reason != "guest-reset" {
		t.Errorf("it ended by %s", reason)
	}
}
