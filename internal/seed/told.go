package seed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Told is what a machine is to be told, before it is a seed.
type Told struct {
	// ID is the machine's, which stays the same; Hostname its name.
	ID, Hostname string
	// SSHKeys are public keys of who may log in, one a line, as in a file authorized_keys. Blank lines and those that begin with # say nothing.
	SSHKeys string
	// UserData says what to do: "#cloud-config", a script, or nothing.
	UserData string
	// NetworkConfig says what the networks are, as YAML; without it the machine asks for an address itself.
	NetworkConfig string
}

// Seed is the seed that tells it. An error is Invalid, and tells nothing of a key: it may be a private one.
func (t Told) Seed() (Seed, error) {
	keys, err := t.keys()
	if err != nil {
		return Seed{}, err
	}
	var meta bytes.Buffer
	fmt.Fprintf(&meta, "instance-id: %s\nlocal-hostname: %s\n", quoted(t.ID), quoted(t.Hostname))
	if len(keys) > 0 {
		meta.WriteString("public-keys:\n")
	}
	for _, key := range keys {
		fmt.Fprintf(&meta, "  - %s\n", quoted(key))
	}
	return Seed{UserData: []byte(t.UserData), MetaData: meta.Bytes(), NetworkConfig: []byte(t.NetworkConfig)}, nil
}

// quoted is a text as YAML has it, which takes texts of JSON, but for characters that are not printed: readers of YAML refuse all of a text that has one.
func quoted(text string) string {
	plain, err := json.Marshal(text)
	if err != nil { // any text can be written
		panic(err)
	}
	var out strings.Builder
	for _, r := range string(plain) {
		if r >= 0x7f && r <= 0x9f || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// keyTypes begin public keys.
var keyTypes = []string{"ssh-rsa", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"}

func (t Told) keys() (keys []string, err error) {
	number := 0
	for line := range strings.Lines(t.SSHKeys) {
		number++
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case line == "" || line[0] == '#':
		case strings.Contains(line, "PRIVATE KEY"):
			return nil, fault.New(fault.Invalid, "line %d of the SSH keys begins a private key", number).At("ssh_keys").
				WithHint("a machine is told public keys; they are in the file beside it, whose name ends with .pub")
		case len(fields) < 2 || !slices.Contains(keyTypes, fields[0]):
			return nil, fault.New(fault.Invalid, "line %d of the SSH keys is no public key", number).At("ssh_keys").
				WithHint("a line begins with the type of the key, for example ssh-ed25519")
		default:
			keys = append(keys, line)
		}
	}
	return keys, nil
}
