// Package forwarded knows how clients see a service that stands behind proxies:
// under which URL they reach it, and from which address they come. It is told by the
// operator, or by proxies in the headers Forwarded (RFC 7239) and X-Forwarded-*.
//
// Invariants:
//   - Only proxies that the operator trusts are believed, each only about the
//     request that it got itself: what a client writes into these headers counts
//     nowhere.
//   - What comes out is a URL, whatever is in the headers: a part that is none is
//     passed over.
package forwarded

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Headers are those by which proxies tell, in their canonical form.
var headers = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix"}

// Copy copies the headers of proxies to a request that passes another on.
func Copy(to, from http.Header) {
	for _, name := range headers {
		if values := from.Values(name); values != nil {
			to[name] = values
		}
	}
}

// Trust is what is believed of where clients reach a service.
type Trust struct {
	// Scheme is that of the service's own listener.
	Scheme string
	// Public is the URL that clients reach it under, without a slash at its end; empty
	// for what a request says.
	Public string
	// Proxies are the addresses of proxies that are believed.
	Proxies []netip.Prefix
}

// ParsePublic reads the public URL of a service. Invalid if it is none.
func ParsePublic(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Host) || u.User != nil || u.RawQuery != "" || u.Fragment != "" || prefixOf(u.EscapedPath()) != strings.TrimRight(u.EscapedPath(), "/") {
		return "", fault.New(fault.Invalid, "%q is no URL under which clients reach a service", fault.Clip(text, 200)).WithHint("write it as https://cloud.example or https://cloud.example/drover")
	}
	return strings.TrimRight(text, "/"), nil
}

// ParseProxies reads addresses and networks, separated by commas. Invalid for what
// is none.
func ParseProxies(list string) ([]netip.Prefix, error) {
	if list == "" {
		return nil, nil
	}
	out := []netip.Prefix{}
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if at, single := netip.ParseAddr(text); single == nil && at.Zone() == "" {
			prefix, err = at.Prefix(at.BitLen())
		}
		if err != nil || prefix.Addr().Is4In6() {
			return nil, fault.New(fault.Invalid, "%q is neither an address nor a network", fault.Clip(text, 100)).WithHint("write it as 10.0.0.7 or 10.0.0.0/24")
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// seen is how the client of a request sees the service.
type seen struct{ base string }

type key struct{}

// Handler hands requests on with what is known of their clients: their address is
// that of the client, and Base tells the URL.
func (t *Trust) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base, client := t.Look(r.Host, r.RemoteAddr, r.Header)
		known := r.WithContext(context.WithValue(r.Context(), key{}, seen{base}))
		known.RemoteAddr = client
		next.ServeHTTP(w, known)
	})
}

// Base is the URL under which the client of a request reaches the service, without
// a slash at its end.
func Base(r *http.Request) string {
	if s, known := r.Context().Value(key{}).(seen); known {
		return s.base
	}
	return "http://" + r.Host
}

// Look returns the URL under which the client of a request reaches the service,
// and its address, by the host that the request names, the address that it comes
// from, and its headers.
func (t *Trust) Look(host, remote string, h http.Header) (base, client string) {
	way := wayOf(h, remote, t.trusts)
	if t.Public != "" {
		return t.Public, way.client
	}
	scheme := t.Scheme
	if way.proto != "" {
		scheme = way.proto
	}
	if way.host != "" {
		host = way.host
	}
	return scheme + "://" + withPort(host, way.port, scheme) + way.prefix, way.client
}

// trusts reports whether an address, with or without a port, is that of a proxy
// that is believed.
func (t *Trust) trusts(address string) bool {
	ip, err := addressOf(address)
	if err != nil {
		return false
	}
	for _, p := range t.Proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// addressOf reads an address with or without a port; IPv6 may be in brackets.
func addressOf(text string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), nil
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return ip.Unmap().WithZone(""), err
}
