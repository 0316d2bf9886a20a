// Package diskimage tells from its first bytes what a file is that is to become the disk of a machine, and refuses what must not be handed to
// a program that reads disks: one that leads to other files, or that needs a key.
//
// Invariants:
//   - A format is given, or found where the content leaves no doubt; it is never guessed (TestWhatAFileIs).
//   - What names another file is refused before any program that would open that has seen it (TestWhatLeadsElsewhereIsRefused).
//   - Any bytes are told about: nothing that somebody sends ends the program (FuzzLook).
package diskimage

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// The formats of images.
const (
	Raw   = "raw"
	QCOW2 = "qcow2"
)

// Formats are all of them.
func Formats() []string { return []string{Raw, QCOW2} }

// HeadSize is how many bytes of a file's beginning Look wants, as far as there are so many.
const HeadSize = 4096

// Head is what the beginning of a file says.
type Head struct {
	// Format is Raw or QCOW2.
	Format string
	// VirtualSize is how large the disk is that the file is the content of, in bytes.
	VirtualSize int64
}

// others are beginnings of files that are no images which can be installed as they are, with what to do.
var others = []struct{ begins, what, hint string }{
	{"\x1f\x8b", "packed by gzip", "unpack it first: gunzip"},
	{"\xfd7zXZ\x00", "packed by xz", "unpack it first: unxz"},
	{"\x28\xb5\x2f\xfd", "packed by zstd", "unpack it first: unzstd"},
	{"BZh", "packed by bzip2", "unpack it first: bunzip2"},
	{"PK\x03\x04", "an archive (zip)", "unpack it first: unzip"},
	{"KDMV", "an image of the format vmdk", "convert it first: qemu-img convert -f vmdk -O qcow2"},
	{"# Disk DescriptorFile", "the description of an image of the format vmdk", "convert it first: qemu-img convert -f vmdk -O qcow2"},
	{"vhdxfile", "an image of the format vhdx", "convert it first: qemu-img convert -f vhdx -O qcow2"},
	{"conectix", "an image of the format vpc", "convert it first: qemu-img convert -f vpc -O qcow2"},
	{"QED\x00", "an image of the format qed", "convert it first: qemu-img convert -f qed -O qcow2"},
	{"<!DOCTYPE", "a page of the web", "name the image itself, and not the page that tells of it"},
	{"<html", "a page of the web", "name the image itself, and not the page that tells of it"},
}

// qcow2Magic begins an image of the format qcow2.
const qcow2Magic = "QFI\xfb"

// Look tells what a file is by its beginning and its size in bytes. A format that is given is held to; without one a file that is neither
// surely raw nor qcow2 is refused. The code of errors is Invalid.
func Look(head []byte, size int64, format string) (Head, error) {
	if format != "" && !slices.Contains(Formats(), format) {
		return Head{}, fault.New(fault.Invalid, "there is no format of images %.100q", format).At("format").WithHint("one of: %s", strings.Join(Formats(), ", "))
	}
	if size == 0 {
		return Head{}, fault.New(fault.Invalid, "it is empty")
	}
	isQCOW2 := bytes.HasPrefix(head, []byte(qcow2Magic))
	switch {
	case isQCOW2 && format == Raw:
		return Head{}, fault.New(fault.Invalid, "it is an image of the format qcow2, and raw was said").At("format").WithHint("leave the format out, or say qcow2")
	case isQCOW2:
		return lookQCOW2(head)
	case format == QCOW2:
		return Head{}, fault.New(fault.Invalid, "it is no image of the format qcow2: its beginning is another").At("format")
	}
	for _, o := range others {
		if bytes.HasPrefix(head, []byte(o.begins)) {
			return Head{}, fault.New(fault.Invalid, "it is %s, and no image that can be installed", o.what).WithHint("%s", o.hint)
		}
	}
	if format == "" && !startable(head) {
		return Head{}, fault.New(fault.Invalid, "it cannot be told that it is an image: it is not of the format qcow2, and no machine would start from it as it is").
			WithHint("if it is the content of a disk, say so: --format raw")
	}
	return Head{Format: Raw, VirtualSize: size}, nil
}

// startable reports whether a machine would take the beginning of a disk for one that it can start from.
func startable(head []byte) bool {
	return len(head) >= 512 && head[510] == 0x55 && head[511] == 0xaa
}

// Features of qcow2 that a reader has to know, and which of them lead elsewhere.
const externalData = 1 << 2

