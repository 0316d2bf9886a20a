package exec

import "maps"

// Reasons why opcodes may or may not be run again after a crash.
const (
	asksOnly    = "it changes nothing"
	setsAState  = "it establishes a state, and doing so again is no change"
	waitsOn     = "it waits for what is left of its time"
	createsOnce = "a second run would find what the first one made, and could not tell whose it is"
	removesOnce = "a second run would miss what the first one removed, and could not tell who did"
	listsOnce   = "it changes lists by position, and a second run would meet other positions"
	movesOnce   = "a second run would find the instance moved, and move it back"
	submitsOnce = "a second run would submit its jobs again"
)

// All returns the catalogue of the opcodes that can be executed. Those that
// are queries are answered from the source; those that give names to instances
// ask about them.
func All(source Source, names Names) Catalogue {
	all := queryExecutors(source)
	for _, part := range []Catalogue{namingExecutors(names), instanceExecutors, clusterExecutors, groupExecutors, imageExecutors, exportExecutors, storageExecutors, tagAndTestExecutors} {
		maps.Copy(all, part)
	}
	return all
}

func namingExecutors(names Names) Catalogue {
	names.places = newPlaces()
	return Catalogue{
		"OP_INSTANCE_CREATE":        {Locks: createLocks, Asks: true, Prepare: names.create, Why: createsOnce},
		"OP_INSTANCE_RENAME":        {Locks: renameLocks, Asks: true, Prepare: names.rename, Why: removesOnce},
		"OP_INSTANCE_REPLACE_DISKS": {Locks: replaceLocks, Asks: true, Prepare: names.replaceDisks, Why: "a second run would find the new node in place of the old one"},
		"OP_INSTANCE_FAILOVER":      {Locks: relocationLocks, Asks: true, Prepare: names.failover, Why: movesOnce},
		"OP_INSTANCE_MIGRATE":       {Locks: relocationLocks, Asks: true, Prepare: names.migrate, Why: movesOnce},
		"OP_NODE_EVACUATE":          {Locks: evacuationLocks, Prepare: names.evacuate, Why: submitsOnce},
		"OP_NODE_MIGRATE":           {Locks: nodeMigrationLocks, Prepare: names.migrateNode, Why: submitsOnce},
		"OP_INSTANCE_CHANGE_GROUP":  {Locks: changeGroupLocks, Prepare: names.changeGroup, Why: submitsOnce},
		"OP_CLUSTER_SET_PARAMS":     {Prepare: names.modifyCluster, Resumable: true, Why: setsAState},
		"OP_TEST_ALLOCATOR":         {Prepare: names.testAllocator, Resumable: true, Why: asksOnly},
		"OP_INSTANCE_MULTI_ALLOC":   {Locks: batchLocks, Prepare: names.multiAlloc, Why: submitsOnce},
		"OP_OOB_COMMAND":            {Locks: outOfBandLocks, Prepare: outOfBand, Programs: names.OutOfBand, Why: "a second run would reset nodes again"},
		"OP_CLUSTER_VERIFY_GROUP":   {Prepare: clusterVerifyGroup, Programs: names.OutOfBand, Resumable: true, Why: asksOnly},
		"OP_CLUSTER_REDIST_CONF":    {Prepare: redistribute, Machine: names.Machine, Resumable: true, Why: setsAState},
		"OP_CLUSTER_RENEW_CRYPTO":   {Prepare: renewCrypto, Machine: names.Machine, Resumable: true, Why: "at worst keys and certificates are made anew twice"},
		"OP_GROUP_EVACUATE":         {Locks: groupEvacuationLocks, Prepare: names.evacuateGroup, Why: submitsOnce},

		"OP_TEST_JQUEUE":                  {Locks: onMaster, Prepare: testJobQueue, Machine: names.Machine, Resumable: true, Why: asksOnly},
		"OP_CLUSTER_DESTROY":              {Locks: exclusiveCluster, Prepare: clusterDestroy, Machine: names.Machine, Why: removesOnce},
		"OP_CLUSTER_ACTIVATE_MASTER_IP":   {Prepare: masterAddress(true), Machine: names.Machine, Resumable: true, Why: setsAState},
		"OP_CLUSTER_DEACTIVATE_MASTER_IP": {Prepare: masterAddress(false), Machine: names.Machine, Resumable: true, Why: setsAState},

		"OP_INSTANCE_RECREATE_DISKS": {Locks: recreateLocks, Asks: true, Prepare: names.recreateDisks, Why: "a second run would find the disks that the first one made"},
	}
}

