package compute

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// proxy is a program that ends TLS, with a port for each way to tell how requests
// came.
type proxy struct {
	*testing.T
	dir string
	// at are the addresses of the ports, by name.
	at     map[string]string
	client *http.Client
	// forged are headers that clients send, as only proxies should.
	forged http.Header
}

// newProxy makes what every proxy needs.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{T: t, dir: t.TempDir(), at: map[string]string{}}
	p.certify()
	return p
}

// listen opens a port, which a program inherits under the number that is returned.
func (p *proxy) listen(cmd *exec.Cmd, name string) int {
	p.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	p.check(err)
	file, err := l.File()
	p.check(err)
	cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	p.at[name] = l.Addr().String()
	p.check(l.Close())
	const before = 2 // the standard ones
	return before + len(cmd.ExtraFiles)
}

// run runs the program until the test ends. Its ports are open already.
func (p *proxy) run(cmd *exec.Cmd) {
	p.Helper()
	cmd.Stderr = p.Output()
	p.check(cmd.Start())
	for _, file := range cmd.ExtraFiles {
		p.check(file.Close())
	}
	p.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself: the test says so
		_ = cmd.Wait()
	})
}

// ways are how the ports of the proxy tell of requests, and what comes behind their
// addresses in URLs.
var ways = map[string]struct{ Prefix, Headers string }{
	"forwarded": {"", `proxy_set_header Forwarded "for=$remote_addr;proto=$scheme;host=\"$http_host\""; proxy_set_header X-Forwarded-Proto "";`},
	"x": {"", `proxy_set_header Forwarded ""; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
		proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-Port $server_port;`},
	"prefix": {"/drover", `proxy_set_header Forwarded ""; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
		proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Prefix /drover;`},
	"silent": {"", `proxy_set_header Host $http_host;`},
}

var nginxConfig = template.Must(template.New("nginx").Parse(`
daemon off; worker_processes 1; pid {{.Dir}}/pid; error_log {{.Dir}}/error.log;
events {}
http {
	log_format plain '$https $status $request'; access_log {{.Dir}}/access.log plain;
	client_body_temp_path {{.Dir}}/body; proxy_temp_path {{.Dir}}/proxy; fastcgi_temp_path {{.Dir}}/f; uwsgi_temp_path {{.Dir}}/u; scgi_temp_path {{.Dir}}/s;
	ssl_certificate {{.Dir}}/cert.pem; ssl_certificate_key {{.Dir}}/key.pem; proxy_http_version 1.1;
	{{range $name, $way := .Ways}}
	server { listen {{index $.At $name}} ssl; location {{$way.Prefix}}/ { {{$way.Headers}} proxy_pass http://{{$.Behind}}/; } }
	{{end}}
}
`))

// startNginx starts an nginx before an address.
func startNginx(t *testing.T, behind string) *proxy {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		testkit.Missingf(t, "nginx: not installed")
	}
	p := newProxy(t)
	cmd := exec.CommandContext(t.Context(), program, "-p", p.dir, "-c", filepath.Join(p.dir, "nginx.conf"), "-e", filepath.Join(p.dir, "error.log"))
	inherited := "NGINX="
	for name := range ways {
		inherited += fmt.Sprintf("%d;", p.listen(cmd, name))
	}
	var config bytes.Buffer
	p.check(nginxConfig.Execute(&config, map[string]any{"Dir": p.dir, "Ways": ways, "At": p.at, "Behind": behind}))
	p.check(os.WriteFile(filepath.Join(p.dir, "nginx.conf"), config.Bytes(), 0o600))
	cmd.Env = append(os.Environ(), inherited)
	p.run(cmd)
	return p
}

