package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

var groupDescription = description{
	what: "group",
	fields: []string{"name", "custom_ndparams", "ndparams", "custom_diskparams", "diskparams", "custom_ipolicy", "ipolicy",
		"alloc_policy", "node_list", "pinst_list", "tags", "uuid"},
	show: func(c cells) record {
		return record{
			{"Node group", c["name"]},
			{"Node parameters", c.params("custom_ndparams", "ndparams")},
			{"Disk parameters", nested(c.object("custom_diskparams"), c.object("diskparams"))},
			{"Instance policy", groupPolicy(c.object("custom_ipolicy"), c.object("ipolicy"))},
		}
	},
}

// nested shows parameters that are grouped: each its own value, or the default
// in parentheses.
func nested(own, filled cells) record {
	out := record{}
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		all := filled.object(name)
		if len(all) == 0 {
			out = append(out, entry{name, "default ({})"})
			continue
		}
		out = append(out, entry{name, cells{"own": own[name], "all": all}.params("own", "all")})
	}
	return out
}

// groupPolicy shows the limits for instances of a group: its own, or those of
// the cluster in parentheses.
func groupPolicy(own, filled cells) record {
	bounds := []any{}
	for i, pair := range filled.list("minmax") {
		limits, _ := pair.(map[string]any)
		set, _ := own.at("minmax", i).(map[string]any)
		part := func(name string) record {
			return cells{"own": set[name], "all": limits[name]}.params("own", "all")
		}
		bounds = append(bounds, record{{fmt.Sprintf("max/%d", i), part("max")}, {fmt.Sprintf("min/%d", i), part("min")}})
	}
	return append(record{{"bounds specs", bounds}}, policyRest(own, filled)...)
}

// policyRest shows the allowed templates and the ratios.
func policyRest(own, filled cells) record {
	text := func(name, value string) string {
		if _, set := own[name]; set {
			return value
		}
		return "default (" + value + ")"
	}
	out := record{{"allowed disk templates", text("disk-templates", joined(filled.list("disk-templates"), ""))}}
	for _, name := range slices.Sorted(maps.Keys(filled)) {
		if n, number := filled[name].(json.Number); number {
			out = append(out, entry{name, text(name, wholeNumber(n))})
		}
	}
	return out
}