var instanceExecutors = Catalogue{
	"OP_INSTANCE_REMOVE":     {Locks: ownInstance, Asks: true, Prepare: instanceRemove, Why: removesOnce},
	"OP_INSTANCE_STARTUP":    {Locks: ownInstance, Asks: true, Prepare: startup, Resumable: true, Why: setsAState},
	"OP_INSTANCE_SHUTDOWN":   {Locks: ownInstance, Asks: true, Prepare: shutdown, Resumable: true, Why: setsAState},
	"OP_INSTANCE_REBOOT":     {Locks: ownInstance, Asks: true, Prepare: reboot, Resumable: true, Why: "it ends with the instance running; at worst the guest restarts twice"},
	"OP_INSTANCE_REINSTALL":  {Locks: reinstallLocks, Asks: true, Prepare: reinstall, Resumable: true, Why: "it installs from the beginning"},
	"OP_INSTANCE_SET_PARAMS": {Locks: modifyLocks, Asks: true, Prepare: instanceModify, Why: listsOnce},
	"OP_INSTANCE_GROW_DISK":  {Locks: ownInstance, Asks: true, Prepare: growDisk, Why: "a second run would grow the disk again"},
	"OP_INSTANCE_QUERY_DATA": {Prepare: instanceQueryData, Resumable: true, Why: asksOnly},
	"OP_INSTANCE_CONSOLE":    {Prepare: console, Resumable: true, Why: asksOnly},

	"OP_INSTANCE_ACTIVATE_DISKS":   {Locks: ownInstance, Asks: true, Prepare: activateDisks, Resumable: true, Why: setsAState},
	"OP_INSTANCE_MOVE":             {Locks: moveLocks, Asks: true, Prepare: instanceMove, Why: movesOnce},
	"OP_DISK_REMOVE":               {Locks: ownDisk, Asks: true, Prepare: diskRemove, Why: removesOnce},
	"OP_INSTANCE_DEACTIVATE_DISKS": {Locks: ownInstance, Asks: true, Prepare: deactivateDisks, Resumable: true, Why: setsAState},
}

var clusterExecutors = Catalogue{
	"OP_CLUSTER_RENAME":        {Locks: exclusiveCluster, Prepare: clusterRename, Why: "a second run would refuse the name, which is then the present one"},
	"OP_CLUSTER_POST_INIT":     {Prepare: clusterPostInit, Resumable: true, Why: asksOnly},
	"OP_CLUSTER_VERIFY":        {Prepare: clusterVerify, Why: submitsOnce},
	"OP_CLUSTER_VERIFY_CONFIG": {Prepare: clusterVerifyConfig, Resumable: true, Why: asksOnly},
	"OP_CLUSTER_VERIFY_DISKS":  {Prepare: clusterVerifyDisks, Why: submitsOnce},
	"OP_GROUP_VERIFY_DISKS":    {Prepare: groupVerifyDisks, Resumable: true, Why: asksOnly},
	"OP_NODE_ADD":              {Locks: exclusiveCluster, Prepare: nodeAdd, Why: createsOnce},
	"OP_NODE_REMOVE":           {Locks: exclusiveCluster, Prepare: nodeRemove, Why: removesOnce},
	"OP_NODE_ORPHANS":          {Prepare: nodeOrphans, Resumable: true, Why: asksOnly},
	"OP_NODE_CLEAR_ORPHANS":    {Locks: OnNode("node"), Asks: true, Prepare: nodeClearOrphans, Resumable: true, Why: setsAState},
	"OP_NODE_SET_PARAMS":       {Locks: OnNode("node"), Prepare: nodeModify, Resumable: true, Why: setsAState},

	"OP_NODE_POWERCYCLE":    {Prepare: nodePowercycle, Why: "a second run would switch the node off and on again"},
	"OP_RESTRICTED_COMMAND": {Locks: commandLocks, Asks: true, Prepare: restrictedCommand, Why: "a second run would run the command again"},

	"OP_CLUSTER_REPAIR_DISK_SIZES": {Locks: sizesLocks, Prepare: repairDiskSizes, Resumable: true, Why: setsAState},
}

