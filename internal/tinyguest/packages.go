package tinyguest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// metaPackage depends on the newest kernel that Debian has for clouds, and busyboxPackage has all programs in one that needs no libraries.
const (
	metaPackage    = "linux-image-cloud-amd64"
	busyboxPackage = "busybox-static"
)

// kernelNamed finds the package of a kernel in what apt-cache prints of the package that depends on it.
var kernelNamed = regexp.MustCompile(`(?m)^ *\|?Depends: (linux-image-[0-9]\S*-cloud-amd64)$`)

const debian = "it is part of Debian: on another system, make the guest on a Debian machine and copy its directory"

// programs are those that are needed, with what to do where they are missing.
var programs = map[string]string{
	"apt-cache": debian,
	"apt-get":   debian,
	"dpkg-deb":  debian,
	"xz":        "apt-get install xz-utils",
}

// unpack has the packages fetched and what is in them laid out below tree, and returns the names of their files.
func (b *builder) unpack(ctx context.Context, work, tree string) (files []string, err error) {
	dir := filepath.Join(work, "packages")
	if b.packages != "" {
		unlock, err := lock(ctx, b.packages)
		if err != nil {
			return nil, err
		}
		defer unlock()
		dir = b.packages
	}
	for _, d := range []string{dir, tree} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, unwritable(b.place.dir, err)
		}
	}
	files, err = b.fetch(ctx, work, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		b.progress("unpacking " + name)
		if _, err := run(ctx, dir, "dpkg-deb", "-x", name, tree); err != nil {
			return nil, of(err, fault.Unsupported, "a package cannot be unpacked", "is the disk full, or the package damaged? "+name)
		}
	}
	return files, nil
}

// fetch has the packages in a directory, and returns the names of their files. What is there already, and right, is not fetched again: apt-get sees to
// that, and does not name it either, so it is asked for names elsewhere.
func (b *builder) fetch(ctx context.Context, elsewhere, dir string) (files []string, err error) {
	const hint = "it needs the lists of Debian's packages (as root: apt-get update) and a way to its mirror"
	b.progress("looking for the newest kernel")
	listed, err := run(ctx, dir, "apt-cache", "depends", metaPackage)
	if err != nil {
		return nil, of(err, fault.Unavailable, "the package "+metaPackage+" is not known", hint)
	}
	found := kernelNamed.FindStringSubmatch(listed)
	if found == nil {
		return nil, fault.New(fault.Unsupported, "%s depends on no kernel: %q", metaPackage, listed).WithHint("is this another distribution than Debian, or one that is newer than this version of Drover?")
	}
	wanted := []string{found[1], busyboxPackage}
	b.progress("fetching " + strings.Join(wanted, " and "))
	args := append([]string{"-q", "-o", "Acquire::http::Timeout=20", "download"}, wanted...)
	printed, err := run(ctx, elsewhere, "apt-get", append(slices.Clone(args), "--print-uris")...)
	if err == nil {
		_, err = run(ctx, dir, "apt-get", args...)
	}
	if err != nil {
		return nil, of(err, fault.Unavailable, "the packages "+strings.Join(wanted, " and ")+" cannot be fetched", hint)
	}
	return named(printed, len(wanted))
}

// named finds the names of files in what apt-get prints of each that it would fetch: an address, a name, a length and a sum.
func named(printed string, want int) (files []string, err error) {
	for line := range strings.Lines(printed) {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(line, "'") && filepath.Base(fields[1]) == fields[1] {
			files = append(files, fields[1])
		}
	}
	if len(files) != want {
		return nil, fault.New(fault.Unsupported, "apt-get names %d packages and not %d: %q", len(files), want, printed).WithHint("is apt newer than this version of Drover?")
	}
	return files, nil
}

// failure is what a program said that failed.
type failure struct {
	error
	said string
}

// of makes an error of what became of a program: what it means, unless the program itself is missing or was cancelled, and what the program said.
func of(err error, code fault.Code, what, hint string) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	return fault.New(code, "%s: %w: %s", what, f.error, f.said).WithHint("%s", hint)
}

// run has a program do something in a directory, and returns what it printed.
func run(ctx context.Context, dir, name string, args ...string) (printed string, err error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fault.New(fault.Environment, "the program %s is not there, and the tiny guest is made with it", name).WithHint("%s", programs[name])
	}
	const patience = 5 * time.Second // for what it has started
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), "LC_ALL=C"), patience
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", canceled(ctx)
	case err != nil:
		return "", &failure{err, lastLines(said.String() + out.String())}
	default:
		return out.String(), nil
	}
}

// lastLines is the end of what a program said, in one line.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	const enough = 3
	return strings.Join(lines[max(0, len(lines)-enough):], "; ")
}
