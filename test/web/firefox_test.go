package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/testkit"
)

// firefox is a Firefox with one tab, which is told what to do in the protocol WebDriver BiDi.
type firefox struct {
	*testing.T
	conn    *websocket.Conn
	context string
	asked   int
	// said is what its console was told as an error.
	said []string
}

// startFirefox starts the program of $DROVER_FIREFOX. It is 84 MB to fetch, so what every run has is the other browser (make web-firefox).
func startFirefox(t *testing.T) *firefox {
	t.Helper()
	program := os.Getenv("DROVER_FIREFOX")
	if program == "" {
		t.Skip("DROVER_FIREFOX says where Firefox is: make web-firefox")
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "--headless", "--no-remote", "--profile", home, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_DISABLE_CONTENT_SANDBOX=1", "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its processes of content
		_ = cmd.Wait()
	})
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		_, address, _ = strings.Cut(lines.Text(), "WebDriver BiDi listening on ")
	}
	if address == "" {
		t.Fatal("Firefox does not listen")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	conn, _, err := websocket.Dial(t.Context(), address+"/session", nil) //nolint:bodyclose // it has none
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	f := &firefox{T: t, conn: conn}
	f.ask("session.new", map[string]any{"capabilities": map[string]any{}})
	f.ask("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}})
	var tree struct{ Contexts []struct{ Context string } }
	if err := json.Unmarshal(f.ask("browsingContext.getTree", map[string]any{}), &tree); err != nil || len(tree.Contexts) == 0 {
		t.Fatalf("Firefox has no tab: %v", err)
	}
	f.context = tree.Contexts[0].Context
	return f
}

// ask has Firefox do something, and returns what it answers.
func (f *firefox) ask(method string, params map[string]any) json.RawMessage {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), testkit.Patience())
	defer cancel()
	f.asked++
	text, err := json.Marshal(map[string]any{"id": f.asked, "method": method, "params": params})
	if err == nil {
		err = f.conn.Write(ctx, websocket.MessageText, text)
	}
	for err == nil {
		if _, text, err = f.conn.Read(ctx); err != nil {
			break
		}
		var m struct {
			ID             int
			Method         string
			Result, Params json.RawMessage
			Error, Message string
		}
		if err = json.Unmarshal(text, &m); err != nil {
			break
		}
		switch {
		case m.Method == "log.entryAdded":
			f.hears(m.Params)
		case m.ID == f.asked && m.Error != "":
			f.Fatalf("%s: %s: %s", method, m.Error, m.Message)
		case m.ID == f.asked:
			return m.Result
		}
	}
	f.Fatalf("%s: %v", method, err)
	return nil
}

// hears keeps what the console was told as an error.
func (f *firefox) hears(entry json.RawMessage) {
	f.Helper()
	var e struct{ Level, Text string }
	if err := json.Unmarshal(entry, &e); err != nil {
		f.Fatal(err)
	}
	if e.Level == "error" {
		f.said = append(f.said, e.Text)
	}
}

// open goes to an address.
func (f *firefox) open(url string) {
	f.Helper()
	f.ask("browsingContext.navigate", map[string]any{"context": f.context, "url": url, "wait": "complete"})
}

// tells evaluates a script, which gives a text.
func (f *firefox) tells(script string) string {
	f.Helper()
	var out struct {
		Type   string
		Result struct{ Value any }
	}
	answer := f.ask("script.evaluate", map[string]any{"expression": `String(` + script + `)`, "target": map[string]any{"context": f.context}, "awaitPromise": false})
	if err := json.Unmarshal(answer, &out); err != nil || out.Type != "success" {
		f.Fatalf("%s: %s", script, answer)
	}
	return fmt.Sprint(out.Result.Value)
}

// until waits until a condition holds in the page.
func (f *firefox) until(what, condition string) {
	f.Helper()
	for limit := time.Now().Add(testkit.Patience()); f.tells(`Boolean(`+condition+`)`) != "true"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			f.Fatalf("%s: this never came about; the page shows:\n%s", what, f.tells(`document.body.innerText`))
		}
	}
}

// types types a text into a field, which it finds empty; \r is Enter.
func (f *firefox) types(selector, text string) {
	f.Helper()
	f.until("there is "+selector, `document.querySelector(`+quote(selector)+`)`)
	f.tells(`((e) => { e.focus(); e.select(); return ""; })(document.querySelector(` + quote(selector) + `))`)
	var keys []map[string]any
	for _, letter := range strings.ReplaceAll(text, "\r", "\ue007") {
		for _, what := range []string{"keyDown", "keyUp"} {
			keys = append(keys, map[string]any{"type": what, "value": string(letter)})
		}
	}
	f.ask("input.performActions", map[string]any{"context": f.context, "actions": []map[string]any{{"type": "key", "id": "keys", "actions": keys}}})
}

// TestFirefox signs in with another browser than the usual one: with a wrong password, with the right one, with a link; sees what is shown come by itself,
// and signs out. Its console is told of no error.
func TestFirefox(t *testing.T) {
	f := startFirefox(t)
	c := start(t, testkit.Build(t), true)
	f.open(c.Ready.Web + "/jobs")
	f.types("input[name=name]", "ada")
	f.types("input[name=password]", "guess\r")
	f.until("a wrong password is refused", `document.body.innerText.includes("there is no such account, or it has another password")`)
	f.types("input[name=password]", "secret\r")
	f.until("the jobs are shown", `document.querySelectorAll(".row").length >= 5 && document.querySelector(".l-live")`)
	id := c.drover("job", "submit", "OP_TEST_DELAY", "duration=3600", "--submit")
	f.until("another one comes by itself", `document.querySelector('.row[data-id="`+id+`"]')?.innerText.includes("running")`)
	f.open(c.Ready.Web + "/deployments/1")
	f.until("a graph is drawn", `document.querySelectorAll(".graph g").length === 5`)
	f.tells(`([...document.querySelectorAll("button")].find((e) => e.innerText === "Sign out").click(), "")`)
	f.until("nobody is signed in", `document.body.innerText.includes("Sign in with an account")`)
	f.open(c.Ready.Web + c.link())
	f.until("a link signs in", `document.body.innerText.includes("Why jobs wait") && location.hash === ""`)
	f.said = slices.DeleteFunc(f.said, func(text string) bool { return strings.Contains(text, "/session") }) // which was refused
	if len(f.said) > 0 {
		t.Errorf("the console was told %q", f.said)
	}
}
