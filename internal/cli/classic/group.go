package classic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// GroupForm is that of node groups.
var GroupForm = Form{
	Kind: "group",
	Fields: []string{"name", "custom_ndparams", "ndparams", "custom_diskparams", "diskparams", "custom_ipolicy", "ipolicy",
		"alloc_policy", "node_list", "pinst_list", "tags", "uuid"},
	Show: func(c Cells) Record {
		return Record{
			{"Node group", c["name"]},
			{"Node parameters", c.Params("custom_ndparams", "ndparams")},
			{"Disk parameters", nested(c.Object("custom_diskparams"), c.Object("diskparams"))},
			{"Instance policy", groupPolicy(c.Object("custom_ipolicy"), c.Object("ipolicy"))},
		}
	},
}

// nested shows parameters that are grouped: each its own value, or the default
// in parentheses.
func nested(own, filled Cells) Record {
	out := Record{}
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		all := filled.Object(name)
		if len(all) == 0 {
			out = append(out, Entry{name, "default ({})"})
			continue
		}
		out = append(out, Entry{name, Cells{"own": own[name], "all": all}.Params("own", "all")})
	}
	return out
}

// groupPolicy shows the limits for instances of a group: its own, or those of
// the cluster in parentheses.
func groupPolicy(own, filled Cells) Record {
	bounds := []any{}
	for i, pair := range filled.List("minmax") {
		limits, _ := pair.(map[string]any)
		set, _ := own.At("minmax", i).(map[string]any)
		part := func(name string) Record {
			return Cells{"own": set[name], "all": limits[name]}.Params("own", "all")
		}
		bounds = append(bounds, Record{{fmt.Sprintf("max/%d", i), part("max")}, {fmt.Sprintf("min/%d", i), part("min")}})
	}
	return append(Record{{"bounds specs", bounds}}, policyRest(own, filled)...)
}

// policyRest shows the allowed templates and the ratios.
func policyRest(own, filled Cells) Record {
	text := func(name, value string) string {
		if _, set := own[name]; set {
			return value
		}
		return "default (" + value + ")"
	}
	out := Record{{"allowed disk templates", text("disk-templates", Joined(filled.List("disk-templates"), ""))}}
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		if n, number := filled[name].(json.Number); number {
			out = append(out, Entry{name, text(name, wholeNumber(n))})
		}
	}
	return out
}
