package listing

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// formatter returns how the values of a field are written.
func formatter(what string, f Field, o *Options) func(any) string {
	if special := specials[what+" "+f.Name]; special != nil {
		return func(v any) string { return special(v, o) }
	}
	switch f.Kind {
	case "bool":
		return yesNo
	case "unit":
		return func(v any) string { return size(v, o.units()) }
	case "timestamp":
		return func(v any) string { return moment(v, o.location()) }
	}
	return Str
}

// specials are the fields that are not written by their kind, by item and
// name.
var specials = map[string]func(v any, o *Options) string{
	"instance tags": joined, "instance disk.sizes": joined, "instance nic.macs": joined, "instance nic.ips": joined,
	"instance nic.modes": joined, "instance nic.links": joined, "instance nic.bridges": joined, "instance nic.networks": joined,
	"instance snodes": joined, "disk nodes": joined, "instance snodes.group": joined, "instance snodes.group.uuid": joined,
	"node pinst_list": joined, "node sinst_list": joined, "node tags": joined,
	"group node_list": joined, "group pinst_list": joined, "group ndparams": assignments,
	"network inst_list": joined, "network tags": joined, "network group_list": connections,
	"job summary": joined, "job opstart": moments, "job opexec": moments, "job opend": moments,
	"lock mode": orDash, "lock owner": owners, "lock pending": waiters,
}

func yesNo(v any) string {
	if v == true {
		return "Y"
	}
	return "N"
}

// size writes MiB in a unit.
func size(v any, unit string) string {
	mib, ok := number(v)
	if !ok {
		return Str(v)
	}
	switch {
	case unit == "m":
		return strconv.FormatInt(int64(math.RoundToEven(mib)), 10)
	case unit == "g":
		return fmt.Sprintf("%.1f", mib/1024)
	case unit == "t":
		return fmt.Sprintf("%.1f", mib/1024/1024)
	case mib < 1024:
		return fmt.Sprintf("%dM", int64(math.RoundToEven(mib)))
	case mib < 1024*1024:
		return fmt.Sprintf("%.1fG", mib/1024)
	}
	return fmt.Sprintf("%.1fT", mib/1024/1024)
}

func moment(v any, zone *time.Location) string {
	seconds, ok := number(v)
	if !ok {
		return "?"
	}
	return time.Unix(int64(math.Floor(seconds)), 0).In(zone).Format(time.DateTime)
}

// joined writes the elements of a list with commas between.
func joined(v any, _ *Options) string {
	list, ok := v.([]any)
	if !ok {
		return Str(v)
	}
	return join(list, ",", Str)
}

func join(list []any, separator string, show func(any) string) string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = show(e)
	}
	return strings.Join(texts, separator)
}

// assignments writes an object as "k=v, k=v".
func assignments(v any, _ *Options) string {
	o, ok := v.(object)
	if !ok {
		return Str(v)
	}
	texts := make([]string, len(o))
	for i, m := range o {
		texts[i] = m.key + "=" + Str(m.value)
	}
	return strings.Join(texts, ", ")
}

// connections writes the groups that a network is connected to.
func connections(v any, _ *Options) string {
	list, _ := v.([]any)
	return join(list, ", ", func(e any) string {
		parts, ok := e.([]any)
		if !ok || len(parts) == 0 {
			return Str(e)
		}
		return Str(parts[0]) + " (" + join(parts[1:], ", ", Str) + ")"
	})
}

// moments writes a list of [seconds, microseconds] or null as Python shows a
// list of texts.
func moments(v any, o *Options) string {
	list, ok := v.([]any)
	if !ok {
		return Str(v)
	}
	texts := make([]any, len(list))
	for i, e := range list {
		texts[i] = "?"
		if pair, ok := e.([]any); ok && len(pair) == 2 {
			seconds, _ := number(pair[0])
			micros, _ := number(pair[1])
			texts[i] = time.Unix(int64(seconds), 0).In(o.location()).Format(time.DateTime) + fmt.Sprintf(".%06d", int64(micros))
		}
	}
	return Str(texts)
}

func orDash(v any, _ *Options) string {
	if v == nil || v == "" {
		return "-"
	}
	return Str(v)
}

func owners(v any, o *Options) string {
	if list, _ := v.([]any); len(list) > 0 {
		return joined(v, o)
	}
	return "-"
}

// waiters writes who waits for a lock: "mode:owner,owner, mode:owner".
func waiters(v any, o *Options) string {
	list, _ := v.([]any)
	if len(list) == 0 {
		return "-"
	}
	return join(list, ", ", func(e any) string {
		pair, ok := e.([]any)
		if !ok || len(pair) != 2 {
			return Str(e)
		}
		return Str(pair[0]) + ":" + joined(pair[1], o)
	})
}
