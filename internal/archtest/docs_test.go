package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// records are the pages that say how to see something again.
var records = []string{"track-record.md", "reliability.md"}

// promises are further pages that name the test of each thing that they promise.
var promises = []string{"nodes.md", "security.md"}

// TestRecordsNameTests fails when a test that a page names, as it reproduces a bug of old, or shows a
// promise, was renamed or removed.
func TestRecordsNameTests(t *testing.T) {
	there := map[string]bool{}
	for _, names := range testsOf(t) {
		for _, name := range names {
			there[name] = true
		}
	}
	for page, text := range filesNamed(t, ".md") {
		record := slices.Contains(records, filepath.Base(page)) || slices.Contains(promises, filepath.Base(page))
		if !record && filepath.Base(page) != "ARCHITECTURE.md" && filepath.Base(filepath.Dir(page)) != "adding" { // TestFilter is a method of LUXI
			continue
		}
		names := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(text, -1)
		for _, name := range names {
			if !there[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		if len(names) == 0 && record {
			t.Errorf("%s names no test", page)
		}
	}
}

// TestCommandsOfRecordsRunTests fails when a command on these pages would run
// nothing: a test that is somewhere else, or a part of a name that none has any more.
func TestCommandsOfRecordsRunTests(t *testing.T) {
	tests := testsOf(t)
	for _, page := range records {
		seen := 0
		for _, found := range regexp.MustCompile("`go test ([^`]*)`").FindAllStringSubmatch(read(t, "docs", page), -1) {
			packages, patterns := command(found[1])
			for _, pattern := range patterns {
				seen++
				if !runs(tests, packages, pattern) {
					t.Errorf("docs/%s: go test %s runs no %s", page, found[1], pattern)
				}
			}
		}
		if seen == 0 {
			t.Errorf("docs/%s has no commands", page)
		}
	}
}

// command reads the arguments of go test as they are in a table: the packages, and
// what it is to run, one by one.
func command(args string) (packages, patterns []string) {
	args = strings.ReplaceAll(args, `\|`, "|")
	for _, match := range regexp.MustCompile(`-(?:run|bench) (?:'([^']*)'|"([^"]*)"|(\S+))`).FindAllStringSubmatch(args, -1) {
		inside := 0
		for pattern := range strings.FieldsFuncSeq(match[1]+match[2]+match[3], func(r rune) bool {
			inside += strings.Count(string(r), "(") - strings.Count(string(r), ")")
			return r == '|' && inside == 0
		}) {
			if name, _, _ := strings.Cut(pattern, "/"); name != "xxx" { // which is to run nothing
				patterns = append(patterns, name)
			}
		}
	}
	for word := range strings.FieldsSeq(args) {
		if name, ok := strings.CutPrefix(word, "./"); ok {
			packages = append(packages, name)
		}
	}
	return packages, patterns
}

// runs tells whether a pattern runs a test of one of the packages.
func runs(tests map[string][]string, packages []string, pattern string) bool {
	for dir, names := range tests {
		for _, p := range packages {
			tree, all := strings.CutSuffix(p, "/...")
			if dir != p && !(all && (dir == tree || strings.HasPrefix(dir, tree+"/"))) {
				continue
			}
			if slices.ContainsFunc(names, regexp.MustCompile(pattern).MatchString) {
				return true
			}
		}
	}
	return false
}

func TestCommandsAreRead(t *testing.T) {
	packages, patterns := command(`-race ./a ./b/... -run 'TestA\|B/(x\|y)' -count 20`)
	if !slices.Equal(packages, []string{"a", "b/..."}) || !slices.Equal(patterns, []string{"TestA", "B"}) {
		t.Errorf("read %q, %q", packages, patterns)
	}
	tests := map[string][]string{"a": {"TestA"}, "b/c": {"TestAB"}, "c": {"TestX"}}
	for pattern, want := range map[string]bool{"TestA": true, "B": true, "TestX": false} {
		if runs(tests, packages, pattern) != want {
			t.Errorf("%s runs something: %v", pattern, !want)
		}
	}
}

// testsOf are the tests, benchmarks and fuzz targets of each package, by its directory.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for name, source := range filesNamed(t, "_test.go") {
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`).FindAllStringSubmatch(source, -1) {
			tests[dir] = append(tests[dir], match[1])
		}
	}
	return tests
}

// read reads a file of the tree.
func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPagesNameFilesThatExist fails when a page names a file of the code that was renamed or removed. Records of what was (docs/track-record.md, docs/adr)
// may.
func TestPagesNameFilesThatExist(t *testing.T) {
	sources := map[string]bool{}
	for path := range filesNamed(t, ".go") {
		for name := filepath.ToSlash(path); name != ""; {
			_, name, _ = strings.Cut(name, "/")
			sources[name] = true
		}
	}
	named := map[string]int{}
	for path, text := range filesNamed(t, ".md") {
		page, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if page == filepath.Join("docs", "track-record.md") || filepath.Dir(page) == filepath.Join("docs", "adr") {
			continue
		}
		for _, name := range regexp.MustCompile("`([a-z][a-z0-9_/]*\\.go)`").FindAllStringSubmatch(text, -1) {
			named[page]++
			if !sources[name[1]] {
				t.Errorf("%s names %s, which does not exist", page, name[1])
			}
		}
	}
	for _, page := range []string{"ARCHITECTURE.md", "docs/life-of-a-job.md", "docs/limits.md", "docs/adding/executor.md"} {
		if named[filepath.FromSlash(page)] == 0 {
			t.Errorf("%s names no file", page)
		}
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
