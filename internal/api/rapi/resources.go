package rapi

import (
	"maps"
	"net/http"
	"slices"

	"github.com/drover-project/drover/internal/rights"
)

// Short names for the methods and for common places of parameters.
const (
	get, put, post, del, patch = http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch
)

type methods = map[string]handler

var (
	resources = slices.Concat(clusterResources, nodeResources, instanceResources, groupResources, networkResources,
		jobResources, queryResources, filterResources, deployResources, serverResources)

	instanceName = map[string]string{"name": "instance_name"}
	nodeName     = map[string]string{"name": "node_name"}
	groupName    = map[string]string{"name": "group_name"}
	networkName  = map[string]string{"name": "network_name"}
	dryRun       = map[string]string{"dry-run": "dry_run"}

	// meant is the UUID of the instance that a request is about, our own: another one that has its name
	// is left alone. Whatever changes an instance takes it; what does not, refuses it.
	meant = map[string]string{meantUUID: "instance_uuid"}
)

const meantUUID = "instance_uuid"

// clusterResources are the resources of the cluster as a whole.
var clusterResources = []route{
	{"/", methods{get: constant(nil)}},
	{"/2", methods{get: constant(nil)}},
	{"/version", methods{get: constant(protocolVersion)}},
	{"/2/features", methods{get: constant(features)}},
	{"/2/info", methods{get: {needs: rights.None, serve: clusterInfo}}},
	{"/2/os", methods{get: {needs: rights.None, serve: listOS}}},
	{"/2/redistribute-config", methods{put: submits(jobSpec{class: "redist_config", opcode: "OP_CLUSTER_REDIST_CONF", body: bodyOptional})}},
	{"/2/modify", methods{put: submits(jobSpec{class: "cluster_modify", opcode: "OP_CLUSTER_SET_PARAMS", body: bodyRequired,
		more: refuseCompressionTools})}},
	{"/2/tags", tagMethods("tags", "cluster", "cluster")},
}

// nodeResources are the resources of nodes.
var nodeResources = []route{
	{"/2/nodes", methods{get: list(nodeItem)}},
	{"/2/nodes/{name}", methods{get: single(nodeItem)}},
	{"/2/nodes/{name}/tags", tagMethods("nodes_name_tags", "node", "node")},
	{"/2/nodes/{name}/powercycle", methods{post: submits(jobSpec{class: "nodes_name_powercycle", opcode: "OP_NODE_POWERCYCLE",
		body: bodyOptional, path: nodeName, flags: map[string]string{"force": "force"}})}},
	{"/2/nodes/{name}/role", methods{get: {needs: rights.None, serve: nodeRole}, put: submits(jobSpec{class: "nodes_name_role", opcode: "OP_NODE_SET_PARAMS",
		path: nodeName, flags: map[string]string{"force": "force", "auto-promote": "auto_promote"}, more: roleFlags})}},
	{"/2/nodes/{name}/evacuate", methods{post: submits(jobSpec{class: "nodes_name_evacuate", opcode: "OP_NODE_EVACUATE",
		body: bodyOptional, path: nodeName, flags: dryRun})}},
	{"/2/nodes/{name}/migrate", methods{post: submits(jobSpec{class: "nodes_name_migrate", opcode: "OP_NODE_MIGRATE",
		body: bodyOptional, path: nodeName, more: migrationMode})}},
	{"/2/nodes/{name}/modify", methods{post: submits(jobSpec{class: "nodes_name_modify", opcode: "OP_NODE_SET_PARAMS",
		body: bodyRequired, path: nodeName})}},
	{"/2/nodes/{name}/storage", methods{get: submits(jobSpec{class: "nodes_name_storage", opcode: "OP_NODE_QUERY_STORAGE",
		texts: map[string]string{"storage_type": "storage_type"}, more: storageFields})}},
	{"/2/nodes/{name}/storage/modify", methods{put: submits(jobSpec{class: "nodes_name_storage_modify", opcode: "OP_NODE_MODIFY_STORAGE",
		path: nodeName, texts: storageUnit, more: storageChanges})}},
	{"/2/nodes/{name}/storage/repair", methods{put: submits(jobSpec{class: "nodes_name_storage_repair", opcode: "OP_REPAIR_NODE_STORAGE",
		path: nodeName, texts: storageUnit, more: requireStorageName})}},
}

// storageUnit names a storage unit in the query string.
var storageUnit = map[string]string{"storage_type": "storage_type", "name": "name"}

