package compute

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/testkit"
)

// The tests of Tempest that are run, by the names of modules and packages below
// tempest.api: those of which most pass each time, and all with make tempest.
var (
	tempestAlways = []string{
		"compute.flavors", "compute.limits", "compute.images.test_list_images", "compute.test_versions", "compute.servers.test_availability_zone",
		"compute.servers.test_delete_server", "compute.servers.test_disk_config", "compute.servers.test_instance_actions", "compute.servers.test_instance_actions_negative",
		"compute.servers.test_list_server_filters", "compute.servers.test_list_servers_negative", "compute.servers.test_multiple_create",
		"compute.servers.test_multiple_create_negative", "compute.servers.test_server_addresses_negative", "compute.servers.test_server_metadata",
		"compute.servers.test_server_metadata_negative", "compute.servers.test_server_tags", "compute.servers.test_servers", "compute.servers.test_servers_negative",
		"compute.test_quotas", "compute.admin.test_quotas", "compute.admin.test_quotas_negative", "identity.v3", "identity.admin.v3.test_list_projects", "identity.admin.v3.test_projects", "identity.admin.v3.test_projects_negative",
		"identity.admin.v3.test_tokens", "identity.admin.v3.test_users", "identity.admin.v3.test_users_negative", "image.v2.test_versions",
	}
	// tempestOnMachines are those about what is on disks.
	tempestOnMachines = []string{"compute.images", "compute.servers.test_servers", "compute.servers.test_servers_microversions"}
	tempestAll        = []string{"compute", "identity.v3", "identity.admin.v3", "image.v2"}
)

// tempestConfig says what there is: tests of what there is not are skipped by
// Tempest itself.
var tempestConfig = template.Must(template.New("tempest.conf").Parse(`
[DEFAULT]
log_file = {{.Dir}}/tempest.log
[oslo_concurrency]
lock_path = {{.Dir}}
[auth]
admin_username = {{.User}}
admin_password = {{.Password}}
admin_project_name = {{.Project}}
admin_domain_name = Default
create_isolated_networks = false
[identity]
uri_v3 = {{.Identity}}
user_unique_last_password_count = 0
user_lockout_failure_attempts = 0
[identity-feature-enabled]
api_v2 = false
api_v2_admin = false
security_compliance = true
[compute]
image_ref = {{.Image}}
image_ref_alt = {{.Image}}
flavor_ref = small
flavor_ref_alt = larger
max_microversion = 2.96
[compute-feature-enabled]
resize = true
# So Tempest calls metadata that can be changed.
xenapi_apis = true
{{range .Off}}{{.}} = false
{{end}}
[image]
container_formats = bare
disk_formats = raw
[validation]
run_validation = false
[service_available]
neutron = false
cinder = false
swift = false
`))

var tempestOff = []string{"attach_encrypted_volume", "cold_migration", "console_output", "enable_instance_password", "interface_attach", "live_migration",
	"pause", "personality", "rescue", "shelve", "suspend", "swap_volume", "vnc_console"}

// verdict is how a test of Tempest ends, or is to end: "pass", "fail" or "skip", and
// why.
type verdict struct{ Outcome, Text string }

// TestTempest runs tests of Tempest, unmodified. Each passes, or is named in
// testdata/tempest.txt with the reason why it does not; one that is named there and
// passes fails this test, too.
func TestTempest(t *testing.T) {
	names := tempestAlways
	if os.Getenv("DROVER_TEMPEST") != "" {
		names = tempestAll
	}
	const noop = "5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01"
	tryTempest(t, names, readTempestList(t, "testdata/tempest.txt"), append(tempestOff, "snapshot"), func(*testing.T, *tempestCloud) string { return noop })
}

// TestTempestOnMachines runs, with make tempest, those of servers that are machines: of images that are made of them, for one, which pretended ones have no content for.
func TestTempestOnMachines(t *testing.T) {
	if os.Getenv("DROVER_TEMPEST") == "" {
		t.Skip("make tempest runs it")
	}
	disk := filepath.Join(testkit.OpenDir(t), "tiny.raw")
	if err := os.WriteFile(disk, kvm.TinyDisk(), 0o644); err != nil {
		t.Fatal(err)
	}
	want := readTempestList(t, "testdata/tempest.txt")
	maps.Copy(want, readTempestList(t, "testdata/tempest-machines.txt"))
	tryTempest(t, tempestOnMachines, want, tempestOff, func(t *testing.T, c *tempestCloud) string {
		c.run(t, "image", "add", "tiny", disk)
		return strings.TrimSpace(c.run(t, "image", "list", "--no-headers", "-o", "uuid"))
	}, "--hypervisor", "kvm", "--accelerator", "tcg", "--nodes", "1", "--demo=false", "--mond", "")
}

