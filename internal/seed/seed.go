// Package seed makes the small CD that tells a new machine its name and what to do at its first start: the data source NoCloud
// of cloud-init, which other systems read, too.
//
// Invariants:
//   - The same seed is the same bytes, whenever it is made (TestTheSameSeedIsTheSameBytes): who keeps one need not ask whether it changed.
//   - What a machine reads is what was given, byte for byte, under the names and the label that the data source wants (TestASeedIsReadBack).
//   - Whatever a key, a name or a text has in it, it stays a text of the meta data, and what is no public key is refused without being told
//     (TestWhatAMachineIsTold, TestWhatIsNoKeyIsRefusedAndNotTold).
//   - Nothing of a seed stays behind in the directory for temporary files, where the library that writes it puts what it was
//     given (TestNothingStaysBehind): passwords may be in it.
package seed

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/kdomanski/iso9660"

	"github.com/drover-project/drover/internal/fault"
)

// Label is the name of the volume, by which machines find a seed.
const Label = "cidata"

// MaxPart is how long each part of a seed may be, in bytes. Clients of the Compute API may send less: 65535 as base64.
const MaxPart = 64 << 10

// Seed is what a machine is told, as cloud-init documents it.
type Seed struct {
	// UserData says what to do: "#cloud-config", a script, or nothing.
	UserData []byte
	// MetaData says who the machine is, as YAML: instance-id, local-hostname. It is needed.
	MetaData []byte
	// NetworkConfig says what the networks are, as YAML; without it the machine asks for an address itself.
	NetworkConfig []byte
}

// Check refuses a seed that lacks what it needs, or has a part that is too long, as ISO does.
func (s Seed) Check() error {
	_, err := s.parts()
	return err
}

// ISO is the seed as an image of a CD, of which the label is Label. An error is TooLarge or Invalid and names the part, or Environment if
// there was no room for temporary files.
func (s Seed) ISO() ([]byte, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	image, err := write(parts)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot make a seed: %w", err).WithHint("it needs room in the directory for temporary files ($TMPDIR)")
	}
	return image, nil
}

// parts are the files of the seed, by their names.
func (s Seed) parts() (map[string][]byte, error) {
	files := []struct {
		name, field string
		text        []byte
		wanted      bool
	}{
		{"meta-data", "meta_data", s.MetaData, true},
		{"network-config", "network_config", s.NetworkConfig, len(s.NetworkConfig) > 0},
		{"user-data", "user_data", s.UserData, true}, // cloud-init takes no seed without it
	}
	if len(s.MetaData) == 0 {
		return nil, fault.New(fault.Invalid, "a seed needs meta data").At("meta_data").WithHint("at least instance-id")
	}
	parts := map[string][]byte{}
	for _, f := range files {
		if len(f.text) > MaxPart {
			return nil, fault.New(fault.TooLarge, "%s has %d bytes, and %d are allowed", f.field, len(f.text), MaxPart).At(f.field).
				WithHint("have the machine fetch what is large: \"#include\" and a URL")
		}
		if f.wanted {
			parts[f.name] = f.text
		}
	}
	return parts, nil
}

// write makes an image of files, by their names.
func write(files map[string][]byte) (image []byte, err error) {
	w, err := iso9660.NewWriter() // its directory is for its owner alone
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Cleanup()) }()
	for name, text := range files {
		if err := w.AddFile(bytes.NewReader(text), name); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	if err := w.WriteTo(&out, Label); err != nil {
		return nil, err
	}
	return timeless(out.Bytes())
}

// Where the times of a volume are: in the descriptor that follows the 16 sectors of the system (ECMA-119, 6.2.1), one behind the other (8.4.26 to 8.4.29).
const (
	descriptor = 16 * 2048
	times      = descriptor + 813
	timeLength = 17
)

// timeless takes the times of making out of an image: 16 digits zero and a byte zero say that there is none (8.4.26.1).
func timeless(image []byte) ([]byte, error) {
	if len(image) < times+4*timeLength || string(image[descriptor+1:descriptor+6]) != "CD001" {
		return nil, fmt.Errorf("what was written is no image of a CD: %d bytes", len(image))
	}
	none := append(bytes.Repeat([]byte("0"), timeLength-1), 0)
	copy(image[times:], bytes.Repeat(none, 4))
	return image, nil
}
