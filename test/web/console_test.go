package web

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/tinyguest/tinyguesttest"
)

// machine starts a controller whose node has a Linux that comes up, guest1.
func machine(t *testing.T, bin string) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser and a machine take too long under the race detector")
	}
	guest := tinyguesttest.Guest(t)
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		testkit.Missingf(t, "qemu-system-x86_64 is not installed")
	}
	cache, data := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, "drover"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(filepath.Dir(guest.Kernel)), filepath.Join(cache, "drover", "guest")); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(cache, "users")
	if err := os.WriteFile(users, []byte("ada secret read,write\nbo secret read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bin, "dev", "--hypervisor", "kvm", "--accelerator", "tcg", "--data", data, "--rapi", "127.0.0.1:0", "--rapi-users", users, "--watch-every", "0", "--compute", "", "--mond", "")
	cmd.Env, cmd.Stderr = append(os.Environ(), "XDG_CACHE_HOME="+cache), t.Output()
	t.Cleanup(func() { endGuests(t, data) })
	c := &cluster{t, testkit.Start(t, cmd, data), bin}
	for !strings.Contains(c.drover("instance", "list", "--no-headers", "-o", "name,status"), "running") {
		if t.Context().Err() != nil {
			t.Fatal("there is no guest1")
		}
	}
	return c
}

// endGuests has no machine outlive a test: each is found by the lock that it holds.
func endGuests(t *testing.T, data string) {
	t.Helper()
	open, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		t.Error(err)
	}
	for _, descriptor := range open {
		at, err := os.Readlink(descriptor)
		if match, _ := filepath.Match(filepath.Join(data, "nodes", "*", "kvm", "*", "held"), at); err != nil || !match {
			continue
		}
		var process int
		for _, digit := range strings.Split(descriptor, "/")[2] {
			process = 10*process + int(digit-'0')
		}
		if process != os.Getpid() {
			_ = syscall.Kill(process, syscall.SIGKILL)
		}
	}
}

// prints waits until a text is in the rows that the terminal shows.
func (t *tab) prints(text string) {
	t.Helper()
	t.until("the terminal shows "+text, `document.querySelector(".xterm-rows")?.innerText.replaceAll("\u00a0", " ").includes(`+quote(text)+`)`)
}

