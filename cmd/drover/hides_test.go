package main

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/app"
)

// planted is what secrets of a script have in them, and nothing else.
var planted = regexp.MustCompile(`marked|k7Qz`)

// hides carries out the commands of a file, one to a line, as text and as JSON, and asks what GET is written before of RAPI:
// hides FILE. None may tell what was planted, and neither may the controller's files and its log.
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
		words := strings.Fields(line)
		_ = ts.Exec("drover", words...) // errors are answers, too
		hidden(ts, line, ts.ReadFile("stdout")+ts.ReadFile("stderr"))
		if !strings.HasPrefix(line, "deploy console") {
			_ = ts.Exec("drover", append(words, "--output", "json")...)
			hidden(ts, line+" --output json", ts.ReadFile("stdout")+ts.ReadFile("stderr"))
		}
	}
	ts.Check(filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if name := strings.TrimPrefix(path, data); !holdsSecrets.MatchString(name) {
			hidden(ts, "the file "+name, string(text))
		}
		return err
	}))
}

// holdsSecrets are the files that tasks need their secrets in, and what they wrote themselves.
var holdsSecrets = regexp.MustCompile(`^/store/|^/nodes/[^/]+/tasks/`)

// hidden fails if what is told has something planted in it.
func hidden(ts *testscript.TestScript, what, told string) {
	if at := planted.FindStringIndex(told); at != nil {
		ts.Fatalf("%s tells %q", what, told[max(0, at[0]-100):min(len(told), at[1]+50)])
	}
}

// overRAPI is what RAPI answers, its account known.
func overRAPI(ts *testscript.TestScript, data, path string) string {
	text, err := os.ReadFile(filepath.Join(data, "ready.json"))
	ts.Check(err)
	var ready app.Ready
	ts.Check(json.Unmarshal(text, &ready))
	req, err := http.NewRequest(http.MethodGet, ready.RAPI+path, nil)
	ts.Check(err)
	req.SetBasicAuth(ready.RAPIUser, ready.RAPIPassword)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(req)
	ts.Check(err)
	defer answer.Body.Close() //nolint:errcheck // it is only read
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if answer.StatusCode != http.StatusOK {
		ts.Fatalf("GET %s: %d %s", path, answer.StatusCode, body)
	}
	return string(body)
}
