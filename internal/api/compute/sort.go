package compute

import (
	"cmp"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// order compares two servers.
type order func(a, b *server.Server) int

// by is the order of something that servers have.
func by[T cmp.Ordered](of func(*server.Server) T) order {
	return func(a, b *server.Server) int { return cmp.Compare(of(a), of(b)) }
}

// orders are what lists can be sorted by, under Nova's names.
var orders = map[string]order{
	"created_at": by(func(s *server.Server) int64 { return s.Number }), "updated_at": by(func(s *server.Server) int64 { return int64(s.Updated) }),
	"launched_at": by(func(s *server.Server) int64 { return int64(s.Built) }), "uuid": by(func(s *server.Server) string { return s.ID }),
	"display_name": by(func(s *server.Server) string { return s.Name }), "display_description": by(func(s *server.Server) string { return s.Description }),
	"vm_state": by(vmOf), "power_state": by(powerOf),
	"task_state": by(taskState), "access_ip_v4": by(func(s *server.Server) string { return s.Told.IPv4 }), "access_ip_v6": by(func(s *server.Server) string { return s.Told.IPv6 }),
	"instance_type_id": by(func(s *server.Server) string { return s.Flavor.ID }), "image_ref": by(func(s *server.Server) string { return s.Image.ID }),
	"user_id": by(func(s *server.Server) string { return s.User }), "project_id": by(func(s *server.Server) string { return s.Project }),
	"availability_zone": by(func(s *server.Server) string { return s.Backend }), "hostname": by(func(s *server.Server) string { return s.Instance }),
	"key_name": by(func(s *server.Server) string { return s.KeyName() }), "locked_by": by(lockedBy), "locked": by(locked),
}

// ordersSince are the microversions that brought orders.
var ordersSince = map[string]int{"locked": withLockReason}

// sorted returns the servers of the project in the order that a query asks for:
// the newest first if it asks for none. The n-th sort_dir is that of the n-th
// sort_key; where there are fewer, the first counts for the rest, and without any
// it is downwards. What is equal is in order of creation, in the first direction.
func (r *request) sorted(q url.Values) (iter.Seq[*server.Server], error) {
	all := r.api.cfg.Engine.Servers().Of(r.session.Project.ID)
	keys, dirs := q["sort_key"], q["sort_dir"]
	if len(keys) == 0 && len(dirs) == 0 {
		return all, nil
	}
	if len(keys) == 0 {
		keys = []string{"created_at"}
	}
	if len(dirs) > len(keys) {
		return nil, fault.New(fault.Invalid, "There are more sort_dir (%d) than sort_key (%d)", len(dirs), len(keys)).At("sort_dir")
	}
	first := "desc"
	if len(dirs) > 0 {
		first = dirs[0]
	}
	var levels []order
	for i, key := range append(slices.Clone(keys), "created_at") {
		dir := first
		if i < len(dirs) {
			dir = dirs[i]
		}
		level, known := orders[key]
		switch {
		case !known, !r.since(ordersSince[key]) && ordersSince[key] != 0:
			return nil, fault.New(fault.Invalid, "Invalid input for query parameters sort_key. Value: %s", fault.Clip(key, 100)).At("sort_key")
		case strings.EqualFold(dir, "asc"):
			levels = append(levels, level)
		case strings.EqualFold(dir, "desc"):
			levels = append(levels, func(a, b *server.Server) int { return level(b, a) })
		default:
			return nil, fault.New(fault.Invalid, "Invalid input for query parameters sort_dir. Value: %s", fault.Clip(dir, 100)).At("sort_dir")
		}
	}
	return slices.Values(slices.SortedFunc(all, func(a, b *server.Server) int {
		for _, level := range levels {
			if n := level(a, b); n != 0 {
				return n
			}
		}
		return 0
	})), nil
}

// locked is 1 for a server that is locked, and 0 for another one.
func locked(s *server.Server) int {
	if s.Lock == nil {
		return 0
	}
	return 1
}
