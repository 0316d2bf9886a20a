package shell

import (
	"errors"
	"io"
	"os"
)

// maxFile is how much is read of a file that an option names, in bytes: more than a machine can be told.
const maxFile = 1 << 20

// TextOf reads a file that an option names; - is the standard input.
func TextOf(in io.Reader, name string) (string, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", Usage("%v", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("it is larger than anything that a machine can be told")
	}
	if err != nil {
		return "", Usage("%s cannot be read: %v", name, err)
	}
	return string(text), nil
}
