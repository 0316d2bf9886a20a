package machines

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/testkit"
)

// TestAMachineFromAnImage has machines installed from images, a raw one at a path and a qcow2 at a URL, each with a seed, which the agent has kept to itself.
func TestAMachineFromAnImage(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("qemu-img")
	if err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	s := newSite(t, "--agents")
	dir := testkit.OpenDir(t)
	raw, packed, userData := filepath.Join(dir, "tiny.raw"), filepath.Join(dir, "tiny.qcow2"), filepath.Join(dir, "user-data")
	for path, text := range map[string][]byte{raw: kvm.TinyDisk(), userData: []byte("#cloud-config\npassword: correct-horse\n")} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), program, "convert", "-f", "raw", "-O", "qcow2", raw, packed).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	web := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(web.Close)

	s.drover("image", "add", "raw", raw)
	s.drover("image", "add", "packed", web.URL+"/tiny.qcow2")
	if text := s.drover("image", "list", "-o", "name,format,virtual_size", "--output", "json"); !strings.Contains(text, "qcow2") {
		t.Errorf("the images are %s", text)
	}
	install := []string{"--user-data", userData, "-B", "memory=64", "--name-check=no", "--ip-check=no"}
	for _, image := range []string{"raw", "packed"} {
		name := image + ".example"
		s.drover(append([]string{"instance", "add", name, "--image", image, "--disk", "0:size=3M"}, install...)...)
		s.await(name, "GUEST-UP", 0)
		if text := s.drover("instance", "log", name); !strings.Contains(text, "GUEST-UP") {
			t.Errorf("the log of %s is %q", name, text)
		}
		if text := s.drover("instance", "info", name, "--output", "json") + s.drover("job", "list", "--output", "json") + s.drover("query", "job", "-o", "ops,oplog", "--output", "json"); strings.Contains(text, "correct-horse") {
			t.Errorf("what is told of %s is %s", name, text)
		}
	}
	seeds, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "kvm", "*", "seed.iso"))
	if err != nil || len(seeds) != 2 {
		t.Fatalf("the seeds are %v, %v", seeds, err)
	}
	for _, path := range seeds {
		if cd, err := os.ReadFile(path); err != nil || !bytes.Contains(cd, []byte("correct-horse")) || !bytes.Contains(cd, []byte(".example\"")) {
			t.Errorf("%s has %d bytes, %v", path, len(cd), err)
		}
	}

	s.drover("instance", "stop", "--timeout", "0", "raw.example")
	s.drover("instance", "reinstall", "--yes", "raw.example", "--image", "packed")
	s.drover("instance", "start", "raw.example")
	s.await("raw.example", "GUEST-UP", 0)
	s.drover("image", "remove", "--yes", "raw", "packed")
	s.drover("instance", "remove", "--yes", "raw.example", "packed.example")
	if left, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "kvm", "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestAnImageFromAnotherNode has a machine be installed on a node that has no copy of its image, which is gone from where it came from.
func TestAnImageFromAnotherNode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	s := newSite(t, "--agents", "--nodes", "2")
	content := append(kvm.TinyDisk(), bytes.Repeat([]byte("more "), 300_000)...) // two pieces
	path := filepath.Join(testkit.OpenDir(t), "tiny.raw")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(s.drover("node", "list", "--no-headers", "-o", "name"))
	if len(names) != 2 {
		t.Fatalf("the nodes are %q", names)
	}
	s.drover("image", "add", "tiny", path, "--node", names[0])
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.drover("instance", "add", "web1.example", "--image", "tiny", "-n", names[1], "--disk", "0:size=3M", "-B", "memory=64", "--name-check=no", "--ip-check=no")
	s.await("web1.example", "GUEST-UP", 0)
	copies, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "images", "*"))
	if err != nil || len(copies) != 2 {
		t.Fatalf("the copies are %v, %v", copies, err)
	}
	for _, path := range copies {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s has %d bytes, %v", path, len(got), err)
		}
	}
}

