package seed_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kdomanski/iso9660"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/seed"
)

var whole = seed.Seed{
	UserData:      []byte("#cloud-config\nruncmd:\n - echo hi\n"),
	MetaData:      []byte("instance-id: i1\nlocal-hostname: web1\n"),
	NetworkConfig: []byte("version: 2\n"),
}

// iso makes an image, which must succeed.
func iso(t *testing.T, s seed.Seed) []byte {
	t.Helper()
	image, err := s.ISO()
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// read is what is on an image, by the names of files.
func read(t *testing.T, image []byte) (label string, files map[string]string) {
	t.Helper()
	opened, err := iso9660.OpenImage(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	label, errLabel := opened.Label()
	root, errRoot := opened.RootDir()
	if errLabel != nil || errRoot != nil {
		t.Fatal(errLabel, errRoot)
	}
	children, err := root.GetChildren()
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range children {
		text, err := io.ReadAll(f.Reader())
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name()] = string(text)
	}
	return label, files
}

func TestASeedIsReadBack(t *testing.T) {
	long := whole
	long.UserData = bytes.Repeat([]byte("x"), seed.MaxPart)
	for name, s := range map[string]seed.Seed{
		"all parts":         whole,
		"without a network": {UserData: whole.UserData, MetaData: whole.MetaData},
		"nothing to do":     {MetaData: whole.MetaData},
		"as long as may be": long,
	} {
		label, files := read(t, iso(t, s))
		if label != seed.Label {
			t.Errorf("%s: the label is %q", name, label)
		}
		for file, want := range map[string][]byte{"user-data": s.UserData, "meta-data": s.MetaData, "network-config": s.NetworkConfig} {
			got, there := files[file]
			if got != string(want) {
				t.Errorf("%s: %s is %.60q", name, file, got)
			}
			if there != (file != "network-config" || len(want) > 0) {
				t.Errorf("%s: %s is there: %v", name, file, there)
			}
		}
	}
}

func TestTheSameSeedIsTheSameBytes(t *testing.T) {
	first := iso(t, whole)
	if year := []byte(time.Now().UTC().Format("2006")); bytes.Contains(first[16*2048:18*2048], year) {
		t.Errorf("the descriptors tell the year, %s", year)
	}
	if !bytes.Equal(first, iso(t, whole)) {
		t.Error("the second time it was another image")
	}
	other := whole
	other.MetaData = []byte("instance-id: i2\n")
	if bytes.Equal(first, iso(t, other)) {
		t.Error("two seeds are one image")
	}
}

func TestNothingStaysBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	iso(t, whole)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	t.Setenv("TMPDIR", dir+"/none")
	if _, err := whole.ISO(); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "$TMPDIR") {
		t.Errorf("without a directory: %v", err)
	}
}

func TestWhatIsNoSeedIsRefused(t *testing.T) {
	long := bytes.Repeat([]byte("x"), seed.MaxPart+1)
	for _, tc := range []struct {
		seed.Seed
		code fault.Code
		want string
	}{
		{seed.Seed{UserData: whole.UserData}, fault.Invalid, "meta data"},
		{seed.Seed{MetaData: whole.MetaData, UserData: long}, fault.TooLarge, "user_data has 65537 bytes, and 65536 are allowed"},
		{seed.Seed{MetaData: long}, fault.TooLarge, "meta_data"},
		{seed.Seed{MetaData: whole.MetaData, NetworkConfig: long}, fault.TooLarge, "network_config"},
	} {
		if image, err := tc.ISO(); !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.want) || image != nil {
			t.Errorf("%v, want %s: %s", err, tc.code, tc.want)
		}
	}
}