// instanceResources are the resources of instances.
var instanceResources = []route{
	{"/2/instances", methods{get: list(instanceItem), post: submits(jobSpec{class: "instances", opcode: "OP_INSTANCE_CREATE",
		body: bodyRequired, flags: dryRun, renames: creationRenames, more: requireVersion})}},
	{"/2/instances-multi-alloc", methods{post: submits(jobSpec{class: "instances_multi_alloc", opcode: "OP_INSTANCE_MULTI_ALLOC",
		body: bodyRequired, flags: dryRun, more: innerCreations})}},
	{"/2/instances/{name}", methods{get: single(instanceItem), del: submits(jobSpec{class: "instances_name", opcode: "OP_INSTANCE_REMOVE",
		body: bodyOptional, path: instanceName, flags: dryRun, texts: meant, fixed: parameters{"ignore_failures": false}})}},
	{"/2/instances/{name}/tags", tagMethodsWith("instances_name_tags", "instance", "instance", tagsOfInstance)},
	{"/2/instances/{name}/info", methods{get: submits(jobSpec{class: "instances_name_info", opcode: "OP_INSTANCE_QUERY_DATA", needs: rights.Look,
		flags: map[string]string{"static": "static"}, more: onlyThisInstance})}},
	{"/2/instances/{name}/reboot", methods{post: onInstance("reboot", "OP_INSTANCE_REBOOT", jobSpec{body: bodyOptional, path: instanceName,
		flags: map[string]string{"dry-run": "dry_run", "ignore_secondaries": "ignore_secondaries"}, more: rebootType})}},
	{"/2/instances/{name}/reinstall", methods{post: {needs: rights.Change, body: opcodeBody, meant: true, serve: reinstall}}},
	{"/2/instances/{name}/replace-disks", methods{post: onInstance("replace_disks", "OP_INSTANCE_REPLACE_DISKS", jobSpec{
		body: bodyLenient, path: instanceName, more: replacedDisks})}},
	{"/2/instances/{name}/startup", methods{put: onInstance("startup", "OP_INSTANCE_STARTUP", jobSpec{path: instanceName,
		flags: map[string]string{"dry-run": "dry_run", "force": "force", "no_remember": "no_remember"}})}},
	{"/2/instances/{name}/shutdown", methods{put: onInstance("shutdown", "OP_INSTANCE_SHUTDOWN", jobSpec{body: bodyOptional, path: instanceName,
		flags: map[string]string{"dry-run": "dry_run", "no_remember": "no_remember"}})}},
	{"/2/instances/{name}/activate-disks", methods{put: onInstance("activate_disks", "OP_INSTANCE_ACTIVATE_DISKS", jobSpec{path: instanceName,
		flags: map[string]string{"ignore_size": "ignore_size"}})}},
	{"/2/instances/{name}/deactivate-disks", methods{put: onInstance("deactivate_disks", "OP_INSTANCE_DEACTIVATE_DISKS", jobSpec{path: instanceName,
		flags: map[string]string{"force": "force"}})}},
	{"/2/instances/{name}/recreate-disks", methods{post: onInstance("recreate_disks", "OP_INSTANCE_RECREATE_DISKS", jobSpec{
		body: bodyOptional, path: instanceName})}},
	{"/2/instances/{name}/prepare-export", methods{put: onInstance("prepare_export", "OP_BACKUP_PREPARE", jobSpec{path: instanceName,
		texts: map[string]string{"mode": "mode"}})}},
	{"/2/instances/{name}/export", methods{
		put: onInstance("export", "OP_BACKUP_EXPORT", jobSpec{body: bodyOptional, path: instanceName,
			renames: map[string]string{"destination": "target_node"}}),
		del: onInstance("export", "OP_BACKUP_REMOVE", jobSpec{path: instanceName}),
	}},
	{"/2/instances/{name}/migrate", methods{put: onInstance("migrate", "OP_INSTANCE_MIGRATE", jobSpec{body: bodyOptional, path: instanceName})}},
	{"/2/instances/{name}/failover", methods{put: onInstance("failover", "OP_INSTANCE_FAILOVER", jobSpec{body: bodyOptional, path: instanceName})}},
	{"/2/instances/{name}/rename", methods{put: onInstance("rename", "OP_INSTANCE_RENAME", jobSpec{body: bodyRequired, path: instanceName})}},
	{"/2/instances/{name}/modify", methods{put: onInstance("modify", "OP_INSTANCE_SET_PARAMS", jobSpec{body: bodyRequired, path: instanceName,
		renames: map[string]string{"custom_beparams": "beparams", "custom_hvparams": "hvparams"}, more: splitUSBDevices})}},
	{"/2/instances/{name}/disk/{disk}/grow", methods{post: onInstance("disk_grow", "OP_INSTANCE_GROW_DISK", jobSpec{
		body: bodyOptional, path: instanceName, more: diskOfPath})}},
	{"/2/instances/{name}/console", methods{get: {needs: rights.Look, serve: console}}},
}

// onInstance is submits for the part of an instance's resource that the class
// names. The request may give the UUID of the instance that is meant.
func onInstance(part, opcode string, spec jobSpec) handler {
	spec.class, spec.opcode = "instances_name_"+part, opcode
	texts := maps.Clone(meant)
	maps.Copy(texts, spec.texts)
	spec.texts = texts
	return submits(spec)
}