// TestMachinesShareAnImage has two machines stand on one image, which stays for as long as they do, one of them exported while it runs and brought back, and grown.
func TestMachinesShareAnImage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	s := newSite(t, "--agents")
	path := filepath.Join(testkit.OpenDir(t), "tiny.raw")
	if err := os.WriteFile(path, append(kvm.TinyDisk(), bytes.Repeat([]byte("more "), 300_000)...), 0o644); err != nil {
		t.Fatal(err)
	}
	s.drover("image", "add", "tiny", path)
	for _, name := range []string{"a.example", "b.example"} {
		s.drover("instance", "add", name, "--image", "tiny", "--disk", "0:size=8M,format=qcow2", "-B", "memory=64", "--name-check=no", "--ip-check=no")
		s.await(name, "GUEST-UP", 0)
	}
	disks, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "disks", "*.qcow2"))
	if err != nil || len(disks) != 2 {
		t.Fatalf("the disks are %v, %v", disks, err)
	}
	for _, path := range disks {
		if info, err := os.Stat(path); err != nil || info.Size() > 1<<20 {
			t.Errorf("%s has %v, %v", path, info, err)
		}
	}
	if text := s.fails("image", "remove", "--yes", "tiny"); !strings.Contains(text, "stand on it: a.example on ") || !strings.Contains(text, "b.example on ") {
		t.Errorf("it is told %s", text)
	}
	s.drover("instance", "grow-disk", "a.example", "0", "8M")
	s.drover("backup", "export", "a.example", "-n", strings.Fields(s.drover("node", "list", "--no-headers", "-o", "name"))[0], "--shutdown=no")
	s.drover("instance", "remove", "--yes", "a.example", "b.example")
	s.drover("image", "remove", "--yes", "tiny")
	for _, format := range []string{"qcow2", "raw"} { // an export stands on nothing
		s.drover("backup", "import", "a.example", "--disk", "0:size=16M,format="+format, "--start", "--name-check=no", "--ip-check=no")
		s.await("a.example", "GUEST-UP", 0)
		s.drover("instance", "remove", "--yes", "--shutdown-timeout", "1", "a.example")
	}
	if left, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "disks", "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestAnImageOfAServer has images made of a server that runs and of the same when it is stopped, and a server of each, which starts as the first one does. Nothing of the copy of
// the disk is left on its node.
func TestAnImageOfAServer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("qemu-img"); err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	s := newSite(t, "--agents", "--compute", "127.0.0.1:0")
	disk := filepath.Join(testkit.OpenDir(t), "tiny.raw")
	if err := os.WriteFile(disk, kvm.TinyDisk(), 0o644); err != nil {
		t.Fatal(err)
	}
	s.drover("image", "add", "tiny", disk)
	s.drover("manage", "flavor", "add", "small", "--vcpus", "1", "--ram", "64", "--disk", "1")
	s.drover("server", "create", "web1", "--flavor", "small", "--image", "tiny", "--wait")
	s.await("snf-1", "GUEST-UP", 0)
	s.drover("server", "image", "web1", "of-running", "--wait")
	if text := s.drover("image", "list", "-o", "format,source", "--no-headers"); !strings.Contains(text, "qcow2 upload:") {
		t.Errorf("the images are %s", text)
	}
	s.drover("server", "stop", "web1", "--wait")
	s.drover("server", "image", "web1", "of-stopped", "--wait")
	s.drover("server", "delete", "web1", "--yes", "--wait")
	for i, image := range []string{"of-running", "of-stopped"} {
		s.drover("server", "create", image, "--flavor", "small", "--image", image, "--wait")
		s.await([]string{"snf-2", "snf-3"}[i], "GUEST-UP", 0)
	}
	if left, err := filepath.Glob(filepath.Join(s.nodesDir(), "*", "export", ".staged", "*")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
