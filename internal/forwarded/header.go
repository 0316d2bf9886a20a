package forwarded

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// way is what trusted proxies tell of the way that a request came.
type way struct {
	// client is the address that it came from to the first of them.
	client string
	// The URL that it asked them for; empty where they say nothing.
	proto, host, port, prefix string
}

// element is what one proxy tells of a request that it got.
type element map[string]string

// wayOf goes back from the present peer through the proxies that are trusted. Each
// of them was the peer of the one after it, so what it tells stands before that
// in the headers; the first one of all saw the client, so what it tells counts
// most.
func wayOf(h http.Header, peer string, trusted func(string) bool) way {
	w := way{client: peer}
	elements := fromForwarded(h.Values("Forwarded"))
	if len(h.Values("Forwarded")) == 0 {
		elements = fromX(h)
	}
	for _, e := range slices.Backward(elements) {
		if !trusted(w.client) {
			break
		}
		w.take(e)
		from, err := addressOf(e["for"])
		if err != nil { // it does not say: the way ends here
			break
		}
		w.client = withItsPort(e["for"], from)
	}
	return w
}

// take takes in what a proxy tells that is nearer to the client.
func (w *way) take(e element) {
	if proto := strings.ToLower(e["proto"]); proto == "http" || proto == "https" {
		w.proto = proto
	}
	if host := e["host"]; isHost(host) {
		w.host = host
	}
	if n, err := strconv.ParseUint(e["port"], 10, 16); err == nil && n > 0 {
		w.port = strconv.FormatUint(n, 10)
	}
	if prefix := prefixOf(e["prefix"]); prefix != "" {
		w.prefix = prefix
	}
}

// withItsPort is an address with a port: its own, or none that means anything.
func withItsPort(text string, ip netip.Addr) string {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(ip, at.Port()).String()
	}
	return netip.AddrPortFrom(ip, 0).String()
}

// fromX reads the headers X-Forwarded-*: a list for each part, of which proxies write
// the last one. A list that is shorter than that of the addresses was written by
// the last proxies, or by one that replaced what was there.
func fromX(h http.Header) []element {
	lists := map[string][]string{}
	longest := 0
	for part, name := range map[string]string{"for": "X-Forwarded-For", "proto": "X-Forwarded-Proto", "host": "X-Forwarded-Host", "port": "X-Forwarded-Port", "prefix": "X-Forwarded-Prefix"} {
		for _, line := range h.Values(name) {
			for value := range strings.SplitSeq(line, ",") {
				lists[part] = append(lists[part], strings.TrimSpace(value))
			}
		}
		longest = max(longest, len(lists[part]))
	}
	elements := make([]element, longest)
	for i := range elements {
		elements[i] = element{}
	}
	for part, list := range lists {
		for i, value := range list {
			elements[longest-len(list)+i][part] = value
		}
	}
	return elements
}

// fromForwarded reads the header Forwarded. Where it cannot be read, what stands
// before that is not believed.
func fromForwarded(lines []string) []element {
	var elements []element
	for _, line := range lines {
		rest := line
		for more := true; more; {
			var e element
			e, rest, more = nextElement(rest)
			switch {
			case e == nil:
				elements = nil
			case len(e) > 0:
				elements = append(elements, e)
			}
		}
	}
	return elements
}

// nextElement reads pairs up to a comma. A nil element is none.
func nextElement(text string) (e element, rest string, more bool) {
	e = element{}
	for {
		name, after, ok := strings.Cut(text, "=")
		if strings.TrimSpace(text) == "" {
			return e, "", false
		}
		if !ok || strings.ContainsAny(name, `",;`) {
			_, rest, more = strings.Cut(text, ",")
			return nil, rest, more
		}
		value, left, ok := nextValue(after)
		if !ok {
			return nil, "", false
		}
		e[strings.ToLower(strings.TrimSpace(name))] = value
		left = strings.TrimLeft(left, " \t")
		switch {
		case left == "":
			return e, "", false
		case left[0] == ',':
			return e, left[1:], true
		case left[0] != ';':
			return nil, "", false
		}
		text = left[1:]
	}
}

// nextValue reads a word, or a text in quotes.
func nextValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, "; \t,")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			return b.String(), text[i+1:], true
		case text[i] == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(text[i])
		}
	}
	return "", "", false
}

// isHost reports whether a text is the name or address of a host as URLs have it,
// with a port or without.
func isHost(text string) bool {
	name := text
	if host, port, err := net.SplitHostPort(text); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
		if name = host; strings.Contains(host, ":") {
			name = "[" + host + "]"
		}
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		return err == nil && ip.Is6() && ip.Zone() == "" && strings.HasSuffix(name, "]")
	}
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

// prefixOf is a path that a service is below, without a slash at its end; empty for
// what is none.
func prefixOf(text string) string {
	text = strings.TrimRight(text, "/")
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/-._~%", r)
	}
	if !strings.HasPrefix(text, "/") || strings.ContainsFunc(text, bad) {
		return ""
	}
	for segment := range strings.SplitSeq(text[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return ""
		}
	}
	return text
}

// withPort adds a port to a host that has none, unless it is that of the scheme.
func withPort(host, port, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil || port == "" || port == map[string]string{"http": "80", "https": "443"}[scheme] {
		return host
	}
	return host + ":" + port
}
