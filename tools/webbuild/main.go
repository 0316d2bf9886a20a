// Command webbuild makes the files of the page out of web/: one script, one style sheet and the page itself, in internal/api/web/dist, which is part of the
// repository. So whoever builds Drover needs Go alone. With -check it builds in memory, and fails if what is there differs in a byte or is too large.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// vendored are the modules of others, by the names by which sources import them.
var vendored = map[string]string{
	"preact":               "preact@11.2.0/preact.mjs",
	"preact/hooks":         "preact@11.2.0/hooks.mjs",
	"preact/jsx-runtime":   "preact@11.2.0/jsx-runtime.mjs",
	"@preact/signals":      "signals@2.11.4/signals.mjs",
	"@preact/signals-core": "signals-core@1.14.5/signals-core.mjs",

	"@xterm/xterm":               "xterm@6.0.0/xterm.mjs",
	"@xterm/xterm/css/xterm.css": "xterm@6.0.0/xterm.css",

	"@novnc/novnc":                      "novnc@1.7.0/core/rfb.js",
	"@novnc/novnc/core/util/logging.js": "novnc@1.7.0/core/util/logging.js",
}

// How large files may be, compressed: those together that are loaded first, and each that is loaded when somebody wants it.
const (
	mostFirst = 60 << 10
	mostLater = 100 << 10
)

func main() {
	root := flag.String("root", "../..", "directory of the repository")
	check := flag.Bool("check", false, "build in memory and compare")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "webbuild:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	made, err := build(root)
	if err != nil {
		return err
	}
	if err := weigh(made); err != nil {
		return err
	}
	dist := filepath.Join(root, "internal", "api", "web", "dist")
	if check {
		return compare(dist, made)
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	for name, text := range made {
		to := filepath.Join(dist, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// weigh says how large the files are, and refuses those that are too large.
func weigh(made map[string][]byte) error {
	first := 0
	for _, name := range slices.Sorted(maps.Keys(made)) {
		size := compressed(made[name])
		switch {
		case !strings.HasPrefix(name, "assets/"):
		case atOnce(made, name):
			first += size
		default:
			fmt.Printf("webbuild: %s takes %.1f kB compressed, of %.0f\n", name, float64(size)/1024, float64(mostLater)/1024)
			if size > mostLater {
				return fmt.Errorf("%s takes %d bytes compressed, more than the %d that it may", name, size, mostLater)
			}
		}
	}
	fmt.Printf("webbuild: what is loaded first takes %.1f kB compressed, of %.0f\n", float64(first)/1024, float64(mostFirst)/1024)
	if first > mostFirst {
		return fmt.Errorf("what is loaded first takes %d bytes compressed, more than the %d that it may", first, mostFirst)
	}
	return nil
}

// atOnce reports whether a file is loaded with the page, which names it or has a script that cannot begin without it.
func atOnce(made map[string][]byte, name string) bool {
	if bytes.Contains(made["index.html"], []byte("/"+name)) {
		return true
	}
	for other, text := range made {
		for _, how := range []string{`from"./`, `import"./`} {
			if bytes.Contains(text, []byte(how+path.Base(name)+`"`)) && atOnce(made, other) {
				return true
			}
		}
	}
	return false
}

// build makes all files, by their names in dist. What a source imports when it runs is a file of its own, which is loaded then.
func build(root string) (map[string][]byte, error) {
	web, err := filepath.Abs(filepath.Join(root, "web"))
	if err != nil {
		return nil, err
	}
	alias := map[string]string{}
	for name, file := range vendored {
		alias[name] = filepath.Join(web, "vendor", filepath.FromSlash(file))
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: web, EntryPoints: []string{"main.tsx", "app.css"}, Outdir: filepath.Join(web, "out"), Bundle: true, Splitting: true, Write: false,
		EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", Format: api.FormatESModule,
		Target: api.ES2022, JSX: api.JSXAutomatic, JSXImportSource: "preact", Alias: alias, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LogLevel: api.LogLevelWarning, TsconfigRaw: "{}",
	})
	if len(result.Errors) > 0 {
		return nil, errors.New("the sources cannot be built")
	}
	made := map[string][]byte{}
	page, err := os.ReadFile(filepath.Join(web, "index.html"))
	if err != nil {
		return nil, err
	}
	for _, f := range result.OutputFiles {
		base := path.Base(filepath.ToSlash(f.Path))
		plain, _, _ := strings.Cut(base, "-")
		made["assets/"+base] = f.Contents
		page = bytes.ReplaceAll(page, []byte("/"+plain+path.Ext(base)), []byte("/assets/"+base))
	}
	made["index.html"] = page
	if made["licences.txt"], err = licences(web); err != nil {
		return nil, err
	}
	made["sources.txt"], err = sources(web)
	return made, err
}

// licences are those of the modules of others.
func licences(web string) ([]byte, error) {
	var out []byte
	files, err := filepath.Glob(filepath.Join(web, "vendor", "*", "LICENSE"))
	slices.Sort(files)
	for _, name := range files {
		text, e := os.ReadFile(name)
		out = append(append(fmt.Appendf(out, "%s\n\n", filepath.Base(filepath.Dir(name))), text...), "\n\n"...)
		err = errors.Join(err, e)
	}
	return out, err
}

// sources names what the files were made of, each with its sum: the tests of internal/api/web compare that with what is there, and need no bundler.
func sources(web string) ([]byte, error) {
	var out []byte
	err := filepath.WalkDir(web, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) == ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(web, name)
		out = fmt.Appendf(out, "%s  %s\n", sum(text), filepath.ToSlash(rel))
		return err
	})
	return out, err
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

func compressed(text []byte) int {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	_, _ = w.Write(text)                                    // it is in memory
	_ = w.Close()
	return out.Len()
}

// compare says which files of a directory are not as they were made.
func compare(dist string, made map[string][]byte) error {
	var wrong []error
	seen := map[string]bool{}
	err := filepath.WalkDir(dist, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dist, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		seen[rel] = true
		text, err := os.ReadFile(name)
		if err == nil && !bytes.Equal(text, made[rel]) {
			wrong = append(wrong, fmt.Errorf("%s is not what the sources make", rel))
		}
		return err
	})
	for name := range made {
		if !seen[name] {
			wrong = append(wrong, fmt.Errorf("%s is missing", name))
		}
	}
	if err := errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("%w\nmake web makes them anew", err)
	}
	return nil
}
