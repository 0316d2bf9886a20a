package lvm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
	"github.com/drover-project/drover/internal/storage/storagetest"
	"github.com/drover-project/drover/internal/testkit"
)

// Where the kernel has no device mapper LVM's tools can do nothing, so the tests run this program in place of each: a volume group is a directory, whose volumes are files.
// TestTheToolsTakeWhatIsAsked holds what is asked of them to the real ones.
const asTool = "DROVER_TEST_LVM"

func TestMain(m *testing.M) {
	if dir := filepath.Dir(os.Args[0]); filepath.Base(dir) == asTool {
		if err := pretend(dir, filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, " ", err)
			os.Exit(5)
		}
		return
	}
	os.Exit(m.Run())
}

const (
	groupSize = 64 // MiB
	group     = "vg0"
)

// newTools makes a directory with tools that pretend.
func newTools(t *testing.T, dir string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("each call of a tool is this program, which is slow to begin under the race detector")
	}
	tools := filepath.Join(dir, asTool)
	if err := os.MkdirAll(tools, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vgs", "lvs", "lvcreate", "lvextend", "lvchange", "lvremove", "pvs", "pvchange", "vgreduce"} {
		if err := os.Symlink(self, filepath.Join(tools, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	return tools
}

// options are the arguments of a tool: what stands alone, and the values of options, of which some come several times.
func options(args []string) (alone []string, values map[string][]string) {
	values = map[string][]string{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--yes" || args[i] == "--quiet" || args[i] == "--nosuffix" || args[i] == "--removemissing" || args[i] == "--force":
		case strings.HasPrefix(args[i], "--"):
			values[args[i]] = append(values[args[i]], args[i+1])
			i++
		default:
			alone = append(alone, args[i])
		}
	}
	return alone, values
}

// device is what the pretended group lies on.
const device = "/dev/sda3"

// shownVolume is a volume with where it lies.
type shownVolume struct {
	volume

	Devices string `json:"devices"`
}

// pretendedDevices are those of the pretended group: one that is there, and how many are gone. Without --force none is given up where volumes lie on it.
type pretendedDevices struct {
	Attrs    string
	Gone     int
	Needed   bool // volumes lie on what is gone
	Stubborn bool // nothing helps
}

func (p *pretendedDevices) write(dir string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(dir+"/devices.json", text, 0o600)
}

// pretendDevices does what a tool does that is about devices.
func pretendDevices(dir, tool string, alone []string, values map[string][]string, args []string) error {
	p := &pretendedDevices{Attrs: "a--"}
	if text, err := os.ReadFile(dir + "/devices.json"); err == nil {
		if err := json.Unmarshal(text, p); err != nil {
			return err
		}
	}
	size := func(n int) string { return strconv.Itoa(n * mib) }
	switch {
	case tool == "pvs" && slices.Contains(values["--select"], `vg_name="`+group+`"`) && len(alone) == 0:
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": []any{map[string]any{"pv": []any{map[string]any{
			"pv_name": device, "pv_size": size(groupSize), "pv_used": size(3), "pv_free": size(groupSize - 3), "pv_attr": p.Attrs}}}}})
	case tool == "vgs" && slices.Equal(alone, []string{group}):
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": []any{map[string]any{"vg": []any{map[string]any{"vg_missing_pv_count": strconv.Itoa(p.Gone)}}}}})
	case tool == "pvchange" && slices.Equal(alone, []string{device}):
		p.Attrs = map[string]string{"y": "a--", "n": "u--"}[values["--allocatable"][0]]
	case tool == "vgreduce" && slices.Equal(alone, []string{group}) && slices.Contains(args, "--removemissing"):
		if p.Stubborn || p.Needed && !slices.Contains(args, "--force") {
			return errors.New("There are still partial LVs in VG vg0")
		}
		p.Gone = 0
	default:
		return fmt.Errorf("%s with the arguments %q", tool, args)
	}
	return p.write(dir)
}

