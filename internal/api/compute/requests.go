package compute

import "github.com/drover-project/drover/internal/intake"

// The bodies of requests: all keys that Nova's schemas know of up to the newest
// microversion that there is, and Cyclades' own. What is not done is refused.
var (
	done = intake.Key{Done: true}

	noHints   = intake.Key{Why: "servers are placed by the cluster, beside those of their group or not"}
	noVolumes = intake.Key{Why: "there are no volumes: a server has the disk of its flavor"}
	noFiles   = intake.Key{Why: "nothing is put into an instance but what its image installs"}
	noHost    = intake.Key{Why: "the cluster chooses the node"}

	bodyOfCreation = intake.Object{
		"server": {Done: true, In: intake.Object{
			"name": done, "description": done, "imageRef": done, "flavorRef": done, "metadata": done, "tags": done,
			"availability_zone": done, "accessIPv4": done, "accessIPv6": done, "OS-DCF:diskConfig": done,
			"networks": done, "min_count": done, "max_count": done, "project": done,
			"security_groups": {So: []string{`[{"name":"default"}]`}, Why: "there are no security groups"},
			"config_drive":    {So: []string{`"False"`, `"false"`}, Why: "there are no config drives"},
			"adminPass":       {Why: "leave it out: no password is set in the instance"},
			"key_name":        done, "user_data": done,
			"personality":                noFiles,
			"trusted_image_certificates": {Why: "images have no signatures"},
			"block_device_mapping":       noVolumes,
			"block_device_mapping_v2":    noVolumes,
			"host":                       noHost,
			"hypervisor_hostname":        noHost,
			"hostname":                   {Why: "the instance is named by the cluster"},
			"return_reservation_id":      {So: []string{`"False"`, `"false"`}, Why: "nothing finds servers by a reservation"},
			"shared_to_project":          {Why: "a server is its project's alone"},
			"SNF:key_names":              noFiles,
		}},
		"os:scheduler_hints":         {Done: true, In: bodyOfHints},
		"OS-SCH-HNT:scheduler_hints": {Done: true, In: bodyOfHints},
	}
	bodyOfUpdate = intake.Object{"server": {Done: true, In: intake.Object{
		"name": done, "description": done, "accessIPv4": done, "accessIPv6": done, "OS-DCF:diskConfig": done,
		"hostname": {Why: "the instance is named by the cluster"},
	}}}
	bodyOfNet = intake.Object{
		"uuid": done, "fixed_ip": done,
		"port": {Why: "ports cannot be made beforehand: name the network"},
		"tag":  {Why: "interfaces have no names in the machine"},
	}
	bodyOfKeyPair = intake.Object{"keypair": {Done: true, In: intake.Object{"name": done, "public_key": done, "type": done, "user_id": done}}}
	bodyOfFlavor  = intake.Object{"flavor": {Done: true, In: intake.Object{
		"name": done, "id": done, "ram": done, "vcpus": done, "disk": done, "os-flavor-access:is_public": done, "description": done,
		"OS-FLV-EXT-DATA:ephemeral": {So: []string{"0", `"0"`}, Why: "a server has one disk"},
		"swap":                      {So: []string{"0", `"0"`}, Why: "a server has one disk"},
		"rxtx_factor":               {So: []string{"1", "1.0", `"1"`, `"1.0"`}, Why: "nothing shares out the network by flavors"},
	}}}
	bodyOfGroup = intake.Object{"server_group": {Done: true, In: intake.Object{
		"name": done, "policies": done, "policy": done, "rules": {Done: true, In: intake.Object{"max_server_per_host": done}},
	}}}
	bodyOfDescription = intake.Object{"flavor": {Done: true, In: intake.Object{"description": done}}}
	bodyOfAccess      = intake.Object{"addTenantAccess": {Done: true, In: intake.Object{"tenant": done}}, "removeTenantAccess": {Done: true, In: intake.Object{"tenant": done}}}
	bodyOfConsole     = intake.Object{"remote_console": {Done: true, In: intake.Object{"protocol": done, "type": done}}}
	bodyOfMetadata    = intake.Object{"metadata": done}
	bodyOfItem        = intake.Object{"meta": done}
	bodyOfTags        = intake.Object{"tags": done}
)
