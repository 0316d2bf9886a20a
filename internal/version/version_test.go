package version

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

func TestBuild(t *testing.T) {
	const pattern = "$Format:%H %cI %D$\n"
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-22T04:50:34Z"}, {Key: "vcs.modified", Value: "true"}}
	module := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	for _, tc := range []struct {
		info           *debug.BuildInfo
		archive        string
		want, wantTime string
	}{
		{nil, pattern, Number + "-dev (commit unknown)", ""},
		{module(""), pattern, Number + "-dev (commit unknown)", ""},
		{module("(devel)", settings[:2]...), pattern, Number + "-dev (commit abc)", "2026-11-22T04:50:34Z"},
		{module("v0.0.0-20261122045034-0123456789ab+dirty", settings...), pattern, Number + "-dev (commit abc, modified)", "2026-11-22T04:50:34Z"},
		// A release, by go install and in a clone, and what somebody made of it.
		{module("v" + Number), pattern, Number + " (commit unknown)", ""},
		{module("v"+Number, settings[:2]...), pattern, Number + " (commit abc)", "2026-11-22T04:50:34Z"},
		{module("v"+Number+"+dirty", settings...), pattern, Number + "-dev (commit abc, modified)", "2026-11-22T04:50:34Z"},
		{module("v9.9.9", settings[:2]...), pattern, Number + "-dev (commit abc)", "2026-11-22T04:50:34Z"},
		// go install of a commit.
		{module("v0.0.0-20261122045034-0123456789ab"), pattern, Number + "-dev (commit 0123456789ab)", "2026-11-22T04:50:34Z"},
		{module("v0.1.1-0.20261122045034-0123456789ab"), pattern, Number + "-dev (commit 0123456789ab)", "2026-11-22T04:50:34Z"},
		// Archives that git made.
		{module("(devel)"), "0123 2026-11-22T04:50:34+01:00 HEAD -> main\n", Number + "-dev (commit 0123)", "2026-11-22T04:50:34+01:00"},
		{module("(devel)"), "0123 2026-11-22T04:50:34+01:00 \n", Number + "-dev (commit 0123)", "2026-11-22T04:50:34+01:00"},
		{module("(devel)"), "0123 2026-11-22T04:50:34+01:00 tag: v" + Number + ", main\n", Number + " (commit 0123)", "2026-11-22T04:50:34+01:00"},
	} {
		got := of(tc.info, tc.archive)
		if got.String() != tc.want || got.Time != tc.wantTime || got.Go == "" || got.Platform == "" {
			t.Errorf("%+v, %q: got %q of %s, want %q of %s", tc.info, tc.archive, got, got.Time, tc.want, tc.wantTime)
		}
	}
}

// TestAnArchiveKnowsItsCommit has git make one.
func TestAnArchiveKnowsItsCommit(t *testing.T) {
	root := testkit.Root(t)
	asked := exec.CommandContext(t.Context(), "git", "archive", "HEAD", "internal/version/archive.txt")
	asked.Dir = root
	archive, err := asked.Output()
	if err != nil {
		t.Skipf("this is no repository: %v", err)
	}
	files := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("archive.txt is not in the archive: %v", err)
		}
		if !strings.HasSuffix(h.Name, "archive.txt") {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if b := of(nil, string(text)); !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(b.Commit) || b.Time == "" {
			t.Errorf("%q gives %+v", text, b)
		}
		return
	}
}

// The newest entry of the changelog is about the release that the source says
// it is.
func TestChangelogIsAboutThisVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[([^\]]+)\]`).FindSubmatch(text)
	if newest == nil || string(newest[1]) != Number {
		t.Errorf("the newest entry is %q, and the version is %s", newest, Number)
	}
}