// pretend does what a tool does.
func pretend(dir, tool string, args []string) error {
	if text, err := os.ReadFile(dir + "/fail"); err == nil && string(text) == tool {
		return fmt.Errorf("%s was told to fail", tool)
	}
	state := dir + "/state.json"
	lvs := map[string]*shownVolume{}
	if text, err := os.ReadFile(state); err == nil {
		if err := json.Unmarshal(text, &lvs); err != nil {
			return err
		}
	}
	alone, values := options(args)
	if strings.HasPrefix(tool, "pv") || tool == "vgreduce" || tool == "vgs" && slices.Contains(values["--options"], "vg_missing_pv_count") {
		return pretendDevices(dir, tool, alone, values, args)
	}
	if len(alone) != 1 {
		return fmt.Errorf("arguments %q", args)
	}
	vg, name, _ := strings.Cut(alone[0], "/")
	if vg != group {
		return fmt.Errorf("Volume group %q not found", vg)
	}
	used := 0
	for _, v := range lvs {
		size, _ := v.whole()
		used += size
	}
	size := 0
	if text := values["--size"]; len(text) > 0 {
		size, _ = strconv.Atoi(strings.TrimSuffix(text[0], "m"))
	}
	v := lvs[name]
	switch tool {
	case "vgs":
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": []any{map[string]any{"vg": []any{map[string]any{
			"vg_size": strconv.Itoa(groupSize * mib), "vg_free": strconv.Itoa((groupSize - used) * mib)}}}}})
	case "lvs":
		all := slices.Collect(maps.Values(lvs))
		for _, v := range all {
			v.Devices = device + "(0)"
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"report": []any{map[string]any{"lv": all}}})
	case "lvcreate":
		name = values["--name"][0]
		v = &shownVolume{volume: volume{Name: name, Path: dir + "/" + name, Tags: strings.Join(values["--addtag"], ","), Active: "active"}}
		lvs[name] = v
	case "lvremove":
		delete(lvs, name)
	case "lvchange":
		tags := append(v.tags(), values["--addtag"]...)
		v.Tags = strings.Join(slices.DeleteFunc(tags, func(tag string) bool { return slices.Contains(values["--deltag"], tag) }), ",")
		if len(values["--activate"]) > 0 {
			v.Active = "active"
		}
	}
	if size > 0 { // what the group held before is still there
		if used+size > groupSize {
			return errors.New("Volume group has insufficient free space")
		}
		old, _ := os.ReadFile(v.Path)
		if err := os.WriteFile(v.Path, append(old, bytes.Repeat([]byte("old"), (size*mib-len(old)+2)/3)...)[:size*mib], 0o600); err != nil {
			return err
		}
		v.Size = strconv.Itoa(size * mib)
	}
	text, err := json.Marshal(lvs)
	if err != nil {
		return err
	}
	return os.WriteFile(state, text, 0o600)
}

func open0(t *testing.T, dir string) *Driver {
	t.Helper()
	d, err := open(t.Context(), group, newTools(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConformanceOfStorage(t *testing.T) {
	storagetest.Run(t, func(t *testing.T, dir string) storage.Driver { return open0(t, dir) })
}

// fail has a tool fail from now on; "" none.
func (d *Driver) fail(t *testing.T, tool string) {
	t.Helper()
	if err := os.WriteFile(d.tools+"/fail", []byte(tool), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAKillLeaves: at each tool that a call runs the agent may be killed. The disk is then not there, or as large as it was, and the next call
// makes it whole, with zeros alone.
func TestWhatAKillLeaves(t *testing.T) {
	for _, tool := range []string{"lvcreate", "lvchange", "lvextend"} {
		d := open0(t, t.TempDir())
		d.fail(t, tool)
		_, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 2})
		if _, there := d.Volume(t.Context(), "one"); (err != nil) != fault.Is(there, fault.NotFound) {
			t.Errorf("%s failed: %v, and the disk: %v", tool, err, there)
		}
		if list, listed := d.Volumes(t.Context()); listed != nil || err != nil && len(list) > 0 {
			t.Errorf("%s failed: %+v, %v", tool, list, listed)
		}
		d.fail(t, "")
		if made, _, err2 := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 2}); err2 != nil || made != (err != nil) {
			t.Errorf("behind %s: %v, %v", tool, made, err2)
		}
		d.fail(t, tool)
		_, _, err = d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 4})
		if v, there := d.Volume(t.Context(), "one"); there != nil || err != nil && v.Size != 2 {
			t.Errorf("%s failed when it grew: %+v, %v", tool, v, there)
		}
		d.fail(t, "")
		if _, grown, err2 := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 4}); err2 != nil || grown != (err != nil) {
			t.Errorf("growing behind %s: %v, %v", tool, grown, err2)
		}
		v, err := d.Volume(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(v.Path); err != nil || !bytes.Equal(data, make([]byte, 4*mib)) {
			t.Errorf("%s: a guest sees what was there before: %v", tool, err)
		}
	}
}

