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
	dir := t.TempDir()
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
