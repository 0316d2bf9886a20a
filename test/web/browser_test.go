// Package web holds the page against a real browser: Debian's chromium-headless-shell, one for all tests.
package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/drover-project/drover/internal/testkit"
)

// browser is the one browser, begun by the first test that wants it.
var browser struct {
	once      sync.Once
	path      string
	allocator context.Context
	ctx       context.Context
	err       error
}

func TestMain(m *testing.M) {
	ctx, end := context.WithCancel(context.Background())
	browser.path, _ = exec.LookPath("chromium-headless-shell") // a test that wants it says that it is missing
	dir, err := os.MkdirTemp("", "drover-browser-")
	if err != nil {
		panic(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(browser.path), chromedp.UserDataDir(dir),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, _ := chromedp.NewExecAllocator(ctx, options...)
	browser.allocator = allocator //nolint:fatcontext // one browser for all tests
	status := m.Run()
	end()
	_ = os.RemoveAll(dir) // it may still write; what is left is in a directory of its own
	os.Exit(status)
}

// person is somebody before a browser: with cookies of their own, and any number of tabs.
type person struct {
	*testing.T
	ctx  context.Context
	base string
	mu   sync.Mutex
	seen []string // what should not have happened
	// allowed are parts of messages that belong to the test: a request that is refused, a connection that is lost.
	allowed []string
}

// sitDown begins a browser session in which nobody is signed in. When the test ends nothing may have gone wrong in it.
func sitDown(t *testing.T, base string) *person {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes too long under the race detector")
	}
	if browser.path == "" {
		testkit.Missingf(t, "there is no browser (Debian's package chromium-headless-shell)")
	}
	browser.once.Do(func() {
		browser.ctx, _ = chromedp.NewContext(browser.allocator) //nolint:fatcontext // begun once; it ends with the allocator
		browser.err = chromedp.Do(browser.ctx)
	})
	if browser.err != nil {
		t.Fatalf("the browser does not begin: %v", browser.err)
	}
	p := &person{T: t, base: base}
	ctx, leave := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	p.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // else its tabs would be the browser's own, with the cookies of all
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leave()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.seen {
			t.Errorf("the browser says: %s", text)
		}
	})
	return p
}

// tab is a tab of a person's browser.
type tab struct {
	*person
	ctx context.Context
}

// tab opens another tab, 1280 wide and light unless it is said otherwise.
func (p *person) tab() *tab {
	p.Helper()
	ctx, leave := chromedp.NewContext(p.ctx)
	p.Cleanup(leave)
	t := &tab{person: p, ctx: ctx}
	if err := chromedp.Listen(ctx, p.watch); err != nil {
		p.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		p.Fatal(err)
	}
	t.size(1280, 900)
	t.colours("light")
	return t
}

// watch notes what should not happen: messages in the console, violations of the policy, requests to another host.
func (p *person) watch(event any) {
	var text string
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("console.%s", e.Type)
		for _, a := range e.Args {
			text += " " + string(a.Value)
		}
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *cdplog.EventEntryAdded:
		text = string(e.Entry.Source) + ": " + e.Entry.Text + " " + e.Entry.URL
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err == nil && (u.Scheme == "data" || "http://"+u.Host == p.base || u.Scheme == "about" || u.Scheme == "chrome-error") {
			return
		}
		text = "a request to " + e.Request.URL
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.allowed {
		if strings.Contains(text, part) {
			return
		}
	}
	p.seen = append(p.seen, text)
}

// allow has messages pass that belong to the test.
func (p *person) allow(parts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, parts...)
}

func (t *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, testkit.Patience())
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("%v\nthe page shows:\n%s", err, t.text())
	}
}

func (t *tab) size(width, height int64) { t.Helper(); t.do(chromedp.EmulateViewport(width, height)) }

// colours has the page in a scheme: light or dark.
func (t *tab) colours(scheme string) {
	t.Helper()
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		t.Fatal(err)
	}
}

// open goes to an address of the page, and waits for the first data.
func (t *tab) open(path string) {
	t.Helper()
	t.do(chromedp.Navigate(t.base + path))
	t.until("the page is ready", `document.documentElement.dataset.ready === "true"`)
}

// until waits until a condition holds in the page.
func (t *tab) until(what, condition string) {
	t.Helper()
	limit := time.Now().Add(testkit.Patience())
	for {
		ctx, cancel := context.WithTimeout(t.ctx, testkit.Patience())
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+condition+`)`))
		cancel()
		if err == nil && holds {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%s: this never came about (%v); the page shows:\n%s", what, err, t.text())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// shows waits until a text is on the page.
func (t *tab) shows(text string) {
	t.Helper()
	t.until("it shows "+text, `document.body.innerText.includes(`+quote(text)+`)`)
}

// lacks fails if something is on the page.
func (t *tab) lacks(selector string) {
	t.Helper()
	if eval[int](t, `document.querySelectorAll(`+quote(selector)+`).length`) != 0 {
		t.Errorf("there is %s; the page shows:\n%s", selector, t.text())
	}
}

func (t *tab) text() string {
	text, err := chromedp.Run(t.ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// click clicks on what a selector finds, or with a text on the first of them that has it.
func (t *tab) click(selector, text string) {
	t.Helper()
	find := `[...document.querySelectorAll(` + quote(selector) + `)].find((e) => !e.disabled && e.innerText.includes(` + quote(text) + `))`
	t.until("there is "+selector+" with "+text, find)
	eval[bool](t, `(`+find+`.click(), true)`)
}

// types types into a field.
func (t *tab) types(selector, text string) {
	t.Helper()
	t.until("there is "+selector, `document.querySelector(`+quote(selector)+`)`)
	t.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

func eval[T any](t *tab, script string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, testkit.Patience())
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}

func quote(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// shoot keeps a picture of the page in $DROVER_WEB_SHOTS, if that is set.
func (t *tab) shoot(name string) {
	t.Helper()
	dir := os.Getenv("DROVER_WEB_SHOTS")
	if dir == "" {
		return
	}
	time.Sleep(300 * time.Millisecond)
	picture, err := chromedp.Run(t.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