// groupResources are the resources of node groups.
var groupResources = []route{
	{"/2/groups", methods{get: list(groupItem), post: submits(jobSpec{class: "groups", opcode: "OP_GROUP_ADD", body: bodyOptional,
		flags: dryRun, renames: map[string]string{"name": "group_name"}})}},
	{"/2/groups/{name}", methods{get: single(groupItem), del: submits(jobSpec{class: "groups_name", opcode: "OP_GROUP_REMOVE",
		path: groupName, flags: dryRun})}},
	{"/2/groups/{name}/tags", tagMethods("groups_name_tags", "nodegroup", "group")},
	{"/2/groups/{name}/modify", methods{put: submits(jobSpec{class: "groups_name_modify", opcode: "OP_GROUP_SET_PARAMS", body: bodyRequired,
		path: groupName, renames: map[string]string{"custom_ndparams": "ndparams", "custom_ipolicy": "ipolicy", "custom_diskparams": "diskparams"}})}},
	{"/2/groups/{name}/rename", methods{put: submits(jobSpec{class: "groups_name_rename", opcode: "OP_GROUP_RENAME", body: bodyRequired,
		path: groupName, flags: dryRun})}},
	{"/2/groups/{name}/assign-nodes", methods{put: submits(jobSpec{class: "groups_name_assign_nodes", opcode: "OP_GROUP_ASSIGN_NODES",
		body: bodyRequired, path: groupName, flags: map[string]string{"dry-run": "dry_run", "force": "force"}})}},
}

// networkResources are the resources of networks.
var networkResources = []route{
	{"/2/networks", methods{get: list(networkItem), post: submits(jobSpec{class: "networks", opcode: "OP_NETWORK_ADD", body: bodyOptional,
		flags: dryRun, renames: map[string]string{"name": "network_name"}, more: checkAddresses("OP_NETWORK_ADD")})}},
	{"/2/networks/{name}", methods{get: single(networkItem), del: submits(jobSpec{class: "networks_name", opcode: "OP_NETWORK_REMOVE",
		body: bodyOptional, path: networkName, flags: dryRun})}},
	{"/2/networks/{name}/tags", tagMethods("networks_name_tags", "network", "network")},
	{"/2/networks/{name}/connect", methods{put: onNetwork("connect", "OP_NETWORK_CONNECT")}},
	{"/2/networks/{name}/disconnect", methods{put: onNetwork("disconnect", "OP_NETWORK_DISCONNECT")}},
	{"/2/networks/{name}/rename", methods{put: onNetwork("rename", "OP_NETWORK_RENAME")}},
	{"/2/networks/{name}/modify", methods{put: submits(jobSpec{class: "networks_name_modify", opcode: "OP_NETWORK_SET_PARAMS",
		body: bodyRequired, path: networkName, more: checkAddresses("OP_NETWORK_SET_PARAMS")})}},
}

func onNetwork(part, opcode string) handler {
	return submits(jobSpec{class: "networks_name_" + part, opcode: opcode, body: bodyRequired, path: networkName, flags: dryRun})
}

// tagMethods are the methods of the tags of one kind of object; item is what
// queries call it.
func tagMethods(class, kind, item string) methods {
	return tagMethodsWith(class, kind, item, tagsOfQuery)
}

// tagMethodsWith is tagMethods for a kind that takes further parameters.
func tagMethodsWith(class, kind, item string, more func(*request, parameters) (parameters, error)) methods {
	change := func(opcode string) handler {
		h := submits(jobSpec{class: class, opcode: opcode, flags: dryRun, fixed: parameters{"kind": kind}, more: more})
		h.meant = kind == "instance" // by more
		return h
	}
	return methods{get: {needs: rights.None, stored: true, serve: listTags(item)}, put: change("OP_TAGS_SET"), del: change("OP_TAGS_DEL")}
}

// jobResources are the resources of jobs.
var jobResources = []route{
	{"/2/jobs", methods{get: list(jobItem)}},
	{"/2/jobs/{id}", methods{get: {needs: rights.None, stored: true, serve: singleJob}, del: {needs: rights.Change, body: opcodeBody, serve: cancelJob}}},
	{"/2/jobs/{id}/explain", methods{get: {needs: rights.None, serve: explainJob}}},
	{"/2/jobs/{id}/wait", methods{get: {needs: rights.Change, body: opcodeBody, serve: waitForJob}}},
}

// queryResources are queries of any item.
var queryResources = []route{
	{"/2/query/{item}", methods{get: {needs: rights.Look, stored: true, serve: queryByURL}, put: {needs: rights.Look, body: queryBody, serve: queryByBody}}},
	{"/2/query/{item}/fields", methods{get: {needs: rights.None, serve: queryFields}}},
	{"/2/query/{item}/watch", methods{get: {needs: rights.Look, serve: queryWatch}}},
}

// filterResources are the resources of filter rules.
var filterResources = []route{
	{"/2/filters", methods{get: list(filterItem), post: {needs: rights.Change, body: opcodeBody, serve: putFilter}}},
	{"/2/filters/{uuid}", methods{
		get:   {needs: rights.None, stored: true, serve: singleFilter},
		put:   {needs: rights.Change, body: opcodeBody, serve: putFilter},
		patch: {needs: rights.Change, body: opcodeBody, serve: modifyFilter}, // our own
		del:   {needs: rights.Change, body: opcodeBody, serve: deleteFilter},
	}},
}