// TestStrangers: a volume that was made by somebody else, under the name of a disk, is neither grown, nor used, nor removed, and the answer says what to type.
func TestStrangers(t *testing.T) {
	d := open0(t, t.TempDir())
	if _, err := d.tool(t.Context(), "lvcreate", "--name", "one", "--size", "4m", group); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(d.tools + "/one")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err1 := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 8})
	_, err2 := d.Remove(t.Context(), "one")
	_, err3 := d.Volume(t.Context(), "one")
	for _, err := range []error{err1, err2, err3} {
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "lvrename vg0 one NAME") {
			t.Errorf("%v", err)
		}
	}
	if after, err := os.ReadFile(d.tools + "/one"); err != nil || !bytes.Equal(after, before) {
		t.Errorf("it was changed: %v", err)
	}
	if list, err := d.Volumes(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestANodeThatStartsAnew has forgotten its volumes; who needs one has it known again.
func TestANodeThatStartsAnew(t *testing.T) {
	d := open0(t, t.TempDir())
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 1}); err != nil {
		t.Fatal(err)
	}
	state := d.tools + "/state.json"
	text, err := os.ReadFile(state)
	if err == nil {
		err = os.WriteFile(state, bytes.ReplaceAll(text, []byte(`"lv_active":"active"`), []byte(`"lv_active":""`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Volume(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(state); err != nil || !bytes.Contains(text, []byte(`"lv_active":"active"`)) {
		t.Errorf("it is not active: %s, %v", text, err)
	}
}

func TestGroupsThatAreNone(t *testing.T) {
	for name, want := range map[string]fault.Code{"": fault.Invalid, "-x": fault.Invalid, "a/b": fault.Invalid, "..": fault.Invalid, "a b": fault.Invalid, "vg1": fault.Environment} {
		if _, err := open(t.Context(), name, newTools(t, t.TempDir())); !fault.Is(err, want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := open(t.Context(), group, t.TempDir()); !fault.Is(err, fault.Environment) {
		t.Errorf("without tools: %v", err)
	}
}

// TestTheToolsTakeWhatIsAsked gives the real tools, on a volume group in a file, what the driver asks of them. Without a device mapper a volume cannot be
// written to, but made, grown, marked, listed and removed.
func TestTheToolsTakeWhatIsAsked(t *testing.T) {
	d, _ := realTools(t, 1)
	before, err := d.Space(t.Context())
	if err != nil || before.Total < 100 || before.Free != before.Total {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 8}); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "cannot overwrite") {
		t.Fatalf("a volume that cannot be overwritten: %v", err)
	}
	if _, err := d.Volume(t.Context(), "one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("it is there all the same: %v", err)
	}
	if _, err := d.tool(t.Context(), "lvchange", "--deltag", unwritten+"0", d.name("one")); err != nil {
		t.Fatal(err)
	}
	if v, err := d.Volume(t.Context(), "one"); err != nil || v.Size != 8 || v.Path != "/dev/"+d.group+"/one" {
		t.Errorf("%+v, %v", v, err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 16}); err == nil {
		t.Error("it was overwritten, though it cannot be")
	}
	if list, err := d.Volumes(t.Context()); err != nil || len(list) != 1 || list[0].Size != 8 {
		t.Errorf("%+v, %v", list, err)
	}
	if after, err := d.Space(t.Context()); err != nil || after.Free != before.Free-16 {
		t.Errorf("%+v, %v", after, err)
	}
	theRealDevices(t, d, before)
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "two", Size: before.Total}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("more than there is: %v", err)
	}
	if removed, err := d.Remove(t.Context(), "one"); err != nil || !removed {
		t.Errorf("%v, %v", removed, err)
	}
}

// TestARealDeviceThatIsGone: the real tools do without it as the pretended do, and what lay elsewhere stays.
func TestARealDeviceThatIsGone(t *testing.T) {
	d, devices := realTools(t, 2)
	for i, name := range []string{"stays", "goes"} {
		if _, err := d.tool(t.Context(), "lvcreate", "--yes", "--quiet", "--zero", "n", "--wipesignatures", "n", "--name", name, "--size", "8m", d.group, devices[i]); err != nil {
			t.Fatal(err)
		}
	}
	scanning(t, d.tools, devices[:1])
	units, err := d.Units(t.Context(), storage.PhysicalDisks)
	if err != nil || len(units) != 2 || units[0].Name != devices[0] || !units[0].Allocatable || units[1].Allocatable {
		t.Errorf("with one that is gone the devices are %+v, %v", units, err)
	}
	for i := range 2 {
		if changed, err := d.Repair(t.Context(), d.group); err != nil || changed != (i == 0) {
			t.Errorf("%d: %v, %v", i, changed, err)
		}
	}
	volumes, err := d.LogicalVolumes(t.Context())
	if want := (storage.LogicalVolume{Group: d.group, Name: "stays", Device: devices[0], Size: 8}); err != nil || !slices.Equal(volumes, []storage.LogicalVolume{want}) {
		t.Errorf("%+v, %v", volumes, err)
	}
	if units, err := d.Units(t.Context(), storage.PhysicalDisks); err != nil || len(units) != 1 {
		t.Errorf("%+v, %v", units, err)
	}
}

// scanning writes tools into a directory that look at these devices alone, and do without a device mapper. It returns the configuration that they are told.
func scanning(t *testing.T, dir string, devices []string) (config string) {
	t.Helper()
	config = `global{activation=0} devices{scan="/dev" filter=["a#^(` + strings.Join(devices, "|") + `)$#","r|.*|"] use_devicesfile=0}`
	for _, tool := range []string{"vgs", "lvs", "lvcreate", "lvextend", "lvchange", "lvremove", "pvs", "pvchange", "vgreduce"} {
		text := "#!/bin/sh\nexec " + tool + " --config '" + config + "' \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, tool), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// loopDevice makes a device of a file.
func loopDevice(t *testing.T, file string) string {
	t.Helper()
	err := os.WriteFile(file, nil, 0o600)
	if err == nil {
		err = os.Truncate(file, 128*mib)
	}
	if err != nil {
		t.Fatal(err)
	}
	loop, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", file).Output()
	if err != nil {
		testkit.Missingf(t, "there are no loop devices here: %v", err)
	}
	device := strings.TrimSpace(string(loop))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("%v, %s", err, out)
		}
	})
	return device
}

// realTools makes a volume group in so many files, and tools that do without a device mapper.
func realTools(t *testing.T, count int) (d *Driver, devices []string) {
	t.Helper()
	for _, tool := range []string{"losetup", "pvcreate", "vgcreate", "lvcreate"} {
		if _, err := exec.LookPath(tool); err != nil || os.Getuid() != 0 {
			testkit.Missingf(t, "%s is not installed, or this is not root", tool)
		}
	}
	dir := t.TempDir()
	for i := range count {
		devices = append(devices, loopDevice(t, fmt.Sprint(dir, "/disk", i)))
	}
	slices.Sort(devices)
	name := fmt.Sprintf("drover-test-%d-%d", os.Getpid(), count)
	config := scanning(t, dir, devices)
	for _, args := range [][]string{append([]string{"pvcreate", "--config", config, "--yes"}, devices...), append([]string{"vgcreate", "--config", config, name}, devices...)} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v, %s", args, err, out)
		}
	}
	d, err := open(t.Context(), name, dir)
	if err != nil {
		t.Fatal(err)
	}
	return d, devices
}