func (p *proxy) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// certify makes a certificate, and a client that takes no other.
func (p *proxy) certify() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.check(err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	p.check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	p.check(err)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	p.check(os.WriteFile(filepath.Join(p.dir, "cert.pem"), text, 0o600))
	p.check(os.WriteFile(filepath.Join(p.dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	p.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

// through is an account as a client behind the proxy has it.
func (p *proxy) through(way string, a account) account {
	at, err := url.Parse(a.Identity)
	p.check(err)
	a.Identity = "https://" + p.at[way] + ways[way].Prefix + at.Path
	return a
}

// allSecure fails the test if something came to the proxy that was not encrypted.
func (p *proxy) allSecure() {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "access.log"))
	p.check(err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "on ") || strings.HasPrefix(line, "on 400 -") {
			p.Errorf("a request in clear, or one that is none: %s", line)
		}
	}
	const least = 10
	if len(lines) < least {
		p.Errorf("only %d requests came through the proxy", len(lines))
	}
}

var links = regexp.MustCompile(`https?://[^"\s]+`)

// told are all URLs that a client is told on its way to a server.
func (p *proxy) told(a account) []string {
	p.Helper()
	root := strings.TrimSuffix(a.Identity, "/identity/v3")
	token := ""
	var found []string
	ask := func(method, at, body string) http.Header {
		r, err := http.NewRequestWithContext(p.Context(), method, at, strings.NewReader(body))
		p.check(err)
		maps.Copy(r.Header, p.forged)
		r.Header.Set("X-Auth-Token", token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Openstack-Api-Version", "compute 2.52")
		answer, err := p.client.Do(r)
		p.check(err)
		text, err := io.ReadAll(answer.Body)
		p.check(err)
		p.check(answer.Body.Close())
		for _, name := range []string{"Location", "Www-Authenticate"} {
			text = append(text, answer.Header.Get(name)...)
			text = append(text, ' ')
		}
		found = append(found, links.FindAllString(string(text), -1)...)
		return answer.Header
	}
	for _, path := range []string{"/identity", "/identity/v3", "/compute", "/compute/v2.1", "/image", "/network", "/compute/v2.1/servers", "/identity/v3/users"} {
		ask(http.MethodGet, root+path, "")
	}
	login, err := json.Marshal(map[string]any{"auth": map[string]any{"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
		"user": map[string]any{"name": a.User, "password": a.Password, "domain": map[string]any{"name": "Default"}}}},
		"scope": map[string]any{"project": map[string]any{"name": a.Project, "domain": map[string]any{"name": "Default"}}}}})
	p.check(err)
	token = ask(http.MethodPost, a.Identity+"/auth/tokens", string(login)).Get("X-Subject-Token")
	_, server, _ := strings.Cut(ask(http.MethodPost, root+"/compute/v2.1/servers", `{"server":{"name":"web","flavorRef":"4","imageRef":"5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01","networks":"none"}}`).Get("Location"), "/compute/v2.1/")
	for _, path := range []string{"/compute/v2.1/servers/detail?limit=1", "/compute/v2.1/flavors", "/compute/v2.1/os-keypairs?limit=1", "/network/v2.0/networks", "/identity/v3/projects", "/identity/v3/users"} {
		ask(http.MethodGet, root+path, "")
	}
	ask(http.MethodPut, root+"/compute/v2.1/"+server+"/tags/a", "")
	ask(http.MethodDelete, root+"/compute/v2.1/"+server, "")
	return found
}

// tells fails the test unless all URLs that a client is told begin with one.
func (p *proxy) tells(a account, root string) {
	p.Helper()
	found := p.told(a)
	for _, link := range found {
		rest, ok := strings.CutPrefix(link, root)
		if service, _, _ := strings.Cut(rest, "/"); !ok || !slices.Contains([]string{"identity", "compute", "image", "network"}, service) {
			p.Errorf("%s does not begin with %s and a service", link, root)
		}
	}
	const least = 30
	if len(found) < least {
		p.Errorf("only %d URLs were told: %q", len(found), found)
	}
}

// stockClients makes checks with stock clients behind the proxy.
func (p *proxy) stockClients(t *testing.T, a account, checks ...string) {
	t.Helper()
	testkit.NeedPython(t, "novaclient.shell, openstackclient.shell", "python3-novaclient and python3-openstackclient")
	t.Setenv("OS_CACERT", filepath.Join(p.dir, "cert.pem"))
	t.Setenv("REQUESTS_CA_BUNDLE", filepath.Join(p.dir, "cert.pem"))
	ready, err := json.Marshal(a)
	p.check(err)
	file := filepath.Join(t.TempDir(), "ready.json")
	p.check(os.WriteFile(file, ready, 0o600))
	testkit.RunChecks(t, "stock_client.py", append([]string{file}, checks...)...)
}

// forged are the headers of proxies as a client may send them.
var forged = http.Header{"Forwarded": {"for=192.0.2.66;proto=http;host=evil.example"}, "X-Forwarded-For": {"192.0.2.66"}, "X-Forwarded-Proto": {"http"},
	"X-Forwarded-Host": {"evil.example"}, "X-Forwarded-Port": {"81"}, "X-Forwarded-Prefix": {"/evil"}}

// TestBehindAProxy: clients that reach the services over a proxy that ends TLS are
// told URLs that lead there, so that they never send a token in clear; who is not
// trusted is not believed.
func TestBehindAProxy(t *testing.T) {
	bin := testkit.Build(t)
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, bin, data, "--trusted-proxies", "127.0.0.1")
	own := readAccount(t, filepath.Join(data, "ready.json"))
	p := startNginx(t, strings.TrimPrefix(strings.TrimSuffix(own.Identity, "/identity/v3"), "http://"))
	for way := range ways {
		t.Run("links by "+way, func(t *testing.T) {
			p := &proxy{T: t, at: p.at, client: p.client}
			switch way {
			case "silent":
				p.tells(p.through(way, own), "http://"+p.at[way]+"/")
			case "forwarded":
				p.forged = forged
				fallthrough
			default:
				p.tells(p.through(way, own), "https://"+p.at[way]+ways[way].Prefix+"/")
			}
		})
	}
	t.Run("openstack and nova", func(t *testing.T) {
		p.stockClients(t, p.through("forwarded", own), "openstack_catalogue", "nova_tags", "nova_library")
	})
	t.Run("gophercloud", func(t *testing.T) { logInAs(t, p.through("x", own), p.client.Transport).lists() })
	p.allSecure()
	if dev.Terminate(); dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}

// TestPublicURL: what the operator says counts, whatever a request says.
func TestPublicURL(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data, "--public-url", "https://cloud.example/drover/")
	p := &proxy{T: t, client: &http.Client{}}
	for _, link := range p.told(readAccount(t, filepath.Join(data, "ready.json"))) {
		if !strings.HasPrefix(link, "https://cloud.example/drover/") {
			t.Errorf("a URL is %s", link)
		}
	}
	if dev.Terminate(); dev.Gone() != nil {
		t.Error("drover dev did not end in good order")
	}
}
