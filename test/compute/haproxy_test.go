package compute

import (
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