// presses presses keys, wherever the keyboard is. Unlike tab.types it has the browser make the character of a key, or not, as that was taken.
func (t *tab) presses(keys string, modifiers ...chromedp.Modifier) {
	t.Helper()
	for _, r := range keys {
		all := kb.Encode(r)
		down, up := all[0], all[len(all)-1]
		for _, m := range modifiers {
			down.Modifiers |= int64(m)
			up.Modifiers |= int64(m)
		}
		if len(all) == 3 && down.Modifiers&int64(chromedp.ModifierCtrl) == 0 {
			down.Text, down.UnmodifiedText = all[1].Text, all[1].UnmodifiedText
		}
		for _, p := range []*input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(t.ctx, input.DispatchKeyEvent, *p); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// sitDown opens the console that the tab is at.
func (t *tab) sitDown(why string) {
	t.Helper()
	t.until("it may be opened", `document.querySelector("form.opens button:enabled")`)
	if eval[string](t, `document.querySelector("input.reason").value`) == "" {
		t.types("input.reason", why)
	}
	t.click("form.opens button", "Open the console")
	t.until("it is open", `document.querySelector(".sits button")?.innerText === "Leave" && document.activeElement.matches(".seat *")`)
}

// TestTheSerialConsole: of a machine that runs its prompt is seen, and a command typed there; what a guest prints stays in the terminal; another one takes over; the keyboard
// leaves it again; the machine stops; who may look alone sees none, and is refused; a ticket opens it once.
func TestTheSerialConsole(t *testing.T) {
	c := machine(t, testkit.Build(t))
	p := sitDown(t, c.Ready.Web)
	tab := p.tab()
	tab.open(c.link())
	tab.open("/instances/guest1.drover.example")
	if loaded := eval[int](tab, `performance.getEntriesByType("resource").filter((e) => e.name.includes("/assets/terminal-")).length`); loaded != 0 {
		t.Error("the terminal is loaded before anybody sits down")
	}
	tab.click("a.button", "Serial console")
	tab.until("it has an address", `location.pathname === "/instances/guest1.drover.example/console"`)
	tab.axe("before a console is opened")
	tab.sitDown("OPS-40: it hangs")
	tab.prints("login:")
	tab.presses("root\r")
	tab.prints("#")
	tab.presses("echo answer-$((6*7))\r")
	tab.prints("answer-42")
	if columns := eval[int](tab, `Number(document.querySelector(".keys").innerText.match(/(\d+) columns/)[1])`); columns < 80 {
		t.Errorf("it has %d columns", columns)
	}
	for _, scheme := range []string{"dark", "light"} {
		tab.colours(scheme)
		tab.axe("a console, " + scheme)
	}
	tab.presses(`printf '<img src=x onerror=alert(1)><script>document.title="taken"</script>\033]0;taken\007\033]8;;https://evil.example\007a link\033]8;;\007 \342\200\256turned \033[38;2;250;10;10mcoloured\033[m over\n'` + "\r")
	tab.prints("over")
	tab.presses("dd if=/dev/zero bs=1024 count=256 2>/dev/null | tr '\\0' 'x'; clear; echo still-$((40+2))\r")
	tab.prints("still-42")
	tab.lacks("img, script:not([type=module])")
	if title := eval[string](tab, `document.title`); !strings.HasPrefix(title, "Instances") {
		t.Errorf("the guest has called the page %q", title)
	}
	if styles := eval[int](tab, `document.querySelectorAll("style").length`); styles != 0 {
		t.Errorf("there are %d elements of styles", styles)
	}
	tab.presses("]", chromedp.ModifierCtrl)
	tab.until("the keyboard has left it", `document.activeElement.innerText === "Leave"`)
	tab.presses("\t ") // what is beside it, and that is pressed
	tab.until("it is read aloud", `document.querySelector(".xterm-accessibility")?.innerText.includes("still-42")`)
	tab.axe("a console that is read aloud")
	tab.presses(" ")
	tab.until("it is not read aloud", `!document.querySelector(".xterm-accessibility")`)

	c.copiesAndPastes(tab)
	c.takesOver(tab)
	c.mayNotOpen()
	c.opensOnce()

	tab.size(390, 844)
	tab.until("it has fewer columns", `Number(document.querySelector(".keys").innerText.match(/(\d+) columns/)[1]) < 60`)
	if wide := eval[int](tab, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("it is %d wide in 390", wide)
	}
	tab.size(1280, 900)
	c.drover("instance", "stop", "guest1.drover.example", "--timeout", "0", "--yes", "--reason", "OPS-42: enough")
	tab.shows("The machine does not run")
	tab.click(".sits button", "Leave")
	tab.sitDown("") // what it printed last is there, and the reason was remembered
	tab.prints("still-42")
	tab.presses("x")
	tab.shows("Not typed: the machine does not run")
	if events := c.drover("query", "event", "-o", "what,name,who,surface,reason", "--no-headers", "--filter", `what =~ m/^console/`); !strings.Contains(events, "console.open") || !strings.Contains(events, "OPS-40: it hangs") || !strings.Contains(events, "web") {
		t.Errorf("the events tell: %s", events)
	}
	p.allow("ERR_CONNECTION", "/session", "/stream")
	c.Kill()
	tab.until("it is lost", `document.querySelector(".wrong")?.innerText.includes("The connection is lost")`)
	tab.until("the keyboard is where it can be opened again", `document.activeElement.innerText === "Open it again"`)
}

// copiesAndPastes: what is selected with the mouse is copied by keys that the guest does not see, what is pasted is typed.
func (c *cluster) copiesAndPastes(tab *tab) {
	c.Helper()
	eval[int](tab, `(window.copied = "", navigator.clipboard.writeText = async (text) => { window.copied = text; }, document.querySelector(".xterm-helper-textarea").focus(), 1)`)
	at := eval[[]float64](tab, `((e) => { const r = document.createRange(); r.setStart(e, 0); const b = e.parentElement.getBoundingClientRect(); return [b.x + 8, b.y + b.height / 2]; })([...document.querySelectorAll(".xterm-rows span")].find((e) => e.innerText.startsWith("still-42")).firstChild)`)
	tab.do(chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	tab.presses("C", chromedp.ModifierCtrl, chromedp.ModifierShift)
	tab.until("it is copied", `window.copied === "still-42"`)
	eval[int](tab, `((d) => { d.setData("text/plain", "echo pasted-$((1+1))\n"); document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData: d, bubbles: true, cancelable: true})); return 1; })(new DataTransfer())`)
	tab.prints("pasted-2")
}

// takesOver: somebody else sits down beside who types, looks, takes over; both are told.
func (c *cluster) takesOver(first *tab) {
	c.Helper()
	p := sitDown(c.T, c.Ready.Web)
	p.allow("/session")
	second := p.tab()
	second.open("/instances/guest1.drover.example/console")
	second.types("input[name=name]", "ada")
	second.types("input[name=password]", "secret\r")
	eval[int](second, `((send) => { window.keys = 0; WebSocket.prototype.send = function (d) { if (typeof d !== "string") window.keys++; return send.call(this, d); }; return 1; })(WebSocket.prototype.send)`)
	second.sitDown("OPS-41: I know it")
	second.prints("pasted-2")
	second.shows("root types")
	first.presses(`printf '\033[c\033[6n looked-\043\n'` + "\r")
	second.prints("looked-#")
	if keys := eval[int](second, `window.keys`); keys != 0 {
		c.Errorf("who looks has typed %d times: what a terminal answers by itself", keys)
	}
	first.presses("\r")
	second.presses("y")
	second.shows("Not typed: root")
	second.click(".sits button", "Take the keyboard over")
	first.shows("ada types")
	second.until("nobody else types", `!document.querySelector(".told .warning")`)
	second.presses("echo beside-$((2+2))\r")
	second.prints("beside-4")
	first.prints("beside-4")
	second.click(".sits button", "Leave")
	first.until("the keyboard is free", `!document.querySelector(".told .warning")`)
}

// mayNotOpen: who may look alone sees no button, and at the address what it takes; asked all the same, the controller refuses.
func (c *cluster) mayNotOpen() {
	c.Helper()
	p := sitDown(c.T, c.Ready.Web)
	p.allow("/session", "403")
	tab := p.tab()
	tab.open("/instances/guest1.drover.example")
	tab.types("input[name=name]", "bo")
	tab.types("input[name=password]", "secret\r")
	tab.shows("How it is")
	tab.lacks("a.button")
	tab.open("/instances/guest1.drover.example/console")
	tab.shows("The account bo may look and change nothing")
	tab.lacks("form.opens")
	eval[int](tab, `(fetch("/api/instances/guest1.drover.example/console", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"console":"serial","reason":"x"}'}).then((r) => { window.status = r.status; }), 1)`)
	tab.until("it is refused", `window.status == 403`)
}

// opensOnce: a ticket opens a console once, for the session that asked for it alone.
func (c *cluster) opensOnce() {
	c.Helper()
	ask := func(path, cookie, body string) (set, text string) {
		q, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.Ready.Web+path, strings.NewReader(body))
		if err != nil {
			c.Fatal(err)
		}
		q.Header = http.Header{"Content-Type": {"application/json"}, "Cookie": {cookie}}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			c.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		all, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			c.Fatalf("%s: %d %s %v", path, answer.StatusCode, all, err)
		}
		set, _, _ = strings.Cut(answer.Header.Get("Set-Cookie"), ";")
		return set, string(all)
	}
	signIn := func() (cookie string) {
		cookie, _ = ask("/session", "", `{"name":"ada","password":"secret"}`)
		return cookie
	}
	ada := signIn()
	ticket := func() string {
		_, text := ask("/api/instances/guest1.drover.example/console", ada, `{"console":"serial","reason":"OPS-43"}`)
		var is struct{ Path string }
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			c.Fatal(err)
		}
		return is.Path
	}
	opens := func(path, cookie, origin string) (status int) {
		conn, answer, err := websocket.Dial(c.Context(), c.Ready.Web+path, &websocket.DialOptions{Subprotocols: []string{"drover-console"}, HTTPHeader: http.Header{"Cookie": {cookie}, "Origin": {origin}}}) //nolint:bodyclose // it has none, or was read
		if err == nil {
			_ = conn.CloseNow()
		}
		return answer.StatusCode
	}
	first, second, third := ticket(), ticket(), ticket()
	for _, try := range []struct {
		what, path, cookie, origin string
		want                       int
	}{
		{"a page of another site", first, ada, "https://evil.example", http.StatusForbidden}, {"the one that asked", first, ada, c.Ready.Web, http.StatusSwitchingProtocols},
		{"the same ticket", first, ada, c.Ready.Web, http.StatusUnauthorized}, {"another session", second, signIn(), c.Ready.Web, http.StatusUnauthorized},
		{"nobody", third, "", c.Ready.Web, http.StatusUnauthorized},
	} {
		if got := opens(try.path, try.cookie, try.origin); got != try.want {
			c.Errorf("%s: %d, not %d", try.what, got, try.want)
		}
	}
}

