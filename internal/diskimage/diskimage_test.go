package diskimage

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// qcow2 is the header of an image of so many bytes, changed.
func qcow2(virtual uint64, change func(head []byte)) []byte {
	head := make([]byte, HeadSize)
	copy(head, qcow2Magic)
	binary.BigEndian.PutUint32(head[4:], 3)
	binary.BigEndian.PutUint64(head[24:], virtual)
	if change != nil {
		change(head)
	}
	return head
}

// bootable is the beginning of a disk that machines start from.
func bootable() []byte {
	head := make([]byte, HeadSize)
	head[510], head[511] = 0x55, 0xaa
	return head
}

func TestWhatAFileIs(t *testing.T) {
	for name, c := range map[string]struct {
		head   []byte
		format string
		want   Head
		fails  string
	}{
		"qcow2":                    {head: qcow2(1<<30, nil), want: Head{QCOW2, 1 << 30}},
		"qcow2, said":              {head: qcow2(1<<30, nil), format: QCOW2, want: Head{QCOW2, 1 << 30}},
		"qcow2, version 2":         {head: qcow2(512, func(h []byte) { h[7] = 2 })[:72], want: Head{QCOW2, 512}},
		"raw":                      {head: bootable(), want: Head{Raw, 1 << 20}},
		"raw, said":                {head: make([]byte, HeadSize), format: Raw, want: Head{Raw, 1 << 20}},
		"zeros":                    {head: make([]byte, HeadSize), fails: "--format raw"},
		"a text":                   {head: []byte("hello"), fails: "--format raw"},
		"qcow2, said to be raw":    {head: qcow2(1<<30, nil), format: Raw, fails: "raw was said"},
		"raw, said to be qcow2":    {head: bootable(), format: QCOW2, fails: "no image of the format qcow2"},
		"a format that is none":    {head: bootable(), format: "vmdk,x=y", fails: "raw, qcow2"},
		"packed":                   {head: append([]byte("\x1f\x8b"), bootable()...), fails: "gunzip"},
		"packed, said to be raw":   {head: []byte("\xfd7zXZ\x00"), format: Raw, fails: "unxz"},
		"a page":                   {head: []byte("<!DOCTYPE html><title>404"), fails: "page of the web"},
		"of another format":        {head: []byte("KDMV"), fails: "vmdk"},
		"qcow2 of a later version": {head: qcow2(1, func(h []byte) { h[7] = 4 }), fails: "version 4"},
		"qcow2 that is cut off":    {head: qcow2(1, nil)[:40], fails: "cut off"},
		"qcow2 cut off later":      {head: qcow2(1, nil)[:76], fails: "cut off"},
		"qcow2 of nothing":         {head: qcow2(0, nil), fails: "0 bytes"},
		"qcow2 of too much":        {head: qcow2(1<<63, nil), fails: "9223372036854775808 bytes"},
	} {
		got, err := Look(c.head, 1<<20, c.format)
		if got != c.want || (err != nil) != (c.fails != "") || err != nil && (!strings.Contains(err.Error(), c.fails) || !fault.Is(err, fault.Invalid)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Look(nil, 0, Raw); err == nil {
		t.Error("what is empty is an image")
	}
}

func TestWhatLeadsElsewhereIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h []byte)
		want   string
	}{
		"a backing file": {func(h []byte) {
			h[15], h[19] = 200, 11
			copy(h[200:], "/etc/shadow")
		}, "'/etc/shadow'"},
		"a backing file whose name is elsewhere": {func(h []byte) { h[10], h[19] = 1, 11 }, "further on"},
		"a backing file at the end of all":       {func(h []byte) { copy(h[8:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") }, "further on"},
		"a length alone":                         {func(h []byte) { h[19] = 1 }, "backing file"},
		"data in another file":                   {func(h []byte) { h[79] = externalData }, "data in another file"},
		"a key":                                  {func(h []byte) { h[35] = 2 }, "encrypted"},
	} {
		if got, err := Look(qcow2(1<<20, c.change), 1<<20, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// layerOn is a disk that stands on a file of a name and, if it says so, of a format.
func layerOn(base, format string) []byte {
	return qcow2(1<<20, func(h []byte) {
		h[103] = layerHeader
		if format != "" {
			copy(h[layerHeader:], "\xe2\x79\x2a\xca\x00\x00\x00"+string(rune(len(format)))+format)
		}
		h[14], h[15], h[19] = 1, 0, byte(len(base))
		copy(h[256:], base)
	})
}

func TestLayers(t *testing.T) {
	if got, err := LookLayer(layerOn("../images/x", "raw")); err != nil || got != (Layer{VirtualSize: 1 << 20, Base: "../images/x", BaseFormat: "raw"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := LookLayer(qcow2(1<<20, nil)); err != nil || got != (Layer{VirtualSize: 1 << 20}) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, head := range map[string][]byte{
		"a base of no format": layerOn("../images/x", ""), "a base of another format": layerOn("../images/x", "vmdk"), "no disk": bootable(),
		"data elsewhere": qcow2(1<<20, func(h []byte) { h[79] = externalData }), "a name further on": qcow2(1<<20, func(h []byte) { h[10], h[19] = 1, 11 }),
		"nothing": nil,
	} {
		if got, err := LookLayer(head); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzLookLayer(f *testing.F) {
	f.Add(layerOn("../images/x", "qcow2"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if got, err := LookLayer(head); err == nil && (got.Base == "") != (got.BaseFormat == "") {
			t.Errorf("%+v", got)
		}
	})
}

func TestMiB(t *testing.T) {
	for bytes, want := range map[int64]int64{0: 0, 1: 1, 1 << 20: 1, 1<<20 + 1: 2, 1<<62 + 5: 1<<42 + 1} {
		if got := MiB(bytes); got != want {
			t.Errorf("%d bytes are %d MiB", bytes, got)
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add(qcow2(1<<30, nil), int64(1<<20), "")
	f.Add(bootable(), int64(1<<20), Raw)
	f.Fuzz(func(t *testing.T, head []byte, size int64, format string) {
		got, err := Look(head, size, format)
		if err == nil && got.Format != Raw && got.Format != QCOW2 {
			t.Errorf("%+v", got)
		}
	})
}
