package exec

// Reasons why opcodes may or may not be run again after a crash.
const (
	asksOnly    = "it changes nothing"
	setsAState  = "it establishes a state, and doing so again is no change"
	waitsAgain  = "it waits anew"
	createsOnce = "a second run would find what the first one made, and could not tell whose it is"
	removesOnce = "a second run would miss what the first one removed, and could not tell who did"
	listsOnce   = "it changes lists by position, and a second run would meet other positions"
	submitsOnce = "a second run would submit its jobs again"
)

// All returns the catalogue of the opcodes that can be executed.
func All() Catalogue {
	return Catalogue{
		"OP_INSTANCE_CREATE":   {Locks: createLocks, Prepare: instanceCreate, Why: createsOnce},
		"OP_INSTANCE_REMOVE":   {Locks: ownInstance, Prepare: instanceRemove, Why: removesOnce},
		"OP_INSTANCE_STARTUP":  {Locks: ownInstance, Prepare: startup, Resumable: true, Why: setsAState},
		"OP_INSTANCE_SHUTDOWN": {Locks: ownInstance, Prepare: shutdown, Resumable: true, Why: setsAState},
		"OP_INSTANCE_REBOOT":   {Locks: ownInstance, Prepare: reboot, Resumable: true, Why: "it ends with the instance running; at worst the guest restarts twice"},

		"OP_INSTANCE_SET_PARAMS": {Locks: ownInstance, Prepare: instanceModify, Why: listsOnce},

		"OP_NODE_ADD":        {Locks: exclusiveCluster, Prepare: nodeAdd, Why: createsOnce},
		"OP_NODE_SET_PARAMS": {Locks: ownNode, Prepare: nodeModify, Resumable: true, Why: setsAState},

		"OP_CLUSTER_QUERY":        {Prepare: clusterQuery, Resumable: true, Why: asksOnly},
		"OP_CLUSTER_CONFIG_QUERY": {Prepare: clusterConfigQuery, Resumable: true, Why: asksOnly},
		"OP_CLUSTER_SET_PARAMS":   {Prepare: clusterModify, Resumable: true, Why: setsAState},
		"OP_OS_DIAGNOSE":          {Prepare: osDiagnose, Resumable: true, Why: asksOnly},

		"OP_TAGS_GET": {Prepare: tagsGet, Resumable: true, Why: asksOnly},
		"OP_TAGS_SET": {Locks: tagLocks, Prepare: tagsSet, Resumable: true, Why: setsAState},
		"OP_TAGS_DEL": {Locks: tagLocks, Prepare: tagsDel, Why: removesOnce},

		"OP_TEST_DELAY":  {Locks: delayLocks, Prepare: testDelay, Resumable: true, Why: waitsAgain},
		"OP_TEST_DUMMY":  {Prepare: testDummy, Why: submitsOnce},
		"OP_TEST_JQUEUE": {Prepare: testJobQueue, Resumable: true, Why: asksOnly},
	}
}
