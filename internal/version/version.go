// Package version tells which Drover this is: the number of its release, and
// what the Go linker noted when the binary was built, or git when it made an
// archive of the source.
//
// Invariants:
//   - Only what was built of the very source of a release bears its bare number.
package version

import (
	_ "embed"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Number is the release that this source is, or leads to. CHANGELOG.md tells
// what came with it.
const Number = "0.1.0"

// archived is filled in by git when it makes an archive (.gitattributes): the
// commit, its time, and the names that it has.
//
//go:embed archive.txt
var archived string

// Build describes a binary. Commit and Time are empty where the source was no
// repository, no archive that git made of one, and no module with a version.
type Build struct {
	Version string `json:"version"` // with -dev behind the number of a release that this is not
	Commit  string `json:"commit"`  // its first twelve digits, where a module's version is all there is
	Time    string `json:"time"`    // of the commit, in the form of RFC 3339
	// Modified says that the source was not quite that of the commit.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current describes the running binary.
func Current() Build {
	info, _ := debug.ReadBuildInfo()
	return of(info, archived)
}

// of describes a binary by what the linker noted in it, which may be nothing, and by
// what git wrote into an archive.
func of(info *debug.BuildInfo, archive string) Build {
	b := Build{Version: Number + "-dev", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	released := b.readArchive(archive)
	if info != nil {
		released = released || info.Main.Version == "v"+Number
		b.readSettings(info.Settings)
		b.readModule(info.Main.Version)
	}
	if released && !b.Modified {
		b.Version = Number
	}
	return b
}

// readArchive reads "COMMIT TIME NAME, NAME" and tells whether the release is one of
// the names. Outside of an archive there is a pattern in its place.
func (b *Build) readArchive(text string) (released bool) {
	words := strings.SplitN(strings.TrimSpace(text), " ", 3)
	if len(words) < 2 || strings.HasPrefix(text, "$") {
		return false
	}
	b.Commit, b.Time = words[0], words[1]
	for name := range strings.SplitSeq(strings.Join(words[2:], ""), ", ") {
		released = released || name == "tag: v"+Number
	}
	return released
}

func (b *Build) readSettings(settings []debug.BuildSetting) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
}

// readModule takes the commit out of a module's version, such as
// v0.0.0-20261122045034-0123456789ab, where nothing else has told it.
func (b *Build) readModule(version string) {
	if found := regexp.MustCompile(`[-.](\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)-([0-9a-f]{12})$`).FindStringSubmatch(version); found != nil && b.Commit == "" {
		b.Commit = found[7]
		b.Time = strings.Join(found[1:4], "-") + "T" + strings.Join(found[4:7], ":") + "Z"
	}
}

// String is version and commit in one line.
func (b Build) String() string {
	if b.Commit == "" {
		return b.Version + " (commit unknown)"
	}
	text := b.Version + " (commit " + b.Commit
	if b.Modified {
		text += ", modified"
	}
	return text + ")"
}
