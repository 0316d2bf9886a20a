package rapi

import (
	"net/netip"
	"slices"
	"strings"
)

// addressChecks are the parameters of networks whose texts the remote API
// checks before it makes a job. "none" takes a gateway away.
var addressChecks = map[string]func(text string) bool{
	"network":             func(s string) bool { p, err := netip.ParsePrefix(s); return err == nil && p.Addr().Is4() },
	"network6":            func(s string) bool { p, err := netip.ParsePrefix(s); return err == nil && p.Addr().Is6() },
	"gateway":             func(s string) bool { return strings.EqualFold(s, "none") || isAddress(s, netip.Addr.Is4) },
	"gateway6":            func(s string) bool { return strings.EqualFold(s, "none") || isAddress(s, netip.Addr.Is6) },
	"add_reserved_ips":    func(s string) bool { return isAddress(s, netip.Addr.Is4) },
	"remove_reserved_ips": func(s string) bool { return isAddress(s, netip.Addr.Is4) },
}

func isAddress(text string, family func(netip.Addr) bool) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && family(a)
}

// checkAddresses refuses a body with texts that are no addresses; values of
// other types are left to the opcode's own check.
func checkAddresses(opcode string) func(*request, parameters) (parameters, error) {
	return func(_ *request, body parameters) (parameters, error) {
		for name, good := range addressChecks {
			texts, isList := body[name].([]any)
			if !isList {
				texts = []any{body[name]}
			}
			if slices.ContainsFunc(texts, func(v any) bool { s, isText := v.(string); return isText && !good(s) }) {
				return nil, badRequest(`Invalid body parameters: ("Parameter '%s.%s' fails validation", 'wrong_input')`, opcode, name)
			}
		}
		return nil, nil
	}
}