// TestTheScreen: of a machine that draws its screen is seen, keys go there, and the keyboard leaves it again; of one that has none the page says how it gets one.
func TestTheScreen(t *testing.T) {
	c := machine(t, testkit.Build(t))
	p := sitDown(t, c.Ready.Web)
	tab := p.tab()
	tab.open(c.link())
	tab.open("/instances/guest1.drover.example")
	tab.click("a.button", "Screen")
	tab.sitDown("OPS-45: it shows nothing")
	tab.draws()
	tab.axe("a screen")
	tab.presses("x")
	tab.click(".sits button", "Ctrl-Alt-Del")
	tab.until("keys go to it", `document.activeElement.matches(".seat canvas")`)
	// A text is typed as keys, each with its place on the keyboard, and none if one of them is on no key.
	eval[int](tab, `(window.keys = [], WebSocket.prototype.send = ((send) => function (d) { const b = [...new Uint8Array(d.buffer ?? d, d.byteOffset ?? 0, d.byteLength)]; if (b[0] === 255 && b[1] === 0 && b.length === 12) window.keys.push((b[3] ? "+" : "-") + b[11]); return send.call(this, d); })(WebSocket.prototype.send), 1)`)
	tab.click(".sits button", "Type a text")
	tab.types(".types input", "ä Öb\r")
	tab.shows("a US keyboard has no key for ä Ö")
	tab.axe("a text to type")
	eval[int](tab, `(document.querySelector(".types input").value = "", 1)`)
	tab.types(".types input", "a B?\r")
	tab.until("keys go to it again", `document.activeElement.matches(".seat canvas")`)
	if sent := eval[string](tab, `window.keys.join(" ")`); sent != "+30 -30 +57 -57 +42 +48 -48 -42 +42 +53 -53 -42" { // a, space, Shift and b, Shift and slash
		t.Errorf("the keys are %s", sent)
	}
	tab.presses("]", chromedp.ModifierCtrl)
	tab.until("the keyboard has left it", `document.activeElement.innerText === "Leave"`)
	tab.presses("\r")
	tab.until("nobody looks any more", `document.querySelector("form.opens") && !document.querySelector(".seat canvas")`)
	tab.sitDown("")
	tab.draws()
	c.drover("instance", "stop", "guest1.drover.example", "--timeout", "0", "--yes", "--reason", "OPS-46: enough")
	tab.until("its end is told", `document.querySelector(".wrong")?.innerText.includes("The machine has ended.")`)
	p.allow("/api/instances/guest1.drover.example/console") // which is refused
	c.drover("instance", "modify", "guest1.drover.example", "-H", "vga=none", "--yes", "--reason", "OPS-47: nobody looks")
	c.drover("instance", "start", "guest1.drover.example", "--reason", "OPS-47: nobody looks")
	tab.click(".sits button", "Open it again")
	tab.shows("has no screen: its hypervisor parameter vga is none")
	tab.shows("drover instance modify guest1.drover.example -H vga=std")
}