// lookQCOW2 reads the header of an image, as QEMU's docs/interop/qcow2.txt has it.
func lookQCOW2(head []byte) (Head, error) {
	const second = 72 // bytes of the header of version 2
	if len(head) < second {
		return Head{}, fault.New(fault.Invalid, "it is cut off: an image of the format qcow2 has a header of %d bytes, and it has %d", second, len(head))
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	long := func(at int) uint64 { return binary.BigEndian.Uint64(head[at:]) }
	version := number(4)
	switch {
	case version != 2 && version != 3:
		return Head{}, fault.New(fault.Invalid, "it is an image of the format qcow2 of version %d, which nobody knows", version)
	case long(8) != 0 || number(16) != 0:
		return Head{}, fault.New(fault.Invalid, "it is no whole image: it has a backing file, %s", backing(head, long(8), number(16))).
			WithHint("make one file of both: qemu-img convert -f qcow2 -O qcow2")
	case number(32) != 0:
		return Head{}, fault.New(fault.Invalid, "it is encrypted, and there is nobody who could give the key")
	case version == 3 && len(head) < second+8:
		return Head{}, fault.New(fault.Invalid, "it is cut off in its header")
	case version == 3 && long(72)&externalData != 0:
		return Head{}, fault.New(fault.Invalid, "it is no whole image: it has its data in another file").
			WithHint("make one file of both: qemu-img convert -f qcow2 -O qcow2")
	}
	virtual := long(24)
	if virtual == 0 || virtual > 1<<62 {
		return Head{}, fault.New(fault.Invalid, "it says that its disk has %d bytes", virtual)
	}
	return Head{Format: QCOW2, VirtualSize: int64(virtual)}, nil
}

// Layer is what the beginning of a disk of the node's own says, of the format qcow2, that may stand on an image.
type Layer struct {
	// VirtualSize is how large the disk is, in bytes.
	VirtualSize int64
	// Base is the name of what it stands on, as it is in the file, and BaseFormat which format that has; both empty for nothing.
	Base, BaseFormat string
}

// LookLayer reads the header of a disk of the node's own. What else than its base would lead elsewhere, and a base whose format is not said, is refused. The
// code of errors is Invalid.
func LookLayer(head []byte) (Layer, error) {
	if !bytes.HasPrefix(head, []byte(qcow2Magic)) || len(head) < layerHeader {
		return Layer{}, fault.New(fault.Invalid, "it is no disk of the format qcow2")
	}
	at, length := binary.BigEndian.Uint64(head[8:]), binary.BigEndian.Uint32(head[16:])
	if at == 0 && length == 0 {
		h, err := lookQCOW2(head)
		return Layer{VirtualSize: h.VirtualSize}, err
	}
	if length == 0 || at >= uint64(len(head)) || uint64(length) > uint64(len(head))-at {
		return Layer{}, fault.New(fault.Invalid, "it stands on a file whose name is not in its header")
	}
	bare := bytes.Clone(head)
	clear(bare[8:20])
	h, err := lookQCOW2(bare)
	l := Layer{VirtualSize: h.VirtualSize, Base: string(head[at : at+uint64(length)]), BaseFormat: baseFormat(head)}
	if err == nil && !slices.Contains(Formats(), l.BaseFormat) {
		err = fault.New(fault.Invalid, "it does not say which format %.200q has, which it stands on", l.Base)
	}
	return l, err
}

// layerHeader is how long the header of version 3 is, in bytes, behind which its extensions are.
const layerHeader = 104

// baseFormat is what the extension of a header says of its backing file; empty if there is none.
func baseFormat(head []byte) string {
	const format = 0xe2792aca
	for at := uint64(binary.BigEndian.Uint32(head[100:])); at >= layerHeader && at+8 <= uint64(len(head)); {
		kind, length := binary.BigEndian.Uint32(head[at:]), uint64(binary.BigEndian.Uint32(head[at+4:]))
		if kind == 0 || at+8+length > uint64(len(head)) {
			break
		}
		if kind == format {
			return string(head[at+8 : at+8+length])
		}
		at += 8 + (length+7)/8*8
	}
	return ""
}

// backing is the name of a backing file, for people; its length if the name is not in what was read.
func backing(head []byte, at uint64, length uint32) string {
	if at >= uint64(len(head)) || uint64(length) > uint64(len(head))-at {
		return "whose name is further on"
	}
	name := head[at : at+uint64(length)]
	return "'" + fault.Clip(strings.ToValidUTF8(string(name), "\uFFFD"), 200) + "'"
}

// MiB is a number of bytes in MiB, rounded up: a disk that is to have room for so much has at least that.
func MiB(bytes int64) int64 {
	const mib = 1 << 20
	return bytes/mib + min(1, bytes%mib)
}
