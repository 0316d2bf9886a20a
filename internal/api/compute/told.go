package compute

import (
	"net/netip"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// told is what clients tell of a server for other clients to read; nil for what a
// request does not say.
type told struct {
	IPv4 *string `json:"accessIPv4"`
	IPv6 *string `json:"accessIPv6"`
	Disk *string `json:"OS-DCF:diskConfig"`
}

// over puts what a request says over what was told before.
func (t told) over(before server.Told) (server.Told, error) {
	next := before
	for _, a := range []struct {
		key        string
		said, into *string
		is         func(netip.Addr) bool
	}{{"accessIPv4", t.IPv4, &next.IPv4, netip.Addr.Is4}, {"accessIPv6", t.IPv6, &next.IPv6, netip.Addr.Is6}} {
		if a.said == nil {
			continue
		}
		address, err := netip.ParseAddr(*a.said)
		switch {
		case *a.said == "":
			*a.into = ""
		case err != nil || !a.is(address) || address.Zone() != "":
			return before, fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %s. It is no such address", a.key, fault.Clip(*a.said, 100)).At(a.key)
		default:
			*a.into = address.String()
		}
	}
	if t.Disk == nil {
		return next, nil
	}
	if *t.Disk != automatic && *t.Disk != manual {
		return before, fault.New(fault.Invalid, "Invalid input for field/attribute OS-DCF:diskConfig. It must be AUTO or MANUAL").At("OS-DCF:diskConfig")
	}
	next.Disk = *t.Disk
	return next, nil
}

// Who makes the partitions of a disk; it is the image's installer that does, and
// sees the whole disk.
const (
	automatic = "AUTO"
	manual    = "MANUAL"
)

func diskConfig(s *server.Server) string {
	if s.Told.Disk == "" {
		return manual
	}
	return s.Told.Disk
}
