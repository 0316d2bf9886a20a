package tinyguest

import (
	"bytes"
	"fmt"
	"path"
)

// Kinds and modes of entries, as stat(2) has them.
const (
	kindDir    = 0o040000
	kindFile   = 0o100000
	kindDevice = 0o020000 // a device of characters
)

// archive is a cpio archive of the form "newc", as the kernel unpacks it (Documentation/driver-api/early-userspace/buffer-format.rst). Owners, times
// and numbers of inodes are not those of this machine: the same content is the same bytes.
type archive struct {
	out    bytes.Buffer
	inodes int
	dirs   map[string]bool
}

// dir adds a directory and those that it is in, unless they are there.
func (a *archive) dir(name string) {
	if name == "." || a.dirs[name] {
		return
	}
	a.dir(path.Dir(name))
	if a.dirs == nil {
		a.dirs = map[string]bool{}
	}
	a.dirs[name] = true
	a.entry(name, kindDir|0o755, [2]int{}, nil)
}

// file adds a file.
func (a *archive) file(name string, mode int, data []byte) {
	a.dir(path.Dir(name))
	a.entry(name, kindFile|mode, [2]int{}, data)
}

// device adds a device of characters.
func (a *archive) device(name string, mode int, number [2]int) {
	a.dir(path.Dir(name))
	a.entry(name, kindDevice|mode, number, nil)
}

// bytes ends the archive and returns it.
func (a *archive) bytes() []byte {
	a.entry("TRAILER!!!", 0, [2]int{}, nil)
	return a.out.Bytes()
}

// entry writes a header of a magic number and 13 fields, the name, and the content; what follows begins at a multiple of 4 bytes.
func (a *archive) entry(name string, mode int, device [2]int, data []byte) {
	a.inodes++
	links := 1
	if mode&kindDir != 0 {
		links = 2
	}
	a.out.WriteString("070701")
	for _, field := range []int{
		a.inodes, mode, 0, 0, links, 0, len(data), // inode, mode, owner, group, links, time, length
		0, 0, device[0], device[1], len(name) + 1, 0, // where it lay, which device it is, length of the name, sum
	} {
		fmt.Fprintf(&a.out, "%08x", field)
	}
	a.out.WriteString(name + "\x00")
	a.pad()
	a.out.Write(data)
	a.pad()
}

func (a *archive) pad() {
	const unit = 4
	for a.out.Len()%unit != 0 {
		a.out.WriteByte(0)
	}
}
