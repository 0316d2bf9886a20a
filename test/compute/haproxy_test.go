package compute

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

const haproxyConfig = `
global
	log stdout format raw local0
defaults
	mode http
	log global
	log-format "%[ssl_fc,iif(on,off)] %ST %HM %HU"
	timeout connect 30s
	timeout client 3m
	timeout server 3m
frontend clouds
	bind fd@PORT ssl crt DIR/both.pem
	RULES
	default_backend drover
backend drover
	server one BEHIND
`

var haproxyRules = regexp.MustCompile(`(?m)^    http-request .*`)

// startHAProxy starts one before an address, with the rules that the documentation
// names.
func startHAProxy(t *testing.T, behind string) *proxy {
	t.Helper()
	program := "/usr/sbin/haproxy"
	if _, err := os.Stat(program); err != nil {
		testkit.Missingf(t, "haproxy: not installed")
	}
	p := newProxy(t)
	read := func(path string) string {
		text, err := os.ReadFile(path)
		p.check(err)
		return string(text)
	}
	write := func(name, text string) {
		p.check(os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), program, "-db", "-f", filepath.Join(p.dir, "haproxy.cfg"))
	port := p.listen(cmd, "haproxy")
	rules := strings.Join(haproxyRules.FindAllString(read(filepath.Join(testkit.Root(t), "docs/operations.md")), -1), "\n")
	write("both.pem", read(filepath.Join(p.dir, "cert.pem"))+read(filepath.Join(p.dir, "key.pem")))
	write("haproxy.cfg", strings.NewReplacer("PORT", string(rune('0'+port)), "DIR", p.dir, "RULES", rules, "BEHIND", behind).Replace(haproxyConfig))
	log, err := os.Create(filepath.Join(p.dir, "access.log"))
	p.check(err)
	t.Cleanup(func() { p.check(log.Close()) })
	cmd.Stdout = log
	p.run(cmd)
	return p
}

// TestBehindHAProxy: with the rules that the documentation names clients are told URLs
// that lead to the proxy, whatever they claim of themselves, and work there.
func TestBehindHAProxy(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data, "--trusted-proxies", "127.0.0.1")
	own := readAccount(t, filepath.Join(data, "ready.json"))
	p := startHAProxy(t, strings.TrimPrefix(strings.TrimSuffix(own.Identity, "/identity/v3"), "http://"))
	there := p.through("haproxy", own)
	t.Run("links", func(t *testing.T) {
		p := &proxy{T: t, at: p.at, client: p.client, forged: forged}
		p.tells(there, "https://"+p.at["haproxy"]+"/")
	})
	t.Run("openstack and nova", func(t *testing.T) {
		p.stockClients(t, there, "openstack_catalogue", "openstack_filters", "nova_tags")
	})
	t.Run("gophercloud", func(t *testing.T) { logInAs(t, there, p.client.Transport).lists() })
	p.allSecure()
	if dev.Terminate(); dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}

const haproxyPasses = `
global
	log stdout format raw local0
defaults
	mode tcp
	timeout connect 30s
	timeout client 3m
	timeout server 3m
frontend rapi
	bind fd@PORT
	default_backend drover
BACKEND
`

var haproxyBackend = regexp.MustCompile(`(?m)^    (backend drover\n(?:        .*\n)+)`)

// TestTheProxyProtocolOfHAProxy: TLS ends at the controller, which is told by the backend that the documentation names who the client is. Its trail names it,
// and who comes past the proxy is refused.
func TestTheProxyProtocolOfHAProxy(t *testing.T) {
	program := "/usr/sbin/haproxy"
	if _, err := os.Stat(program); err != nil {
		testkit.Missingf(t, "haproxy: not installed")
	}
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data, "--trusted-proxies", "127.0.0.1", "--proxy-protocol", "rapi")
	var ready struct {
		RAPI     string `json:"rapi"`
		User     string `json:"rapi_user"`
		Password string `json:"rapi_password"`
	}
	p := newProxy(t)
	read := func(path string) []byte {
		text, err := os.ReadFile(path)
		p.check(err)
		return text
	}
	p.check(json.Unmarshal(read(filepath.Join(data, "ready.json")), &ready))
	own := strings.TrimPrefix(ready.RAPI, "https://")
	cmd := exec.CommandContext(t.Context(), program, "-db", "-f", filepath.Join(p.dir, "haproxy.cfg"))
	port := p.listen(cmd, "rapi")
	documented := haproxyBackend.FindSubmatch(read(filepath.Join(testkit.Root(t), "docs/operations.md")))
	if documented == nil {
		t.Fatal("the documentation has no backend")
	}
	backend := strings.ReplaceAll(string(documented[1]), "10.0.0.5:5080", own)
	p.check(os.WriteFile(filepath.Join(p.dir, "haproxy.cfg"), []byte(strings.NewReplacer("PORT", string(rune('0'+port)), "BACKEND", backend).Replace(haproxyPasses)), 0o600))
	p.run(cmd)
	from := func(address string) *http.Client {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	}
	ask := func(client *http.Client, method, url string) (status int, text []byte) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
		p.check(err)
		r.SetBasicAuth(ready.User, ready.Password)
		resp, err := client.Do(r)
		p.check(err)
		text, err = io.ReadAll(resp.Body)
		p.check(errors.Join(err, resp.Body.Close()))
		return resp.StatusCode, text
	}
	status, id := ask(from("127.0.0.9"), http.MethodPut, "https://"+p.at["rapi"]+"/2/tags?tag=x")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, id)
	}
	if _, j := ask(from("127.0.0.9"), http.MethodGet, "https://"+p.at["rapi"]+"/2/jobs/"+strings.TrimSpace(string(id))); !bytes.Contains(j, []byte(ready.User+" (127.0.0.9)")) {
		t.Errorf("the job is told as %s", j)
	}
	if status, text := ask(from("127.0.0.9"), http.MethodGet, ready.RAPI+"/version"); status != http.StatusServiceUnavailable || !bytes.Contains(text, []byte("from proxies alone")) {
		t.Errorf("past the proxy: %d, %s", status, text)
	}
	if dev.Terminate(); dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}
