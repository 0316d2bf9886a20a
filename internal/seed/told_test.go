package seed_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/seed"
)

func TestWhatAMachineIsTold(t *testing.T) {
	told := seed.Told{ID: "uuid-1", Hostname: "web1.example.com", UserData: "#cloud-config\n", NetworkConfig: "version: 2\n",
		SSHKeys: "# mine\nssh-ed25519 AAAA me@\"home\": x\n\n  ecdsa-sha2-nistp256 BBBB\n"}
	s, err := told.Seed()
	if err != nil {
		t.Fatal(err)
	}
	const want = "instance-id: \"uuid-1\"\nlocal-hostname: \"web1.example.com\"\npublic-keys:\n  - \"ssh-ed25519 AAAA me@\\\"home\\\": x\"\n  - \"ecdsa-sha2-nistp256 BBBB\"\n"
	if string(s.MetaData) != want || string(s.UserData) != told.UserData || string(s.NetworkConfig) != told.NetworkConfig {
		t.Errorf("it is told\n%s%s%s", s.MetaData, s.UserData, s.NetworkConfig)
	}
	told.SSHKeys = ""
	if s, err = told.Seed(); err != nil || strings.Contains(string(s.MetaData), "keys") {
		t.Errorf("without keys: %s, %v", s.MetaData, err)
	}
}

func TestWhatIsNoKeyIsRefusedAndNotTold(t *testing.T) {
	for keys, want := range map[string]string{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r": "line 1 of the SSH keys begins a private key",
		"ssh-rsa AAAA\nb3BlbnNzaC1r":                        "line 2 of the SSH keys is no public key",
		"ssh-rsa":                                           "line 1 of the SSH keys is no public key",
		"from=\"*\" ssh-rsa AAAA":                           "is no public key",
	} {
		_, err := seed.Told{ID: "i", SSHKeys: keys}.Seed()
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "b3Bl") {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

// TestAnyTextStaysATextOfTheMetaData: also one with characters that YAML has no place for, of which readers would refuse all.
func TestAnyTextStaysATextOfTheMetaData(t *testing.T) {
	for r := range rune(0x10000) {
		if r > 0x100 && r < 0xd7ff || r >= 0xd800 && r <= 0xdfff || r == '\n' {
			continue // characters like any other; half a character; the end of a key
		}
		name := "me" + string(r) + "x"
		s, err := seed.Told{ID: "i", Hostname: name, SSHKeys: "ssh-ed25519 AAAA " + name}.Seed()
		if err != nil {
			t.Fatal(err)
		}
		var told struct {
			Hostname string   `yaml:"local-hostname"`
			Keys     []string `yaml:"public-keys"`
		}
		if err := yaml.Unmarshal(s.MetaData, &told); err != nil || told.Hostname != name || !slices.Equal(told.Keys, []string{"ssh-ed25519 AAAA " + name}) {
			t.Errorf("%U: %+q, %v", r, told, err)
		}
	}
}