// draws waits until something is drawn on the screen.
func (t *tab) draws() {
	t.Helper()
	t.until("something is drawn", `((c) => { if (!(c?.width > 100)) return false; const copy = new OffscreenCanvas(c.width, c.height).getContext("2d"); copy.drawImage(c, 0, 0); return new Set(new Uint32Array(copy.getImageData(0, 0, c.width, c.height).data.buffer)).size > 1; })(document.querySelector(".seat canvas"))`)
}

// TestAPretendedMachineHasNoConsole: the page says so, and what to do.
func TestAPretendedMachineHasNoConsole(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	p := sitDown(t, c.Ready.Web)
	p.allow("/api/instances/web1/console") // which is refused
	tab := p.tab()
	tab.open(c.link())
	tab.open("/instances/web1/console")
	tab.types("input.reason", "OPS-44: try it\r")
	tab.shows("instance web1 has no console: the hypervisor fake of its node only pretends to run it")
	tab.axe("no console")
	tab.open("/instances/nowhere/console")
	tab.shows("Instance name nowhere not found")
	tab.open("/instances/web1/console") // a page of before, whose terminal the controller has no more
	p.allow("/assets/terminal-")
	if _, err := chromedp.Call(tab.ctx, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/assets/terminal-*", Block: true}}}); err != nil {
		t.Fatal(err)
	}
	tab.types("input.reason", "OPS-44: try it\r")
	tab.shows("what shows the console cannot be loaded")
	tab.shows("load the page anew")
}
