package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// filesNamed reads all files of the tree with an ending, by their paths.
func filesNamed(t *testing.T, ending string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, ending) {
			return err
		}
		text, err := os.ReadFile(name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTrackRecordNamesTests fails when a test that reproduces a bug of old was
// renamed or removed.
func TestTrackRecordNamesTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "track-record.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, source := range filesNamed(t, "_test.go") {
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(source, -1) {
			there[match[1]] = true
		}
	}
	names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
	for _, name := range names {
		if !there[name] {
			t.Errorf("docs/track-record.md names %s, which does not exist", name)
		}
	}
	if len(names) == 0 {
		t.Error("docs/track-record.md names no test")
	}
}

// TestLinksOfDocumentsLead fails when a document refers to a file that is not
// there. Links to other sites are left alone.
func TestLinksOfDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	seen := 0
	for name, text := range filesNamed(t, ".md") {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), match[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", strings.TrimPrefix(name, root+"/"), match[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no links were found")
	}
}
