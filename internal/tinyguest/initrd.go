package tinyguest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
)

// rootFiles is what the guest consists of beside the kernel, its modules and busybox.
//
//go:embed root
var rootFiles embed.FS

// format is raised when guests are made otherwise than before, and neither their files nor modules tell.
const format = 1

// recipe names how this version makes guests: another text, another guest.
var recipe = sync.OnceValue(func() string {
	const length = 12
	h := sha256.New()
	_, _ = fmt.Fprintln(h, format, wanted, parameters)
	_, _ = h.Write(initrd(nil, nil))
	return hex.EncodeToString(h.Sum(nil))[:length]
})

// assemble makes a guest of what was in the packages.
func assemble(ctx context.Context, tree, made string, packages []string) error {
	version, dir, err := kernelIn(tree)
	if err != nil {
		return err
	}
	kernel, err := os.ReadFile(filepath.Join(tree, "boot", "vmlinuz-"+version))
	if err != nil {
		return unexpected("it has no kernel for its modules", err)
	}
	busybox, err := readFirst(filepath.Join(tree, "bin", "busybox"), filepath.Join(tree, "usr", "bin", "busybox"))
	if err != nil {
		return unexpected("there is no busybox", err)
	}
	all, err := modulesIn(dir, func(path string) ([]byte, error) { return readModule(ctx, path) })
	if err != nil {
		return err
	}
	loaded, err := all.order(wanted)
	if err != nil {
		return err
	}
	l := label{Recipe: recipe(), Kernel: version, Packages: packages}
	if err := store(made, l, kernel, compressed(initrd(busybox, loaded))); err != nil {
		return unwritable(filepath.Dir(made), err)
	}
	return nil
}

// kernelIn finds the one kernel below a tree: its version, and the directory of its modules.
func kernelIn(tree string) (version, dir string, err error) {
	var found []string
	for _, above := range []string{"lib", filepath.Join("usr", "lib")} { // since Debian 13 the latter
		dirs, err := filepath.Glob(filepath.Join(tree, above, "modules", "*-cloud-amd64"))
		if err != nil {
			return "", "", unexpected("its modules cannot be looked for", err)
		}
		found = append(found, dirs...)
	}
	if len(found) != 1 {
		return "", "", unexpected("its modules are not in one directory", nil)
	}
	return filepath.Base(found[0]), found[0], nil
}

// readFirst reads the first of several files that there is.
func readFirst(paths ...string) (data []byte, err error) {
	for _, path := range paths {
		if data, err = os.ReadFile(path); err == nil {
			return data, nil
		}
	}
	return nil, err
}

// readModule reads the file of a module. The guest cannot uncompress them, so that is done here.
func readModule(ctx context.Context, path string) ([]byte, error) {
	switch filepath.Ext(path) {
	case ".ko":
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, unexpected("a module cannot be read", err)
		}
		return data, nil
	case ".xz":
		data, err := run(ctx, filepath.Dir(path), "xz", "-dc", filepath.Base(path))
		if err != nil {
			return nil, of(err, fault.Unsupported, "a module of Debian's kernel cannot be uncompressed", "is the disk full?")
		}
		return []byte(data), nil
	default:
		return nil, unexpected("its module "+filepath.Base(path)+" is compressed in a way that is not known", nil)
	}
}

// initrd is the archive that the kernel unpacks into memory.
func initrd(busybox []byte, loaded []module) []byte {
	var a archive
	for _, dir := range []string{"bin", "sbin", "usr/bin", "usr/sbin", "dev", "proc", "sys", "run", "tmp", "mnt", "root", "var/log"} {
		a.dir(dir)
	}
	a.device("dev/console", 0o600, [2]int{5, 1}) // the kernel opens it before there is anything else
	a.file("bin/busybox", 0o755, busybox)
	var order strings.Builder
	for _, m := range loaded {
		a.file("lib/modules/"+m.name+".ko", 0o644, m.data)
		order.WriteString(strings.TrimSpace(m.name+".ko "+parameters[m.name]) + "\n")
	}
	a.file("lib/modules/order", 0o644, []byte(order.String()))
	a.texts(rootFiles, "root")
	return a.bytes()
}

// texts adds all files below a directory of the program. Scripts may be run.
func (a *archive) texts(files fs.FS, dir string) {
	_ = fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error { // what is embedded can be read
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		mode := 0o644
		if bytes.HasPrefix(text, []byte("#!")) {
			mode = 0o755
		}
		a.file(strings.TrimPrefix(path, dir+"/"), mode, text)
		return err
	})
}

// compressed packs an archive, as small as can be: it is done once.
func compressed(data []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is one
	_, _ = w.Write(data)                                    // memory takes all
	_ = w.Close()
	return out.Bytes()
}