var groupExecutors = Catalogue{
	"OP_GROUP_ADD":          {Prepare: groupAdd, Why: createsOnce},
	"OP_GROUP_REMOVE":       {Locks: ownGroup, Prepare: groupRemove, Why: removesOnce},
	"OP_GROUP_RENAME":       {Locks: ownGroup, Prepare: groupRename, Why: removesOnce},
	"OP_GROUP_SET_PARAMS":   {Locks: ownGroup, Prepare: groupModify, Resumable: true, Why: setsAState},
	"OP_GROUP_ASSIGN_NODES": {Locks: assignLocks, Prepare: groupAssign, Resumable: true, Why: setsAState},

	"OP_NETWORK_ADD":        {Prepare: networkAdd, Why: createsOnce},
	"OP_NETWORK_REMOVE":     {Locks: ownNetwork, Prepare: networkRemove, Why: removesOnce},
	"OP_NETWORK_RENAME":     {Locks: ownNetwork, Prepare: networkRename, Why: removesOnce},
	"OP_NETWORK_SET_PARAMS": {Locks: ownNetwork, Prepare: networkModify, Why: "a second run would find the addresses taken that the first one set aside"},
	"OP_NETWORK_CONNECT":    {Locks: connectLocks, Prepare: networkConnect, Resumable: true, Why: setsAState},
	"OP_NETWORK_DISCONNECT": {Locks: connectLocks, Prepare: networkDisconnect, Resumable: true, Why: setsAState},
}

var imageExecutors = Catalogue{
	"OP_IMAGE_ADD":     {Locks: newImage, Prepare: imageAdd, Why: createsOnce},
	"OP_IMAGE_CAPTURE": {Locks: ownInstance, Prepare: imageCapture, Why: createsOnce},
	"OP_IMAGE_REMOVE":  {Locks: ownImage, Prepare: imageRemove, Why: removesOnce},
}

var exportExecutors = Catalogue{
	"OP_BACKUP_PREPARE": {Prepare: backupPrepare, Resumable: true, Why: asksOnly},
	"OP_BACKUP_EXPORT":  {Locks: exportLocks, Asks: true, Prepare: backupExport, Why: "a second run would stop the instance once more"},
	"OP_BACKUP_REMOVE":  {Locks: exportOwnerLocks, Prepare: backupRemove, Resumable: true, Why: setsAState},
}

var storageExecutors = Catalogue{
	"OP_NODE_QUERYVOLS":      {Locks: storageLocks, Prepare: queryVolumes, Resumable: true, Why: asksOnly},
	"OP_NODE_QUERY_STORAGE":  {Locks: storageLocks, Prepare: queryStorage, Resumable: true, Why: asksOnly},
	"OP_NODE_MODIFY_STORAGE": {Locks: OnNode(fieldNode), Asks: true, Prepare: modifyStorage, Resumable: true, Why: setsAState},
	"OP_REPAIR_NODE_STORAGE": {Locks: OnNode(fieldNode), Asks: true, Prepare: repairStorage, Resumable: true, Why: setsAState},
}

var tagAndTestExecutors = Catalogue{
	"OP_TAGS_GET":    {Prepare: tagsGet, Resumable: true, Why: asksOnly},
	"OP_TAGS_SEARCH": {Prepare: tagsSearch, Resumable: true, Why: asksOnly},
	"OP_TAGS_SET":    {Locks: tagLocks, Prepare: tagsSet, Resumable: true, Why: setsAState},
	"OP_TAGS_DEL":    {Locks: tagLocks, Prepare: tagsDel, Why: removesOnce},

	"OP_TEST_DELAY":     {Locks: delayLocks, Asks: true, Prepare: testDelay, Resumable: true, Why: waitsOn},
	"OP_TEST_DUMMY":     {Prepare: testDummy, Why: submitsOnce},
	"OP_TEST_OS_PARAMS": {Prepare: testOSParams, Resumable: true, Why: asksOnly},
}
