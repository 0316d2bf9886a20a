package version

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

func TestBuild(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-22T04:50:34Z"}, {Key: "vcs.modified", Value: "true"}}
	for _, tc := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, Number + " (commit unknown)"},
		{&debug.BuildInfo{}, Number + " (commit unknown)"},
		{&debug.BuildInfo{Settings: settings[:2]}, Number + " (commit abc)"},
		{&debug.BuildInfo{Settings: settings}, Number + " (commit abc, modified)"},
	} {
		if got := of(tc.info).String(); got != tc.want {
			t.Errorf("%+v: got %q, want %q", tc.info, got, tc.want)
		}
	}
	if b := of(&debug.BuildInfo{Settings: settings}); b.Time != settings[1].Value || b.Go == "" || b.Platform == "" {
		t.Errorf("got %+v", b)
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