// theRealDevices holds what is told of devices, and done about them, on a group with one device and a volume of 16 MiB.
func theRealDevices(t *testing.T, d *Driver, group storage.Space) {
	t.Helper()
	units, err := d.Units(t.Context(), storage.PhysicalDisks)
	if err != nil || len(units) != 1 || units[0].Size != group.Total || units[0].Used != 16 || units[0].Free != group.Total-16 || !units[0].Allocatable {
		t.Fatalf("%+v, %v", units, err)
	}
	want := []storage.LogicalVolume{{Group: d.group, Name: "one", Device: units[0].Name, Size: 16, Disk: "one"}}
	if got, err := d.LogicalVolumes(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, may := range []bool{false, true} {
		changed, err := d.SetAllocatable(t.Context(), units[0].Name, may)
		after, err2 := d.Units(t.Context(), storage.PhysicalDisks)
		if err != nil || err2 != nil || !changed || after[0].Allocatable != may {
			t.Errorf("%v: %v, %v, %+v, %v", may, changed, err, after, err2)
		}
	}
	if changed, err := d.Repair(t.Context(), d.group); err != nil || changed {
		t.Errorf("a group of which nothing is gone: %v, %v", changed, err)
	}
	if _, err := d.tool(t.Context(), "vgreduce", "--removemissing", "--force", d.group); err != nil {
		t.Error(err)
	}
}

func TestUnits(t *testing.T) {
	d := open0(t, t.TempDir())
	if _, err := d.tool(t.Context(), "lvcreate", "--name", "theirs", "--size", "4m", group); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Ensure(t.Context(), storage.Disk{ID: "one", Size: 2}); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[storage.Kind]storage.Unit{
		storage.VolumeGroups:  {Name: group, Size: groupSize, Used: 6, Free: groupSize - 6, Allocatable: true},
		storage.PhysicalDisks: {Name: device, Size: groupSize, Used: 3, Free: groupSize - 3, Allocatable: true},
	} {
		if got, err := d.Units(t.Context(), kind); err != nil || !slices.Equal(got, []storage.Unit{want}) {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
	want := []storage.LogicalVolume{{Group: group, Name: "one", Device: device, Size: 2, Disk: "one"}, {Group: group, Name: "theirs", Device: device, Size: 4}}
	if got, err := d.LogicalVolumes(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, tool := range []string{"vgs", "pvs"} {
		d.fail(t, tool)
		kind := map[string]storage.Kind{"vgs": storage.VolumeGroups, "pvs": storage.PhysicalDisks}[tool]
		if _, err := d.Units(t.Context(), kind); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), tool) {
			t.Errorf("%s fails: %v", tool, err)
		}
	}
}

// TestAllocatable: a device of the group, and of no other, gives out room or not; what is so already is no change.
func TestAllocatable(t *testing.T) {
	d := open0(t, t.TempDir())
	for i, may := range []bool{true, false, false, true} {
		changed, err := d.SetAllocatable(t.Context(), device, may)
		units, err2 := d.Units(t.Context(), storage.PhysicalDisks)
		if err != nil || err2 != nil || changed != (i%2 == 1) || units[0].Allocatable != may {
			t.Errorf("%d: %v, %v, %+v, %v", i, changed, err, units, err2)
		}
	}
	for _, name := range []string{"/dev/sdb", "--all", ""} {
		if _, err := d.SetAllocatable(t.Context(), name, false); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), device) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestRepair: a group does without what is gone, by force where volumes lay on it, and nothing is done to one that is whole, or another one.
func TestRepair(t *testing.T) {
	for name, tc := range map[string]struct {
		devices pretendedDevices
		changed bool
		code    fault.Code
	}{
		"whole":  {pretendedDevices{}, false, ""},
		"gone":   {pretendedDevices{Gone: 1}, true, ""},
		"needed": {pretendedDevices{Gone: 2, Needed: true}, true, ""},
		"stays":  {pretendedDevices{Gone: 1, Stubborn: true}, false, fault.Environment},
	} {
		d := open0(t, t.TempDir())
		if err := tc.devices.write(d.tools); err != nil {
			t.Fatal(err)
		}
		changed, err := d.Repair(t.Context(), group)
		if changed != tc.changed || fault.CodeOf(err) != tc.code {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
		if left, err := d.missing(t.Context()); err != nil || (left == 0) != (tc.code == "") {
			t.Errorf("%s: %d are gone, %v", name, left, err)
		}
		if tc.code != "" && (!strings.Contains(err.Error(), "Volume group 'vg0' still not consistent") || !strings.Contains(err.Error(), "There are still partial LVs")) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := d.Repair(t.Context(), "other"); !fault.Is(err, fault.NotFound) {
			t.Errorf("another group: %v", err)
		}
	}
}
