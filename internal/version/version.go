// Package version tells which Drover this is: the number of its release, and
// what the Go linker noted when the binary was built.
package version

import (
	"runtime"
	"runtime/debug"
)

// Number is the release that this source is, or leads to. CHANGELOG.md tells
// what came with it.
const Number = "0.1.0"

// Build describes a binary. Commit and Time are empty where it was built
// outside of a repository.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Time    string `json:"time"` // of the commit, in the form of RFC 3339
	// Modified says that the source was not quite that of the commit.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current describes the running binary.
func Current() Build {
	info, _ := debug.ReadBuildInfo()
	return of(info)
}

// of describes a binary by what the linker noted in it, which may be nothing.
func of(info *debug.BuildInfo) Build {
	b := Build{Version: Number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
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
