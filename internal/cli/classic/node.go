package classic

// NodeForm is that of nodes.
var NodeForm = Form{
	Kind: "node",
	Fields: []string{"name", "pip", "sip", "master_candidate", "drained", "offline", "master_capable", "vm_capable",
		"pinst_list", "sinst_list", "custom_ndparams", "ndparams", "group", "role", "tags", "uuid"},
	Show: func(c Cells) Record {
		return Record{
			{"Node name", c["name"]},
			{"primary ip", c["pip"]},
			{"secondary ip", c["sip"]},
			{"master candidate", c["master_candidate"]},
			{"drained", c["drained"]},
			{"offline", c["offline"]},
			{"master_capable", c["master_capable"]},
			{"vm_capable", c["vm_capable"]},
			{"primary for instances", c.List("pinst_list")},
			{"secondary for instances", c.List("sinst_list")},
			{"node parameters", c.Params("custom_ndparams", "ndparams")},
		}
	},
}
