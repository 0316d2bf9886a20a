package forwarded_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
)

// headerOf reads lines NAME: VALUE.
func headerOf(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func trust(t interface{ Fatal(args ...any) }, public string, proxies ...string) *forwarded.Trust {
	networks, err := forwarded.ParseProxies(strings.Join(proxies, ", "))
	if err != nil {
		t.Fatal(err)
	}
	return &forwarded.Trust{Scheme: "http", Public: public, Proxies: networks}
}

// TestWhatIsBelieved: of whom, and about which request.
func TestWhatIsBelieved(t *testing.T) {
	one := trust(t, "", "10.0.0.0/24", "2001:db8:1::/48")
	for what, c := range map[string]struct {
		trust        *forwarded.Trust
		peer         string
		header       http.Header
		base, client string
	}{
		"nothing said":            {one, "10.0.0.7:999", headerOf(), "http://here:8774", "10.0.0.7:999"},
		"nobody is trusted":       {trust(t, ""), "10.0.0.7:999", headerOf("Forwarded: for=192.0.2.1;proto=https;host=cloud.example"), "http://here:8774", "10.0.0.7:999"},
		"a stranger says so":      {one, "192.0.2.66:999", headerOf("Forwarded: for=192.0.2.1;proto=https;host=cloud.example"), "http://here:8774", "192.0.2.66:999"},
		"a stranger says X":       {one, "192.0.2.66:999", headerOf("X-Forwarded-Proto: https", "X-Forwarded-For: 1.2.3.4"), "http://here:8774", "192.0.2.66:999"},
		"Forwarded":               {one, "10.0.0.7:999", headerOf("Forwarded: for=192.0.2.1;proto=https;host=cloud.example"), "https://cloud.example", "192.0.2.1:0"},
		"in other letters":        {one, "10.0.0.7:999", headerOf(`Forwarded: FOR="192.0.2.1:47";Proto=HTTPS;  hOst="cloud.example:8443"`), "https://cloud.example:8443", "192.0.2.1:47"},
		"IPv6":                    {one, "[2001:db8:1::5]:999", headerOf(`Forwarded: for="[2001:db8::1]:47";proto=https;host="[2001:db8::2]:443"`), "https://[2001:db8::2]:443", "[2001:db8::1]:47"},
		"IPv4 in IPv6":            {one, "[::ffff:10.0.0.7]:999", headerOf("Forwarded: proto=https"), "https://here:8774", "[::ffff:10.0.0.7]:999"},
		"without an address":      {one, "10.0.0.7:999", headerOf("Forwarded: proto=https;host=cloud.example"), "https://cloud.example", "10.0.0.7:999"},
		"with a hidden one":       {one, "10.0.0.7:999", headerOf("Forwarded: for=_hidden;proto=https"), "https://here:8774", "10.0.0.7:999"},
		"behind a hidden one":     {one, "10.0.0.7:999", headerOf("Forwarded: for=1.2.3.4;proto=http;host=evil.example, for=_hidden;proto=https;host=cloud.example"), "https://cloud.example", "10.0.0.7:999"},
		"behind none":             {one, "10.0.0.7:999", headerOf("Forwarded: for=1.2.3.4;host=evil.example, proto=https"), "https://here:8774", "10.0.0.7:999"},
		"Forwarded goes before X": {one, "10.0.0.7:999", headerOf("Forwarded: for=192.0.2.1;proto=https", "X-Forwarded-Proto: http", "X-Forwarded-Host: other.example"), "https://here:8774", "192.0.2.1:0"},
		"a client forged it":      {one, "10.0.0.7:999", headerOf("Forwarded: for=10.0.0.9;proto=http;host=evil.example, for=192.0.2.1;proto=https;host=cloud.example"), "https://cloud.example", "192.0.2.1:0"},
		"in lines":                {one, "10.0.0.7:999", headerOf("Forwarded: host=evil.example", "Forwarded: for=192.0.2.1;proto=https;host=cloud.example"), "https://cloud.example", "192.0.2.1:0"},
		"two proxies": {one, "10.0.0.7:999", headerOf("Forwarded: for=1.2.3.4;host=evil.example, for=192.0.2.1;proto=https;host=cloud.example, for=10.0.0.8;proto=http;host=inner.example"),
			"https://cloud.example", "192.0.2.1:0"},
		"the outer one says less": {one, "10.0.0.7:999", headerOf("Forwarded: for=192.0.2.1, for=10.0.0.8;proto=https;host=cloud.example,"), "https://cloud.example", "192.0.2.1:0"},
		"what is no header":       {one, "10.0.0.7:999", headerOf(`Forwarded: proto=https;host="cloud.example`), "http://here:8774", "10.0.0.7:999"},
		"behind what is none":     {one, "10.0.0.7:999", headerOf(`Forwarded: ???, for=192.0.2.1;proto=https`), "https://here:8774", "192.0.2.1:0"},
		"before what is none":     {one, "10.0.0.7:999", headerOf(`Forwarded: for=192.0.2.1;proto=https, a b`), "http://here:8774", "10.0.0.7:999"},
		"X in place of none":      {one, "10.0.0.7:999", headerOf("Forwarded: a b", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example"), "http://here:8774", "10.0.0.7:999"},
		"hosts that are none":     {one, "10.0.0.7:999", headerOf(`Forwarded: proto=https;host="cloud.example/x"`), "https://here:8774", "10.0.0.7:999"},
		"schemes that are none":   {one, "10.0.0.7:999", headerOf("Forwarded: proto=javascript;host=cloud.example"), "http://cloud.example", "10.0.0.7:999"},

		"X": {one, "10.0.0.7:999", headerOf("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", "X-Forwarded-Host: cloud.example", "X-Forwarded-Port: 8443", "X-Forwarded-Prefix: /drover/"),
			"https://cloud.example:8443/drover", "192.0.2.1:0"},
		"the usual port":    {one, "10.0.0.7:999", headerOf("X-Forwarded-Proto: https", "X-Forwarded-Host: cloud.example", "X-Forwarded-Port: 443"), "https://cloud.example", "10.0.0.7:999"},
		"an unusual port":   {one, "10.0.0.7:999", headerOf("X-Forwarded-Proto: https", "X-Forwarded-Host: cloud.example", "X-Forwarded-Port: 80"), "https://cloud.example:80", "10.0.0.7:999"},
		"ports in both":     {one, "10.0.0.7:999", headerOf("X-Forwarded-Host: cloud.example:81", "X-Forwarded-Port: 82"), "http://cloud.example:81", "10.0.0.7:999"},
		"ports of nobody":   {one, "10.0.0.7:999", headerOf("X-Forwarded-Host: cloud.example", "X-Forwarded-Port: 99999"), "http://cloud.example", "10.0.0.7:999"},
		"forged lists":      {one, "10.0.0.7:999", headerOf("X-Forwarded-For: 10.0.0.9, 192.0.2.1", "X-Forwarded-Proto: http, https", "X-Forwarded-Host: evil.example, cloud.example"), "https://cloud.example", "192.0.2.1:0"},
		"a hidden one of X": {one, "10.0.0.7:999", headerOf("X-Forwarded-For: 1.2.3.4, unknown", "X-Forwarded-Host: evil.example, cloud.example"), "http://cloud.example", "10.0.0.7:999"},
		"lists in lines":    {one, "10.0.0.7:999", headerOf("X-Forwarded-For: 10.0.0.9", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"), "https://here:8774", "192.0.2.1:0"},
		"two proxies of X":  {one, "10.0.0.7:999", headerOf("X-Forwarded-For: 1.2.3.4, 192.0.2.1, 10.0.0.8", "X-Forwarded-Proto: https, http", "X-Forwarded-Host: cloud.example"), "https://cloud.example", "192.0.2.1:0"},
		"bad prefixes":      {one, "10.0.0.7:999", headerOf("X-Forwarded-Prefix: /a/../b", "X-Forwarded-Proto: https"), "https://here:8774", "10.0.0.7:999"},

		"a public URL":           {trust(t, "https://cloud.example/d", "10.0.0.0/24"), "10.0.0.7:999", headerOf("Forwarded: for=192.0.2.1;proto=http;host=other.example"), "https://cloud.example/d", "192.0.2.1:0"},
		"a public URL, directly": {trust(t, "https://cloud.example"), "192.0.2.1:47", headerOf(), "https://cloud.example", "192.0.2.1:47"},
	} {
		if base, client := c.trust.Look("here:8774", c.peer, c.header); base != c.base || client != c.client {
			t.Errorf("%s: %s for %s, want %s for %s", what, base, client, c.base, c.client)
		}
	}
}

// TestWhatComesOutIsAURL: whatever is in the headers.
func TestWhatComesOutIsAURL(t *testing.T) {
	parts := rapid.SampledFrom([]string{"for=", "host=", "proto=", "10.0.0.7", "192.0.2.1", `"`, `\`, ",", ";", " ", "https", "evil.example", "/", "..", "%2e", "\x00", "[::1]", ":80", "é", "="})
	value := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(parts, 0, 12).Draw(t, "parts"), "") })
	rapid.Check(t, func(rt *rapid.T) {
		h := http.Header{}
		for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix"} {
			if values := rapid.SliceOfN(value, 0, 2).Draw(rt, name); len(values) > 0 {
				h[name] = values
			}
		}
		base, client := trust(rt, "", "10.0.0.7").Look("here", "10.0.0.7:1", h)
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.ContainsAny(base, "\x00\"\\ ") || strings.HasSuffix(base, "/") || client == "" {
			rt.Fatalf("%q for %q of %q", base, client, h)
		}
		if base, client := trust(rt, "").Look("here", "10.0.0.7:1", h); base != "http://here" || client != "10.0.0.7:1" {
			rt.Fatalf("nobody is trusted, and %q for %q comes of %q", base, client, h)
		}
	})
}

func TestHandler(t *testing.T) {
	in := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://here/x", http.NoBody)
	if got := forwarded.Base(in); got != "http://here" {
		t.Errorf("without a handler it is %s", got)
	}
	in.RemoteAddr, in.Header = "10.0.0.7:1", headerOf("Forwarded: for=192.0.2.1;proto=https")
	called := false
	trust(t, "", "10.0.0.7").Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called = forwarded.Base(r) == "https://here" && r.RemoteAddr == "192.0.2.1:0"
	})).ServeHTTP(httptest.NewRecorder(), in)
	if !called || in.RemoteAddr != "10.0.0.7:1" {
		t.Error("the request is not handed on as its client sees it, or was changed")
	}
	out := http.Header{"X-Forwarded-For": {"other"}}
	if forwarded.Copy(out, in.Header); out.Get("Forwarded") == "" || out.Get("X-Forwarded-For") != "other" {
		t.Errorf("copied are %v", out)
	}
}

func TestSettings(t *testing.T) {
	for text, want := range map[string]string{
		"https://cloud.example": "https://cloud.example", "https://cloud.example/": "https://cloud.example", "http://[2001:db8::1]:8080/a/b/": "http://[2001:db8::1]:8080/a/b",
		"cloud.example": "", "https://": "", "ftp://cloud.example": "", "https://user@cloud.example": "", "https://cloud.example?x": "", "https://cloud.example/#x": "",
		"https://cloud.example/../x": "", "https://cloud example": "", "": "", "https://cloud.example:99999": "",
	} {
		if got, err := forwarded.ParsePublic(text); got != want || (want == "") != fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{",", "10.0.0.1,", "10.0.0", "10.0.0.0/33", "proxy.example", "fe80::1%eth0", "::ffff:10.0.0.1"} {
		if got, err := forwarded.ParseProxies(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
