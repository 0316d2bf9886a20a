package export

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

func whole() *Export {
	return &Export{
		ID: "id", Time: 1764288000, Source: "node-uuid", OS: "debian+minimal", Name: "web1.example.com", Template: "file", Hypervisor: "kvm", Tags: []string{"a", "b:c"},
		NICs:     []NIC{{MAC: "aa:00:00:11:22:33", Mode: "bridged", Link: "br0"}, {MAC: "aa:00:00:11:22:34", IP: "192.0.2.1", Name: "front", Network: "net-uuid"}},
		Disks:    []Disk{{Size: 1024, Dump: "disk-uuid", Form: Raw, Name: "root"}, {Size: 4, Dump: "other-uuid", Form: Script}},
		HVParams: map[string]string{"kernel_args": "ro quiet=50%", "acpi": "True", "kernel_path": ""},
		BEParams: map[string]string{"maxmem": "512", "minmem": "256", "vcpus": "2"},
		OSParams: map[string]string{"user_data": "#cloud-config\nruncmd:\n\n# a remark\n\t- echo [here] = there"},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	e := whole()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%v\n%+v\nis read of\n%s", err, got, text)
	}
}

// TestTheReferencesAreRead with what they have and ours have not: no form and no id, private parameters, numbers of old versions.
func TestTheReferencesAreRead(t *testing.T) {
	const text = "[export]\nversion = 0\ntimestamp = 12\nsource = n\nos = None\ncompression = none\n\n[instance]\nname: web1\nmemory = 128\nvcpus = 1\n" +
		"disk0_size = 8\ndisk0_dump = d0\ndisk0_name = None\nnic0_mac = aa:00:00:00:00:01\nnic0_ip = None\n; a remark\ntags = \n\n[os_private]\nkey = secret\n"
	got, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &Export{Time: 12, Source: "n", Name: "web1", Tags: []string{}, Disks: []Disk{{Size: 8, Dump: "d0", Form: Raw}}, NICs: []NIC{{MAC: "aa:00:00:00:00:01"}},
		BEParams: map[string]string{"minmem": "128", "maxmem": "128", "vcpus": "1"}, Private: []string{"key"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got, err = Decode([]byte(strings.Replace(text, "os = None", "os = debootstrap", 1))); err != nil || got.Disks[0].Form != Script {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	text, err := whole().Encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for name, bad := range map[string]string{
		"nothing":               "",
		"no instance":           "[export]\nversion = 0\n",
		"another version":       strings.Replace(good, "version = 0", "version = 1", 1),
		"a dump that leads out": strings.Replace(good, "disk0_dump = disk-uuid", "disk0_dump = ../../etc/shadow", 1),
		"a hidden dump":         strings.Replace(good, "disk0_dump = disk-uuid", "disk0_dump = .x", 1),
		"the file itself":       strings.Replace(good, "disk0_dump = disk-uuid", "disk0_dump = config.ini", 1),
		"a form":                strings.Replace(good, "disk0_form = raw", "disk0_form = qcow2", 1),
		"a size":                strings.Replace(good, "disk0_size = 1024", "disk0_size = -1", 1),
		"a pair of none":        "a = b\n" + good,
		"no pair":               good + "nothing\n",
		"no text":               good + "\xff",
		"too much":              good + strings.Repeat("#", MaxSize),
	} {
		if e, err := Decode([]byte(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestWhatCannotBeWritten(t *testing.T) {
	for name, alter := range map[string]func(*Export){
		"a name":             func(e *Export) { e.OSParams["a=b"] = "" },
		"a name of nothing":  func(e *Export) { e.OSParams[""] = "" },
		"blanks at the end":  func(e *Export) { e.OSParams["a"] = "b " },
		"a line at the end":  func(e *Export) { e.OSParams["a"] = "b\n" },
		"a value of no text": func(e *Export) { e.OSParams["a"] = "\xff" },
	} {
		e := whole()
		alter(e)
		if _, err := e.Encode(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := whole()
	e.OSParams["a"] = strings.Repeat("x", MaxSize)
	if _, err := e.Encode(); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	text, err := whole().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = Decode(text) })
}

// TestTheReferenceReadsIt by Python's parser, which it uses.
func TestTheReferenceReadsIt(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testkit.Missingf(t, "python3 is not installed")
	}
	e := whole()
	e.OSParams = map[string]string{"lines": "one\ntwo\n\nthree = 100%"}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c",
		"import configparser, json, sys\nc = configparser.ConfigParser()\nc.read_file(sys.stdin)\njson.dump({s: dict(c.items(s)) for s in c.sections()}, sys.stdout)")
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	var got file
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	ours, parsed := parse(text)
	if err != nil || parsed != nil || !reflect.DeepEqual(got, ours) || got["os"]["lines"] != e.OSParams["lines"] || got["hypervisor"]["kernel_args"] != "ro quiet=50%" {
		t.Errorf("%v, %v\n%v\nis read of\n%s", err, parsed, got, text)
	}
}