// tempestCloud is what Tempest is run on.
type tempestCloud struct{ bin, ready string }

// run runs a command of the operator's.
func (c *tempestCloud) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.bin, args...)
	cmd.Env = append(os.Environ(), "DROVER_READY_FILE="+c.ready)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, &complaints)
	}
	return string(said)
}

// tryTempest runs the tests of these names on a cloud that has an image, without those of some features, and compares how they end with how they are to end.
func tryTempest(t *testing.T, names []string, want map[string]verdict, off []string, image func(*testing.T, *tempestCloud) string, args ...string) {
	t.Helper()
	cache := filepath.Join(testkit.Root(t), ".cache/tempest")
	if _, err := os.Stat(filepath.Join(cache, "complete")); err != nil { // see .ci/unpack
		testkit.Missingf(t, "Tempest is not here; make tempest fetches it")
	}
	data, dir := filepath.Join(t.TempDir(), "data"), t.TempDir()
	c := tempestCloud{testkit.Build(t), filepath.Join(data, "ready.json")}
	dev := testkit.StartDev(t, c.bin, data, args...)
	for name, vcpus := range map[string]string{"small": "1", "larger": "2"} { // with a disk, as what is rebuilt needs one
		c.run(t, "manage", "flavor", "add", name, "--id", name, "--ram", "128", "--vcpus", vcpus, "--disk", "1")
	}
	configureTempest(t, dir, readAccount(t, c.ready), image(t, &c), off)
	got := runTempest(t, cache, dir, names)
	counts := map[string]int{}
	for test, v := range got {
		counts[v.Outcome]++
		switch known := want[test]; {
		case v.Outcome == known.Outcome, v.Outcome == "pass" && known.Outcome == "":
		case known.Outcome == "":
			t.Errorf("%s: %s, and is not in the list: %s", test, v.Outcome, v.Text)
		default:
			t.Errorf("%s: %s, and is in the list as %s (%s): %s", test, v.Outcome, known.Outcome, known.Text, v.Text)
		}
	}
	for test, known := range want {
		if _, ran := got[test]; !ran && slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(test, name+".") }) {
			t.Errorf("%s: is in the list (%s), and did not run", test, known.Text)
		}
	}
	const least = 40
	if counts["pass"] < least {
		t.Errorf("only %d tests passed", counts["pass"])
	}
	t.Logf("%d tests of Tempest: %d pass, %d fail and %d are skipped as the list says", len(got), counts["pass"], counts["fail"], counts["skip"])
	if dev.Terminate(); dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}

// configureTempest writes Tempest's configuration.
func configureTempest(t *testing.T, dir string, a account, image string, off []string) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "tempest.conf"))
	if err != nil {
		t.Fatal(err)
	}
	err = tempestConfig.Execute(file, map[string]any{"Dir": dir, "User": a.User, "Password": a.Password, "Project": a.Project, "Identity": a.Identity, "Image": image, "Off": off})
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runTempest runs the tests with these names, and returns how each ended.
func runTempest(t *testing.T, cache, dir string, names []string) map[string]verdict {
	t.Helper()
	const most = 20 * time.Minute // it ends what hangs
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, testkit.Python, append([]string{"stock_tempest.py", dir}, names...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(cache, "root/usr/lib/python3/dist-packages"))
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	if err := cmd.Run(); err != nil {
		t.Fatalf("Tempest: %v", err)
	}
	ended := map[string]verdict{}
	for line := range strings.Lines(out.String()) {
		var v struct {
			verdict
			Test string
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("Tempest wrote %q", line)
		}
		if was, again := ended[v.Test]; again {
			t.Errorf("%s ended twice: %s, and %s: %s", v.Test, was.Outcome, v.Outcome, v.Text)
		}
		ended[v.Test] = v.verdict
	}
	return ended
}

// readTempestList reads which tests do not pass, and why, or pass where others of a list before do not. A line "fail: WHY", "skip: WHY" or
// "pass: WHY" is followed by lines "CLASS: TEST TEST ...".
func readTempestList(t *testing.T, path string) map[string]verdict {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	list, why, number := map[string]verdict{}, verdict{}, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		number++
		head, rest, ok := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "" || strings.HasPrefix(lines.Text(), "#"):
		case ok && (head == "fail" || head == "skip" || head == "pass"):
			why = verdict{head, rest}
		case ok && why.Text != "":
			for test := range strings.FieldsSeq(rest) {
				name := fmt.Sprintf("%s.%s", head, test)
				if _, again := list[name]; again {
					t.Errorf("%s:%d: %s is there twice", path, number, name)
				}
				list[name] = why
			}
		default:
			t.Fatalf("%s:%d: %q is no line of the list", path, number, lines.Text())
		}
	}
	return list
}
