package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/app"
)

// planted is what secrets of a script have in them, and nothing else.
var planted = regexp.MustCompile(`marked|k7Qz`)

// hides carries out the commands of a file, one to a line, as text and as JSON, and asks what GET is written before of RAPI,
// or MOND of the nodes' monitoring agents: hides FILE. None may tell what was planted, and neither may any file of the
// controller (store, its log, nodes, log at debug) or a backup.
func hides(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hides FILE")
	}
	data := filepath.Dir(ts.Getenv("DROVER_LUXI"))
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		line = strings.TrimSpace(line)
		if path, remote := strings.CutPrefix(line, "GET "); remote {
			hidden(ts, line, overRAPI(ts, data, path))
			continue
		}
		if path, remote := strings.CutPrefix(line, "MOND "); remote {
			for node, url := range readyOf(ts, data).Mond {
				hidden(ts, line+" of "+node, answerOf(ts, url+path, nil))
			}
			continue
		}
		words := strings.Fields(line)
		_ = ts.Exec("drover", words...) // errors are answers, too
		hidden(ts, line, ts.ReadFile("stdout")+ts.ReadFile("stderr"))
		if !strings.HasPrefix(line, "deploy console") {
			_ = ts.Exec("drover", append(words, "--output", "json")...)
			hidden(ts, line+" --output json", ts.ReadFile("stdout")+ts.ReadFile("stderr"))
		}
	}
	bundleHides(ts, filepath.Join(filepath.Dir(data), filepath.Base(data)+"-bundle.tar.gz"))
	ts.Check(ts.Exec("drover", "backup", "create", filepath.Join(data, "backup"), "--at", data))
	seen := map[string]bool{}
	ts.Check(filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		hidden(ts, "the file "+strings.TrimPrefix(path, data), string(text))
		seen[d.Name()] = true
		return err
	}))
	for _, name := range []string{"drover.db", "drover.db-wal", "backup", "log", "output.1", "key"} {
		if !seen[name] {
			ts.Fatalf("there was no file %s", name)
		}
	}
}

// bundleHides has a bundle made, and looks into each of its files, also into those that are compressed once more.
func bundleHides(ts *testscript.TestScript, name string) {
	ts.Check(ts.Exec("drover", "debug", "bundle", name))
	f, err := os.Open(name)
	ts.Check(err)
	defer func() { ts.Check(errors.Join(f.Close(), os.Remove(name))) }()
	small, err := gzip.NewReader(f)
	ts.Check(err)
	files := 0
	for in := tar.NewReader(small); ; files++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		text, err := io.ReadAll(in)
		ts.Check(err)
		if strings.HasSuffix(head.Name, ".gz") {
			inner, err := gzip.NewReader(bytes.NewReader(text))
			ts.Check(err)
			text, err = io.ReadAll(inner)
			ts.Check(err)
		}
		hidden(ts, "the file "+head.Name+" of a bundle", string(text))
	}
	if files < 5 {
		ts.Fatalf("the bundle has %d files", files)
	}
}

// hidden fails if what is told has something planted in it.
func hidden(ts *testscript.TestScript, what, told string) {
	if at := planted.FindStringIndex(told); at != nil {
		ts.Fatalf("%s tells %q", what, told[max(0, at[0]-100):min(len(told), at[1]+50)])
	}
}

// overRAPI is what RAPI answers, its account known.
func overRAPI(ts *testscript.TestScript, data, path string) string {
	ready := readyOf(ts, data)
	return answerOf(ts, ready.RAPI+path, url.UserPassword(ready.RAPIUser, ready.RAPIPassword))
}

func readyOf(ts *testscript.TestScript, data string) app.Ready {
	text, err := os.ReadFile(filepath.Join(data, "ready.json"))
	ts.Check(err)
	var ready app.Ready
	ts.Check(json.Unmarshal(text, &ready))
	return ready
}

// answerOf is the body of an answer that must be good.
func answerOf(ts *testscript.TestScript, address string, account *url.Userinfo) string {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	ts.Check(err)
	if password, ok := account.Password(); ok {
		req.SetBasicAuth(account.Username(), password)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(req)
	ts.Check(err)
	defer answer.Body.Close() //nolint:errcheck // it is only read
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if answer.StatusCode != http.StatusOK {
		ts.Fatalf("GET %s: %d %s", address, answer.StatusCode, body)
	}
	return string(body)
}
