package web

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/fuel"
	"github.com/drover-project/drover/yaql"
)

// cluster is a controller with the page, and its command line.
type cluster struct {
	*testing.T
	*testkit.Dev
	bin string
}

// start starts a controller; with instances, jobs that wait, and one that failed, or empty.
func start(t *testing.T, bin string, full bool) *cluster {
	t.Helper()
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("ada secret read,write\nbo secret read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	compute := ""
	if full {
		compute = "127.0.0.1:0"
	}
	c := &cluster{t, testkit.StartDev(t, bin, data, "--rapi-users", users, "--compute", compute, "--mond", ""), bin}
	if !full {
		return c
	}
	c.drover("instance", "add", "web1", "--os", "noop", "--no-name-check", "--reason", "OPS-7: the shop grows")
	c.drover("instance", "add", "db1", "--os", "noop", "--no-name-check", "--reason", "OPS-8: a database")
	c.drover("filter", "add", "--action", "PAUSE", "--name", "backup", "--reason", "the databases are being backed up", "--when", `opcode: OP_ID == "OP_INSTANCE_REBOOT" and instance_name =~ m/^db/`)
	c.drover("instance", "reboot", "db1", "--submit", "--yes", "--reason", "OPS-9: new kernel")
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=3600", "--submit", "--reason", "a long night")
	c.fails("job", "submit", "OP_TEST_DELAY", "duration=0", `on_nodes=["nowhere.example"]`)
	c.theShop()
	c.drover("deploy", "plan", "shop", "--save", "--task", "packages,database", "--reason", "OPS-23: less")
	c.drover("server", "create", "front", "--flavor", "m1.diskless", "--image", "noop", "--tag", "shop", "--wait")
	c.drover("network", "add", "lan", "--network", "192.0.2.0/24", "--gateway", "192.0.2.1", "--reason", "OPS-80: addresses for the shop")
	c.drover("network", "connect", "lan", "default", "bridged", "br0", "--reason", "OPS-80: addresses for the shop")
	return c
}

// drover runs the command line on the controller.
func (c *cluster) drover(args ...string) string {
	c.Helper()
	out, err := c.run(args...)
	if err != nil {
		c.Fatalf("drover %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (c *cluster) fails(args ...string) {
	c.Helper()
	if out, err := c.run(args...); err == nil {
		c.Fatalf("drover %s does not fail: %s", strings.Join(args, " "), out)
	}
}

func (c *cluster) run(args ...string) (string, error) {
	cmd := exec.CommandContext(c.Context(), c.bin, append([]string{"--luxi", c.Ready.LUXI}, args...)...)
	if args[0] == "server" { // as a user of the Compute API
		cmd = exec.CommandContext(c.Context(), c.bin, args...)
		cmd.Env = append(os.Environ(), "OS_AUTH_URL="+c.Ready.Identity, "OS_USERNAME="+c.Ready.ComputeUser, "OS_PASSWORD="+c.Ready.ComputePassword, "OS_PROJECT_NAME="+c.Ready.ComputeProject)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// link is the part of an address that signs in.
func (c *cluster) link() string {
	_, code, _ := strings.Cut(c.drover("web", "--print"), "#")
	return "/#" + code
}

// screens are the addresses of all of them, with what each shows of a full cluster.
func screens(node, server string) map[string]string {
	return map[string]string{
		"now": "/", "jobs": "/jobs", "job": "/jobs/3", "failed": "/jobs/5", "instances": "/instances", "create": "/create", "instance": "/instances/web1", "nodes": "/nodes", "node": "/nodes/" + node, "rules": "/rules",
		"query": "/query", "grouped": "/query?item=job&by=status&figures=count,max(id)", "audit": "/audit", "event": "/audit/1",
		"deployments": "/deployments", "deployment": "/deployments/1?task=database", "environment": "/environments/shop?plan=now", "compare": "/compare/1/2",
		"servers": "/servers", "server": "/servers/" + server,
		"groups": "/groups", "group": "/groups/default", "networks": "/networks", "network": "/networks/lan",
	}
}

// server is the id of the first server, if there is one.
func (c *cluster) server() string {
	return strings.Join(strings.Fields(c.drover("query", "server", "--no-headers", "-o", "id")), "")
}

// TestSignIn: with an account, after a wrong password; with a link, once; and out again.
func TestSignIn(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	p := sitDown(t, c.Ready.Web)
	p.allow("/session") // which is refused while nobody is signed in
	tab := p.tab()
	tab.open("/jobs")
	tab.types("input[name=name]", "ada")
	tab.types("input[name=password]", "guess\r")
	tab.shows("there is no such account, or it has another password")
	tab.types("input[name=password]", "secret\r")
	tab.until("the jobs are shown", `document.querySelector("main.list")`)
	if at := eval[string](tab, `location.pathname`); at != "/jobs" {
		t.Errorf("after signing in it is at %s", at)
	}
	tab.click("button", "Sign out")
	tab.shows("Sign in with an account")
	link := c.link()
	tab.open(link)
	tab.shows("Why jobs wait")
	if hash := eval[string](tab, `location.hash`); hash != "" {
		t.Errorf("the code stays in the address: %s", hash)
	}
	stranger := sitDown(t, c.Ready.Web)
	stranger.allow("/session")
	other := stranger.tab()
	other.open(link)
	other.shows("the link is over")
}

// TestScreens opens each screen by its address alone, light and dark, with data and without, and has axe look at it.
func TestScreens(t *testing.T) {
	bin := testkit.Build(t)
	for _, full := range []bool{true, false} {
		c := start(t, bin, full)
		node := strings.Fields(c.drover("node", "list", "--no-headers", "-o", "name"))[0]
		tab := sitDown(t, c.Ready.Web).tab()
		tab.open(c.link())
		tab.shows("Why jobs wait")
		for name, path := range screens(node, c.server()) {
			if !full && (name == "job" || name == "failed" || name == "instance" || name == "grouped" || name == "event" || name == "deployment" || name == "environment" || name == "compare" || name == "server" || name == "network") {
				continue
			}
			for _, scheme := range []string{"light", "dark"} {
				tab.colours(scheme)
				tab.open(path)
				tab.axe(fmt.Sprintf("%s, %s, with data: %v", path, scheme, full))
			}
			if !full && name != "node" && name != "nodes" && name != "groups" {
				tab.until(path+" says what to do first", `document.querySelector(".empty, .rulelist")`)
			}
			tab.size(320, 700)
			if wide := eval[int](tab, `document.documentElement.scrollWidth`); wide > 320 {
				t.Errorf("%s is %d wide in 320", path, wide)
			}
			tab.size(1280, 900)
		}
	}
}

// axe fails for what keeps people with screen readers, or poor sight, out.
func (t *tab) axe(where string) {
	t.Helper()
	script, err := os.ReadFile("testdata/axe-core-4.14.1.min.js")
	if err != nil {
		t.Fatal(err)
	}
	eval[int](t, string(script)+`;1`)
	eval[int](t, `(window.found = undefined, axe.run(document, {resultTypes: ["violations"]}).then((r) => { window.found = JSON.stringify(r.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => v.id + ": " + v.nodes.map((n) => n.html.slice(0, 200) + " " + (n.any[0]?.message ?? "")).join(" | "))); }), 1)`)
	t.until("axe has looked", `window.found`)
	var wrong []string
	if err := json.Unmarshal([]byte(eval[string](t, `window.found`)), &wrong); err != nil {
		t.Fatal(err)
	}
	for _, text := range wrong {
		t.Errorf("axe at %s: %s", where, text)
	}
}

// TestTheWalkThrough: who never saw the page finds what holds the oldest job that waits, without a click.
func TestTheWalkThrough(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.shows("rule backup")
	tab.shows("the databases are being backed up")
	tab.shows("drover filter delete backup")
	// Whatever else jobs wait for comes by itself, and is named.
	delay := func(more ...string) string {
		return c.drover(append([]string{"job", "submit", "OP_TEST_DELAY", "duration=3600", "--submit"}, more...)...)
	}
	named := func(holder string) {
		t.Helper()
		tab.until("a group names "+holder, `[...document.querySelectorAll(".holds .holder")].some((e) => e.innerText === `+quote(holder)+`)`)
	}
	taking := []string{"no_locks=false", "on_master=false", "on_nodes=" + c.node()}
	holder := delay(taking...)
	delay(taking...)
	named("lock node/" + c.node() + " of job " + holder)
	delay("--depend", "3")
	named("job 3")
	delay("--reason", "rate-limit:1:lab")
	delay("--reason", "rate-limit:1:lab")
	named("limit 1 of lab")
	c.drover("cluster", "modify", "--max-running-jobs", "1", "--reason", "OPS-60: quiet")
	delay()
	named("slot")
	c.drover("job", "drain", "--yes", "--reason", "OPS-61: the store is moved")
	tab.until("it is told that no job is taken, and why", `document.querySelector(".health")?.innerText.match(/takes no new jobs[^]*OPS-61: the store is moved/)`)
}

// TestTheLastHours: charts count the jobs of the last six hours, and lead to those that failed, without loading the page anew.
func TestTheLastHours(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	chart := func(title, says string) {
		t.Helper()
		tab.until(title+" "+says, fmt.Sprintf(`[...document.querySelectorAll(".hours svg")].some((e) => e.getAttribute("aria-label") === %q)`, title+", "+says))
	}
	for _, title := range []string{"Jobs that came", "Jobs that ended", "How long until they began"} {
		chart(title, "nothing within six hours")
	}
	for range 3 {
		c.drover("job", "submit", "OP_TEST_DELAY", "duration=0.001")
	}
	c.fails("job", "submit", "OP_TEST_DELAY", "duration=0", `on_nodes=["nowhere.example"]`)
	tab.until("four jobs ended", `/at most [1-4] jobs? in ten minutes/.test(document.querySelectorAll(".hours svg")[1]?.getAttribute("aria-label"))`)
	tab.until("one of them failed", `[...document.querySelectorAll(".hours .c-bad title")].some((e) => e.textContent.includes("1 job failed"))`)
	eval[bool](tab, `window.here = true`)
	eval[bool](tab, `document.querySelector(".hours a").dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`)
	tab.until("the job that failed is shown", `document.querySelector("main.list") && document.querySelectorAll('[data-id]').length === 1 && document.querySelector('[data-id="4"]')`)
	if !eval[bool](tab, `window.here === true`) {
		t.Error("the page was loaded anew")
	}
}

// TestAJobFromItsBeginningToItsEnd is seen without loading the page anew, in two tabs.
func TestAJobFromItsBeginningToItsEnd(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	p := sitDown(t, c.Ready.Web)
	list := p.tab()
	list.open(c.link())
	list.open("/jobs")
	list.shows("No job was submitted yet")
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--reason", "OPS-1: look")
	list.until("the job runs", `document.querySelector('[data-id="1"]')?.innerText.includes("running")`)
	one := p.tab()
	one.open("/jobs/1")
	one.shows("OPS-1: look")
	one.click("button", "Cancel")
	one.types("dialog input.reason", "OPS-2: enough\r")
	one.until("it is told what came of it", `document.querySelector("dialog [role=status]")`)
	one.click("dialog button", "Close")
	c.drover("job", "cancel", "1", "--kill", "--yes", "--reason", "OPS-3: now")
	for _, tab := range []*tab{list, one} {
		tab.until("the job has ended", `document.querySelector('[data-id="1"]')?.innerText.match(/canceled|error/)`)
	}
	if events := c.drover("query", "event", "-o", "what,who,surface,reason", "--no-headers"); !strings.Contains(events, "web") || !strings.Contains(events, "OPS-2: enough") {
		t.Errorf("the events tell nothing of the page: %s", events)
	}
}

// TestWhatJobsWaitFor: as a picture, to the end of the line, from which one goes to the others by mouse and keys; it changes by itself, and is told in words.
func TestWhatJobsWaitFor(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	delay := []string{"job", "submit", "OP_TEST_DELAY", "duration=600", "no_locks=false", "on_master=false", "on_nodes=" + c.node(), "--submit", "--reason", "OPS-50: in line"}
	for range 3 {
		c.drover(delay...)
	}
	c.drover(append(delay, "--depend", "3")...)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/jobs/4")
	tab.until("the line is drawn", `document.querySelectorAll("#around svg a").length === 4 && document.querySelectorAll("#around svg .head").length >= 4`)
	tab.shows("drover job explain 4")
	for _, scheme := range []string{"light", "dark"} {
		tab.colours(scheme)
		tab.axe("what a job waits for, " + scheme)
		tab.shoot("around-1280-" + scheme)
		tab.size(390, 844)
		tab.until("it goes downwards", `document.querySelector("#around svg")?.getBoundingClientRect().width < 390`)
		if wide := eval[int](tab, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("it is %d wide in 390", wide)
		}
		tab.do(chromedp.ScrollIntoView(chromedp.CSS("#around")))
		tab.shoot("around-390-" + scheme)
		tab.size(1280, 900)
	}
	tab.click("#around summary", "The same in words")
	tab.shows("job 3 ◔ waiting comes behind job 2 ◔ waiting")
	tab.shows("job 4 ◌ queued waits for the end of job 3 ◔ waiting")
	eval[int](tab, `(document.querySelector('#around svg a[href="/jobs/1"]').focus(), 1)`)
	tab.do(chromedp.KeyEvent("\r"))
	tab.until("it goes there", `location.pathname === "/jobs/1" && document.querySelectorAll('#around svg a[href="/jobs/2"], #around svg a[href="/jobs/3"]').length === 2`)
	c.drover("job", "cancel", "2", "--yes", "--reason", "OPS-51: not this one")
	tab.until("who waits no more goes by itself", `document.querySelectorAll('#around svg a[href="/jobs/2"]').length === 0 && document.querySelector('#around svg a[href="/jobs/3"]')`)
	eval[bool](tab, `document.querySelector("#around svg a.g-lock").dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`)
	tab.until("the lock is shown", `location.pathname === "/query" && document.querySelector(".row")?.innerText.includes("exclusive")`)
}

// TestARule is foreseen while it is typed, added, seen to hold a job, and taken away.
func TestARule(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	p := sitDown(t, c.Ready.Web)
	p.allow("/api/rules/preview") // what was typed last is asked about a moment later, when the rule may be there and its name taken
	tab := p.tab()
	tab.open(c.link())
	tab.open("/rules")
	tab.types("textarea.when", `opcode: OP_ID == "OP_INSTANCE_SHUTDOWN"`)
	tab.until("it is foreseen", `document.querySelector(".effect")?.innerText.includes("would")`)
	tab.types(`input[placeholder=rack3]`, "evening")
	tab.click("button", "Add the rule…")
	tab.types("dialog input.reason", "OPS-4: nobody stops anything\r")
	tab.shows("The rule evening is in force")
	tab.click("dialog button", "Close")
	c.drover("instance", "stop", "web1", "--submit", "--yes", "--reason", "OPS-5: stop it")
	tab.until("it holds a job", `[...document.querySelectorAll(".rulelist > li")].some((e) => e.innerText.includes("evening") && e.innerText.includes("holds 1 now"))`)
	tab.until("it can be deleted", `[...document.querySelectorAll(".rulelist > li")].find((e) => e.innerText.includes("evening"))?.querySelector("button")`)
	eval[int](tab, `([...document.querySelectorAll(".rulelist > li")].find((e) => e.innerText.includes("evening")).querySelector("button").click(), 1)`)
	tab.until("what that would do is shown", `document.querySelector("dialog .effect")`)
	tab.types("dialog input.reason", "OPS-6: the evening is over\r")
	tab.shows("The rule is gone.")
	tab.open("/instances/web1")
	tab.until("the job went on", `document.querySelector("h1")?.innerText.includes("ADMIN_down")`)
}

// TestReadOnly: who may only look sees no button that would fail, and everything else.
func TestReadOnly(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	p := sitDown(t, c.Ready.Web)
	p.allow("/session")
	tab := p.tab()
	tab.open("/")
	tab.types("input[name=name]", "bo")
	tab.types("input[name=password]", "secret\r")
	tab.shows("bo (read only)")
	tab.shows("rule backup")
	tab.open("/jobs/3")
	tab.shows("paused by filter rule backup")
	tab.lacks(".head .buttons button")
	tab.open("/jobs?filter=id+%3E+0")
	tab.until("the jobs are there", `document.querySelector(".row")`)
	tab.lacks(".head button:not(.command)")
	tab.open("/rules")
	tab.lacks("#editor")
	tab.lacks(".rulelist button")
}

// TestTheConnectionIsLost: the page says so, and how old what it shows is; and goes on by itself when the controller is back.
func TestTheConnectionIsLost(t *testing.T) {
	bin := testkit.Build(t)
	dir := t.TempDir()
	users := filepath.Join(dir, "users")
	if err := os.WriteFile(users, []byte("ada secret read,write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(web string) *testkit.Dev {
		return testkit.StartDev(t, bin, filepath.Join(dir, "data"), "--rapi-users", users, "--compute", "", "--mond", "", "--web", web)
	}
	d := begin("127.0.0.1:0")
	p := sitDown(t, d.Ready.Web)
	p.allow("/session", "/stream", "ERR_CONNECTION")
	tab := p.tab()
	signIn := func() {
		tab.types("input[name=name]", "ada")
		tab.types("input[name=password]", "secret\r")
		tab.shows("Why jobs wait")
		tab.until("it is live", `document.querySelector(".l-live")`)
	}
	tab.open("/")
	signIn()
	d.Kill()
	tab.shows("The connection is lost. What is shown is")
	tab.shows("Why jobs wait")
	begin(strings.TrimPrefix(d.Ready.Web, "http://"))
	tab.shows("Sign in with an account") // the controller is another one, which knows no sessions
	signIn()
}

// TestHostileTextIsText: markup, control characters, marks that turn text around, and very long texts.
func TestHostileTextIsText(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	const markup = `<img src=x onerror="document.title='taken'"><script>document.title="taken"</script>`
	why := markup + "\u202e turned \u0007" + strings.Repeat("long ", 2000)
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--reason", why)
	c.drover("filter", "add", "--action", "PAUSE", "--all-jobs", "--yes", "--reason", why)
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit")
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--depend", "2", "--reason", markup)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	for _, path := range []string{"/", "/jobs", "/jobs/1", "/jobs/3", "/query", "/query?item=job&by=reason", "/audit", "/audit/1"} {
		tab.open(path)
		tab.shows(`<img src=x onerror=`)
		if n := eval[int](tab, `document.querySelectorAll("img, script:not([type=module])").length`); n != 0 {
			t.Errorf("%s: text became %d elements", path, n)
		}
		if title := eval[string](tab, `document.title`); title == "taken" {
			t.Errorf("%s: a text was run", path)
		}
		if wide := eval[int](tab, `document.documentElement.scrollWidth`); wide > 1280 {
			t.Errorf("%s is %d wide", path, wide)
		}
	}
}

// TestAnAddressHasItsFilter: the rows that the filter of an address lets through, the filter in its box, and what it may go on with.
func TestAnAddressHasItsFilter(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	c.drover("filter", "add", "--action", "PAUSE", "--all-jobs", "--yes", "--reason", "hold them")
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=1", "--submit")
	c.drover("debug", "delay", "1", "--submit")
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/jobs?filter=" + `status+%3D%3D+%22queued%22`)
	tab.until("both are there", `document.querySelectorAll(".row").length === 2`)
	if eval[string](tab, `document.querySelector("input.filter").value`) != `status == "queued"` {
		t.Error("the filter is not in the box")
	}
	tab.types("input.filter", " and prio")
	tab.shows("Most urgent priority among")
	c.drover("job", "cancel", "2", "--yes", "--reason", "OPS-52: one is enough")
	tab.open("/jobs")
	tab.types("input.filter", "status == ")
	tab.until("the values are offered that there are", `[...document.querySelectorAll("#completions b")].map((e) => e.innerText).join() === '"canceled","queued"'`)
	tab.axe("values of a field")
	tab.types("input.filter", "que")
	tab.until("what fits is left", `document.querySelectorAll("#completions li").length === 1`)
	tab.types("input.filter", "\t\r")
	tab.until("it is the filter", `new URLSearchParams(location.search).get("filter") === 'status == "queued"' && document.querySelectorAll(".row").length === 1`)
	tab.types("input.filter", " and id >= ")
	tab.until("numbers are offered, too", `[...document.querySelectorAll("#completions b")].map((e) => e.innerText).join() === "1,2"`)
	tab.types("input.filter", "\x1b")
	tab.types("input.filter", `1 and nope == "x`)
	tab.lacks("#completions li")
}

// TestManyJobsAreCancelled: by the filter of the address, after it was shown which they are; another one that comes meanwhile is not cancelled unseen.
func TestManyJobsAreCancelled(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	c.drover("filter", "add", "--action", "PAUSE", "--all-jobs", "--yes", "--reason", "hold them")
	for range 2 {
		c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--reason", "OPS-77: a flood")
	}
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--reason", "OPS-78: dear")
	p := sitDown(t, c.Ready.Web)
	p.allow("/api/jobs/cancel") // which is refused once
	tab := p.tab()
	tab.open(c.link())
	tab.open("/jobs")
	tab.until("all are there", `document.querySelectorAll(".row").length === 3`)
	tab.lacks(".head button:not(.command)") // without a filter there is no button
	tab.open("/jobs?filter=" + url.QueryEscape(`reason =~ m/OPS-77/`))
	tab.click("button", "Cancel all that fit")
	tab.shows("2 jobs: 2 of them would end at once")
	tab.axe("cancelling many")
	tab.shoot("cancel-1280-light")
	c.drover("job", "submit", "OP_TEST_DELAY", "duration=600", "--submit", "--reason", "OPS-77: one more")
	tab.types("dialog input.reason", "OPS-79: it was a mistake\r")
	tab.shows("job 4 fits by now, too, which the preview did not show")
	tab.shows("3 jobs: 3 of them would end at once")
	tab.click("dialog button", "Cancel 3 jobs")
	tab.shows("3 were cancelled.")
	tab.click("dialog button", "Close")
	tab.until("the list shows it", `[...document.querySelectorAll(".row")].filter((r) => r.innerText.includes("canceled")).length === 3`)
	if left := c.drover("query", "job", "--no-headers", "-o", "id", "--filter", `status == "queued"`); left != "3" {
		t.Errorf("there are left: %s", left)
	}
}

// TestAnyQuestion: an item is chosen, fields by what they mean, groups, a filter; it goes on by itself, and can be sent on, explained and kept as a file.
func TestAnyQuestion(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/query")
	tab.until("jobs are shown", `document.querySelectorAll(".row").length >= 5`)
	eval[int](tab, `((s) => { s.value = "instance"; s.dispatchEvent(new Event("change", {bubbles: true})); return 1; })(document.querySelector("select"))`)
	tab.until("instances are shown", `location.search === "?item=instance" && document.querySelector('.row')?.innerText.includes("db1")`)
	tab.types(`input[aria-label=Fields]`, "disk_temp")
	tab.shows("Type that all its disks have")
	tab.types(`input[aria-label=Fields]`, "\tname\r")
	tab.until("the fields are in the address", `new URLSearchParams(location.search).get("fields") === "disk_template,name"`)
	tab.until("there are two columns, the first with what it means", `document.querySelectorAll(".titles > *").length === 2 && document.querySelector(".titles button").title.startsWith("Type that all its disks have")`)
	tab.types("input.filter", "name =~ m/^web2$/\r")
	tab.shows("Nothing fits the filter.")
	c.drover("instance", "add", "web2", "--os", "noop", "--no-name-check", "--reason", "OPS-11: one more")
	tab.until("the new one comes by itself", `document.querySelector(".row")?.innerText.includes("web2")`)
	tab.click("summary", "How it is carried out")
	tab.shows("4 considered (all looked at), 1 left by the filter")
	file := eval[string](tab, `document.querySelector("a[download]").getAttribute("href")`)
	eval[int](tab, `(fetch(`+quote(file)+`).then((r) => r.text()).then((t) => { window.file = t; }), 1)`)
	tab.until("the file is there", `window.file`)
	want := c.drover("query", "instance", "-o", "disk_template,name", "--filter", `name =~ m/^web2$/`, "--output", "csv")
	if got := strings.TrimSpace(eval[string](tab, `window.file`)); got != want {
		t.Errorf("the file has %q, the command line says %q", got, want)
	}
	tab.open("/query?item=job&by=status&figures=count,max(id)&sort=-count")
	tab.until("there are groups", `document.querySelectorAll(".row").length === 4`)
	tab.shows("drover query job --group-by status --figures 'count,max(id)' --sort -count")
	tab.open("/query?item=job&fields=id,nope")
	tab.shows(`job has no field "nope"`)
	tab.open("/query?item=moon")
	tab.shows(`there is no kind of item "moon"`)
}

// theShop stores a task graph and an environment of three nodes, whose tasks each take the controller's own node.
func (c *cluster) theShop() {
	c.Helper()
	dir := c.TempDir()
	node := strings.Fields(c.drover("node", "list", "--no-headers", "-o", "name"))[0]
	const graph = `
- {id: pre_deployment, type: stage}
- {id: packages, type: shell, version: 2.1.0, role: '*', requires: [pre_deployment], parameters: {cmd: "true"}}
- {id: database, type: shell, version: 2.1.0, role: [db], requires: [packages], condition: {yaql_exp: 'changed($.color)'}, parameters: {cmd: {yaql_exp: '"echo " + $.password'}}}
- {id: shop, type: shell, version: 2.1.0, role: [web], requires: [packages], cross-depends: [{name: database}], parameters: {cmd: "true"}}
- {id: smoke_test, type: shell, version: 2.1.0, role: [web], requires: [shop], parameters: {cmd: "true"}}
`
	env := fmt.Sprintf("common: {password: correct-horse, color: red}\nnodes: {'1': {uid: '1', roles: [web]}, '2': {uid: '2', roles: [web]}, '3': {uid: '3', roles: [db]}}\nhosts: {'1': %s, '2': %s, '3': %s}\n", node, node, node)
	for name, text := range map[string]string{"graph.yaml": graph, "env.yaml": env} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			c.Fatal(err)
		}
	}
	c.drover("deploy", "graph", "put", "shop", filepath.Join(dir, "graph.yaml"), "--reason", "OPS-20: the shop")
	c.drover("deploy", "env", "put", "shop", filepath.Join(dir, "env.yaml"), "--graph", "shop", "--reason", "OPS-20: the shop")
	c.drover("deploy", "plan", "shop", "--save", "--reason", "OPS-21: first time")
}

// TestADeployment is planned, looked at, held by a rule, and run to its end without loading the page anew; what is secret is told nowhere.
func TestADeployment(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	p := sitDown(t, c.Ready.Web)
	p.allow("/api/deployments/9/") // of which there is none
	tab := p.tab()
	tab.open(c.link())
	tab.open("/deployments")
	tab.shows("Nothing was deployed yet.")
	c.theShop()
	tab.until("the plan comes by itself", `document.querySelector('.row[data-id="1"]')?.innerText.includes("planned")`)
	tab.click("[role=cell] a", "1")
	tab.shows("drover deploy run --plan 1")
	tab.until("the graph is drawn", `document.querySelectorAll(".graph g").length === 5 && document.querySelectorAll(".graph path").length >= 4`)
	tab.click(".tasks a", "database")
	tab.until("it says why it runs", `document.querySelector("#nodes")?.innerText.includes("$.color was never there")`)
	if task := eval[string](tab, `new URLSearchParams(location.search).get("task")`); task != "database" {
		t.Errorf("the address has the task %q", task)
	}
	tab.click("#nodes summary", "Parameters")
	tab.shows("drover deploy explain 1 database 3")
	c.drover("filter", "add", "--action", "PAUSE", "--name", "freeze", "--all-jobs", "--yes", "--reason", "OPS-22: nothing goes on")
	c.drover("deploy", "run", "--plan", "1", "--submit", "--yes", "--reason", "OPS-23: now")
	tab.until("what holds it is told", `document.querySelector(".deployment")?.innerText.includes("OPS-22: nothing goes on") && document.querySelector(".g-held")`)
	c.drover("filter", "delete", "freeze", "--yes", "--reason", "OPS-24: go on")
	tab.until("it is seen to its end", `document.querySelector("h1")?.innerText.includes("ready") && document.querySelectorAll(".g-ready").length === 4`)
	if text := tab.text(); strings.Contains(text, "correct-horse") {
		t.Errorf("a secret is on the page: %s", text)
	}
	tab.open("/deployments/9")
	tab.shows("All deployments")
}

// TestADeploymentIsBegunHere: it is planned on the page, begun as it was shown, seen, stopped, and let go on; what has changed meanwhile is not begun unseen.
func TestADeploymentIsBegunHere(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	c.theShop()
	p := sitDown(t, c.Ready.Web)
	p.allow("/api/deployments") // which is refused once
	tab := p.tab()
	tab.open(c.link())
	tab.open("/deployments")
	tab.click(".tiles a", "shop")
	tab.shows("Nothing is stored, and nothing is begun")
	tab.types("#plan input[name=only]", "packages database")
	tab.click("#plan button", "Plan")
	tab.shows("4 of 9 tasks run, on 3 nodes")
	tab.shows("drover deploy plan shop --task 'packages,database'")
	tab.axe("a plan")
	tab.open("/environments/shop?plan=now")
	tab.until("what runs is shown with why", `document.querySelector('#plan [data-id="database"]')?.innerText.includes("$.color was never there")`)
	tab.shows("8 of 9 tasks run, on 3 nodes")
	tab.until("it is drawn", `document.querySelectorAll("#plan .graph g").length === 5 && document.querySelectorAll("#plan .graph path").length >= 4 && document.querySelectorAll("#plan .g-skipped").length === 1`)
	eval[bool](tab, `document.querySelector('#plan .graph g[data-task="database"]').dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))`)
	tab.until("a task that is chosen says why it would run", `document.querySelector("#plan .effect.chosen")?.innerText.match(/database would run on 1 node[^]*\$.color was never there/) && document.querySelectorAll("#plan .graph .way").length > 0`)
	tab.axe("the picture of a plan")
	tab.shoot("plan-1280-light")
	tab.click("#plan button", "Begin…")
	c.drover("deploy", "node", "put", "shop", "4", c.file("four.yaml", "roles: [web]\n"), "--host", c.node(), "--reason", "OPS-24: one more")
	tab.types("dialog input.reason", "OPS-25: now\r")
	tab.shows("was computed from a state that has moved on")
	tab.until("what it would be now is shown", `document.querySelector("dialog .sentence")?.innerText.includes("11 of 12 tasks run, on 4 nodes")`)
	tab.axe("a plan that is asked about")
	c.drover("filter", "add", "--action", "PAUSE", "--name", "freeze", "--all-jobs", "--yes", "--reason", "OPS-22: nothing goes on")
	tab.click("dialog button", "Begin")
	tab.until("it is seen", `location.pathname === "/deployments/2" && document.querySelector(".g-held")`)
	tab.shows("OPS-25: now")
	tab.click(".head button", "Stop…")
	tab.shows("Nothing more of it begins.")
	tab.types("dialog input.reason", "OPS-26: wait\r")
	tab.click("dialog button", "Close")
	tab.until("it is stopped", `document.querySelector("h1")?.innerText.includes("stopped")`)
	c.drover("filter", "delete", "freeze", "--yes", "--reason", "OPS-27: go on")
	tab.click(".head button", "Go on…")
	tab.types("dialog input.reason", "OPS-28: go on\r")
	tab.click("dialog button", "Close")
	tab.until("it is seen to its end", `document.querySelector("h1")?.innerText.includes("ready")`)
	tab.lacks(".head .buttons button")
	if events := c.drover("query", "event", "-o", "what,surface,reason", "--no-headers"); !strings.Contains(events, "OPS-26: wait") || !strings.Contains(events, "OPS-28: go on") {
		t.Errorf("the events tell nothing of it: %s", events)
	}
	reader := sitDown(t, c.Ready.Web)
	reader.allow("/session")
	other := reader.tab()
	other.open("/environments/shop?plan=now")
	other.types("input[name=name]", "bo")
	other.types("input[name=password]", "secret\r")
	other.shows("10 of 12 tasks run, on 4 nodes")
	other.open("/environments/shop?plan=now&force=yes&only=database")
	other.shows("drover deploy run shop --task database --force")
	other.lacks("#console")
	if eval[bool](other, `[...document.querySelectorAll("#plan button")].some((b) => b.innerText.includes("Begin"))`) {
		t.Error("who may only look can begin it")
	}
	other.open("/deployments/1")
	other.shows("the environment is at generation 2")
	other.lacks(".head .buttons button")
}

// TestAnExpression is evaluated over the states of an environment; what is wrong with one is told with its place, at which the caret is then.
func TestAnExpression(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/environments/shop")
	choose := func(name, value string) {
		t.Helper()
		tab.until(value+" can be chosen", `document.querySelector("#console select[name=`+name+`] option[value='`+value+`']")`)
		eval[int](tab, `((s) => { s.value = "`+value+`"; return 1; })(document.querySelector("#console select[name=`+name+`]"))`)
	}
	write := func(text string) {
		t.Helper()
		eval[int](tab, `(document.querySelector("#console textarea").value = "", 1)`)
		tab.types("#console textarea", text)
	}
	choose("node", "3")
	write("$.roles\r")
	tab.until("it has a value", `document.querySelector("#console pre.value")?.innerText.includes('"db"')`)
	tab.shows(`drover deploy console shop --node 3 -e '$.roles'`)
	choose("old", "1")
	write("changed($.color)\r")
	tab.until("it is told what was compared", `document.querySelector("#console .rows")?.innerText.match(/\$\.color[^]*is the same/)`)
	tab.shows("--old 1 -e 'changed($.color)'")
	write("$.password\r")
	tab.until("what is secret is hidden", `document.querySelector("#console pre.value")?.innerText.includes("<redacted>")`)
	write("$.color.nope()\r")
	tab.until("what is wrong is told with its place", `document.querySelector("#console .wrong")?.innerText.match(/nope[^]*line 1, column 9/) && document.activeElement.selectionStart === 8`)
	for _, scheme := range []string{"light", "dark"} {
		tab.colours(scheme)
		tab.axe("an expression, " + scheme)
		tab.do(chromedp.ScrollIntoView(chromedp.CSS("#console")))
		tab.shoot("expression-1280-" + scheme)
	}
	address := eval[string](tab, `location.pathname + location.search`)
	tab.open(address)
	tab.until("its address has it", `document.querySelector("#console textarea").value === "$.color.nope()" && document.querySelector("#console select[name=node]").value === "3"`)
}

// TestAnInstanceIsMadeHere: where it would go is shown while one types, and what is done to it later is shown first; what does not come back wants its name.
func TestAnInstanceIsMadeHere(t *testing.T) {
	c := start(t, testkit.Build(t), false)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/instances")
	tab.click(".head a", "Create…")
	tab.types("input[name=name]", "web1")
	tab.types("input[name=os]", "noop")
	tab.types("input[name=memory]", "256M")
	tab.shows("It would go to")
	tab.until("each node is told of", `document.querySelectorAll(".placement .rows li").length === 2`)
	tab.shows("drover instance add web1 --os noop -B 'memory=256M'")
	tab.axe("a new instance")
	tab.types("main input.reason", "OPS-30: a shop\r")
	tab.until("its job is seen to its end", `location.pathname === "/jobs/1" && document.querySelector("h1")?.innerText.includes("success")`)
	tab.shows("OPS-30: a shop")
	tab.open("/instances/web1")
	tab.click(".operations button", "Stop…")
	tab.until("what it would do is shown", `document.querySelector("dialog .steps")?.innerText.includes("stop instance web1")`)
	tab.axe("what would be done to an instance")
	tab.types("dialog input.reason", "OPS-31: it is late\r")
	tab.until("its job is seen to its end", `location.pathname === "/jobs/2" && document.querySelector("h1")?.innerText.includes("success")`)
	tab.open("/instances/web1")
	tab.until("it is stopped", `document.querySelector("h1")?.innerText.includes("ADMIN_down")`)
	tab.click(".operations button", "Remove…")
	tab.types("dialog input.reason", "OPS-32: it is over")
	tab.until("it is not done without its name", `document.querySelector("dialog button.first")?.disabled && document.querySelector("dialog .steps")`)
	tab.types("dialog input[name=typed]", "web1\r")
	tab.until("its job is seen to its end", `location.pathname === "/jobs/3" && document.querySelector("h1")?.innerText.includes("success")`)
	tab.open("/nodes/" + c.node())
	tab.click(".operations button", "Drain…")
	tab.shows("The master role")
	if rows := c.drover("instance", "list", "--no-headers", "-o", "name"); rows != "" {
		t.Errorf("there still is %s", rows)
	}
}

// TestTwoPlans are compared: what only one of them runs, and what was different.
func TestTwoPlans(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/deployments/2")
	tab.click(".chips a", "deployment 1")
	tab.until("it says what only the first one runs", `location.pathname === "/compare/1/2" && document.querySelector('[data-id="smoke_test"]')`)
	tab.shows("Only deployment 1 runs")
	tab.shows("drover deploy diff --tasks 1 2")
	tab.open("/compare/1/1")
	tab.shows("Both run the same, for the same reasons.")
	tab.open("/compare/2")
	tab.types("input[name=after]", "1\r")
	tab.until("the other one is asked for", `location.pathname === "/compare/2/1" && document.querySelector('[data-id="smoke_test"]')`)
}

// file keeps a text in a file.
func (c *cluster) file(name, text string) string {
	c.Helper()
	path := filepath.Join(c.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	return path
}

// node is the name of the first node.
func (c *cluster) node() string {
	c.Helper()
	return strings.Fields(c.drover("node", "list", "--no-headers", "-o", "name"))[0]
}

// TestTheRealGraphIsDrawn: all tasks of a real deployment, as soon as the plan is there.
func TestTheRealGraphIsDrawn(t *testing.T) {
	library := testkit.FuelLibrary(t, "deployment")
	c := start(t, testkit.Build(t), false)
	node := strings.Fields(c.drover("node", "list", "--no-headers", "-o", "name"))[0]
	env, hosts := fuel.Environment(t, fuel.Cloud(3)...), yaql.NewDict(0)
	nodes, _ := env.Get("nodes")
	nodes.(*yaql.Dict).Range(func(uid, _ any) bool {
		_ = hosts.Set(uid, node)
		return true
	})
	_ = env.Set("hosts", hosts)
	file := filepath.Join(t.TempDir(), "env.json")
	if err := os.WriteFile(file, []byte(plan.Canonical(env)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.drover("deploy", "graph", "put", "real", library)
	c.drover("deploy", "env", "put", "real", file, "--graph", "real")
	c.drover("deploy", "plan", "real", "--save")
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/deployments/1")
	eval[int](tab, `(document.querySelector('nav a[href="/deployments"]').click(), 1)`)
	tab.shows("Environments")
	eval[int](tab, `(new MutationObserver(() => { if (!window.drawn && document.querySelector(".graph g")) { const asked = performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/plan")).at(-1); requestAnimationFrame(() => { window.drawn = [asked.responseEnd - asked.startTime, performance.now() - asked.startTime, document.querySelectorAll(".graph g").length]; }); } }).observe(document.body, {subtree: true, childList: true}), 1)`)
	tab.click("[role=cell] a", "1")
	tab.until("the graph is drawn", `window.drawn`)
	drawn := eval[[]float64](tab, `window.drawn`)
	t.Logf("%.0f tasks: the plan was there after %.0f ms, drawn after %.0f ms", drawn[2], drawn[0], drawn[1])
	if drawn[2] < 150 {
		t.Errorf("%.0f tasks are drawn", drawn[2])
	}
	tab.axe("the real graph")
}

// TestServers: a tag from its being asked for to its being there, with the rule that holds it, what is wanted beside what the cluster shows.
func TestServers(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/servers")
	tab.click("[role=cell] a", "front")
	tab.until("it has its tag", `document.querySelector('tr[data-id="shop"]')?.innerText.includes("ACTIVE")`)
	c.drover("filter", "add", "--action", "PAUSE", "--name", "tags", "--when", `opcode: OP_ID == "OP_TAGS_SET"`, "--reason", "OPS-30: no tags today")
	c.drover("server", "tag", "add", "front", "edge")
	tab.until("the new tag is wanted, and held", `document.querySelector('tr.drift[data-id="edge"]')?.innerText.match(/PENDADD[^]*rule/)`)
	tab.shows("1 of its tags is not on the cluster as it is wanted")
	c.drover("filter", "delete", "tags", "--yes", "--reason", "OPS-31: tags again")
	tab.until("the cluster has it", `document.querySelector('tr[data-id="edge"]:not(.drift)')?.innerText.includes("ACTIVE")`)
}

// TestGroupsAndNetworks: from the nodes to their group, from there to a network, and who is on it, as it changes.
func TestGroupsAndNetworks(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/nodes/" + c.node())
	tab.click(".facts a", "default")
	tab.until("its nodes and instances are shown", `location.pathname === "/groups/default" && document.querySelector('.tiles [data-id="`+c.node()+`"]') && document.querySelector('.rows [data-id="db1"]')`)
	tab.shows("memory-size")
	tab.click(".rows a", "lan")
	tab.until("the network is shown", `location.pathname === "/networks/lan" && document.querySelector('.rows [data-id="default"]')?.innerText.includes("bridged br0")`)
	tab.shows("There is none.")
	c.drover("instance", "add", "web3", "--os", "noop", "--no-name-check", "--net", "0:network=lan,ip=pool", "--reason", "OPS-81: one more")
	tab.until("who is on it comes by itself", `document.querySelector('.rows [data-id="web3"]')?.innerText.includes("192.0.2.2") && document.querySelector(".part p")?.innerText.includes("252 free")`)
	tab.click(".rows a", "web3")
	tab.click(".facts a", "lan")
	tab.until("the instance leads back to it", `location.pathname === "/networks/lan"`)
	tab.open("/groups")
	c.drover("group", "add", "rack2", "--reason", "OPS-82: another rack")
	tab.click("[role=cell] a", "rack2")
	tab.shows("drover group assign-nodes rack2 NODE")
}

// TestAudit: who changed what, why and over which surface, as it is done, and what it was before.
func TestAudit(t *testing.T) {
	c := start(t, testkit.Build(t), true)
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.open("/audit")
	tab.until("the rule is there", `document.querySelector('[data-id="1"]')?.innerText.includes("the databases are being backed up")`)
	c.drover("filter", "modify", "backup", "--rule-priority", "7", "--reason", "OPS-10: first of all")
	tab.until("its change comes by itself, first", `document.querySelector(".row")?.innerText.includes("OPS-10: first of all")`)
	tab.click("[role=cell] a", "filter.modify")
	tab.until("it has an address", `location.pathname.match(/^\/audit\/[0-9]+$/)`)
	tab.shows("parts of a filter rule were changed")
	tab.until("it tells what was before and after", `[...document.querySelectorAll("pre")].some((e) => e.innerText.includes('"priority": 7'))`)
	tab.open("/audit?filter=" + url.QueryEscape(`surface == "rapi"`))
	tab.shows("Nothing fits the filter.")
}

// TestPictures keeps pictures of all screens in $DROVER_WEB_SHOTS, at three widths, light and dark.
func TestPictures(t *testing.T) {
	if os.Getenv("DROVER_WEB_SHOTS") == "" {
		t.Skip("DROVER_WEB_SHOTS says where pictures are to be kept")
	}
	c := start(t, testkit.Build(t), true)
	shown := screens(c.node(), c.server())
	line := func(more ...string) string {
		return c.drover(append([]string{"job", "submit", "OP_TEST_DELAY", "duration=3600", "no_locks=false", "on_master=false", "on_nodes=" + c.node(), "--submit", "--reason", "OPS-50: in line"}, more...)...)
	}
	line()
	line("--depend", line("--depend", line()), "--depend", "3")
	shown["line"] = "/jobs/" + line("--depend", line())
	tab := sitDown(t, c.Ready.Web).tab()
	tab.open(c.link())
	tab.shows("Why jobs wait")
	for _, size := range [][2]int64{{390, 844}, {1280, 900}, {2560, 1440}} {
		tab.size(size[0], size[1])
		for _, scheme := range []string{"light", "dark"} {
			tab.colours(scheme)
			for name, path := range shown {
				tab.open(path)
				time.Sleep(200 * time.Millisecond) // what comes behind the first data
				tab.shoot(fmt.Sprintf("%s-%d-%s", name, size[0], scheme))
			}
		}
	}
	t.Run("consoles", func(t *testing.T) {
		tab := sitDown(t, c.Ready.Web).tab()
		c := machine(t, testkit.Build(t))
		tab.base = c.Ready.Web
		tab.open(c.link())
		tab.open("/instances/guest1.drover.example/console")
		tab.sitDown("OPS-40: it hangs")
		tab.prints("login:")
		tab.presses("root\r")
		tab.prints("#")
		tab.presses("uname -a; free -m; ps | grep -v '\\['; printf '\\033[32mgreen\\033[m \\033[31mred\\033[m \\033[33myellow\\033[m \\033[34mblue\\033[m\\n'\r")
		tab.prints("yellow blue")
		screen := tab.tab()
		screen.open("/instances/guest1.drover.example/screen")
		screen.sitDown("OPS-45: it shows nothing")
		screen.draws()
		for _, size := range [][2]int64{{390, 844}, {1280, 900}, {2560, 1440}} {
			tab.size(size[0], size[1])
			for _, scheme := range []string{"light", "dark"} {
				tab.colours(scheme)
				tab.shoot(fmt.Sprintf("console-%d-%s", size[0], scheme))
				screen.size(size[0], size[1])
				screen.colours(scheme)
				screen.shoot(fmt.Sprintf("screen-%d-%s", size[0], scheme))
			}
		}
	})
}
