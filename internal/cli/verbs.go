package cli

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/shell"
)

// looking are the verbs of each noun that only look.
const looking = `
	archive: export
	backup: list list-fields
	cluster: getmaster health info list-tags master-ping masters search-tags verify version
	cluster format: info
	cluster queue: info
	cluster watcher: info
	debug: allocator bundle locks
	deploy: console diff explain history lint logs picture schema status tasks validate watch
	deploy env: list list-fields show
	deploy graph: show
	disk: info list list-fields
	filter: export info list list-fields stats test
	group: info list list-fields list-tags
	image: info list list-fields
	instance: console explain-placement info list list-fields list-tags log
	job: explain info list list-fields wait watch
	lock: list list-fields
	manage flavor: list show
	manage project: list
	manage quota: list show
	manage server-tags: list
	manage user: list show
	network: info list list-fields list-tags
	node: info list list-fields list-storage list-tags orphans volumes
	os: diagnose info list
	query: deployment disk environment event explain export fields filter group image instance job lock network node opcode parse reason server server-tag task
	server: list log show
	server cluster: list
	server tag: check list show
	storage: diagnose info
	tag: list search
	top
	version
	why`

// changing are those that change something which another command brings back, or
// that take away no more than what they name.
const changing = `
	backup: import
	burnin
	man
	cluster: activate-master-ip add-tags command drain-controller master-failover modify redist-conf remove-tags rename repair-disk-sizes undrain-controller
	cluster queue: drain undrain
	cluster watcher: continue pause
	debug: delay test-osparams
	deploy: plan resume retry run stop
	deploy env: put
	deploy graph: fmt put
	deploy node: put
	group: add add-tags assign-nodes modify remove-tags rename
	image: add
	instance: activate-disks add add-tags batch-create change-group deactivate-disks grow-disk reboot remove-tags rename replace-disks start stop
	job: archive autoarchive change-priority drain submit undrain
	manage flavor: add grant modify remove revoke
	manage quota: set unset
	manage project: add
	manage server: lock unlock
	manage server-tags: add delete
	manage user: add enable grant password
	network: add add-tags connect disconnect modify remove-tags
	node: add add-tags drain health modify modify-storage offline online remove-tags restricted-command token undrain
	server: create image lock reboot reconcile resize resize-confirm resize-revert start stop unlock
	server tag: add delete
	tag: add remove
	web`

// asking are the verbs that ask before they disturb what runs, or destroy
// something.
var asking = []shell.Verb{
	{Path: "disk remove", Does: shell.Destroys, Question: "Remove the disk %s with all data?", Example: "disk remove 7d0c3f5e-52b1-4f0c-9a44-2f5c7ce5b111"},
	{Path: "instance remove", Does: shell.Destroys, Question: "Remove %s with all data?", Example: "instance remove web1"},
	{Path: "instance reinstall", Does: shell.Destroys, Question: "Install %s anew? All data on the disks are lost.", Example: "instance reinstall web1"},
	{Path: "instance recreate-disks", Does: shell.Destroys, Question: "Make the disks of %s anew? All data on them are lost.", Example: "instance recreate-disks web1"},
	{Path: "instance modify", Does: shell.Destroys, When: "a disk is removed", Question: "Remove %s with all data?", Example: "instance modify web1 --disk 0:remove"},
	{Path: "instance migrate", Does: shell.Disturbs, Question: "Migrate %s?", Example: "instance migrate web1"},
	{Path: "instance failover", Does: shell.Disturbs, Question: "Fail %s over? What fails over stops on the way.", Example: "instance failover web1"},
	{Path: "instance move", Does: shell.Disturbs, Question: "Move %s? What moves stops until its disks are copied.", Example: "instance move web1 --target-node node2.drover.example"},
	{Path: "node remove", Does: shell.Destroys, Question: "Remove %s from the cluster?", Example: "node remove node2.drover.example"},
	{Path: "node clear-orphans", Does: shell.Destroys, Question: "Remove %s, with all data?", Example: "node clear-orphans node1.drover.example"},
	{Path: "node evacuate", Does: shell.Disturbs, Question: "Move all instances off %s?", Example: "node evacuate node1.drover.example"},
	{Path: "node migrate", Does: shell.Disturbs, Question: "Migrate the instances of %s?", Example: "node migrate node1.drover.example"},
	{Path: "node power", Does: shell.Disturbs, When: "nodes are switched off", Question: "%s, at once?", Example: "node power off node1.drover.example"},
	{Path: "node powercycle", Does: shell.Disturbs, Question: "Switch %s off and on, at once?", Example: "node powercycle node1.drover.example"},
	{Path: "cluster renew-crypto", Does: shell.Disturbs, Question: "Make anew: %s? Who has a copy needs the new one.", Example: "cluster renew-crypto --new-rapi-certificate"},
	{Path: "node repair-storage", Does: shell.Destroys, Question: "Repair %s? What lay on devices that are gone is lost.", Example: "node repair-storage node1.drover.example lvm-vg xenvg"},
	{Path: "cluster destroy", Does: shell.Destroys, Question: "Destroy the cluster %s? It cannot be taken back.", Example: "cluster destroy dev.drover.example"},
	{Path: "cluster deactivate-master-ip", Does: shell.Disturbs, Question: "Take the address of the cluster away? Who is connected to it is cut off.", Example: "cluster deactivate-master-ip"},
	{Path: "cluster epo", Does: shell.Disturbs, Question: "%s %s?", Example: "cluster epo node2.drover.example"},
	{Path: "cluster format raise", Does: shell.Destroys, When: "there is a format to raise", Question: "Raise the format of the store? Programs that do not know it cannot lead any more.", Example: "cluster format raise"},
	{Path: "cluster forget-controller", Does: shell.Destroys, Question: "Forget the controller %s?", Example: "cluster forget-controller c3"},
	{Path: "group remove", Does: shell.Destroys, Question: "Remove the node group %s?", Example: "group remove spare"},
	{Path: "group evacuate", Does: shell.Disturbs, Question: "Move all instances out of %s?", Example: "group evacuate default"},
	{Path: "archive prune", Does: shell.Destroys, Question: "Remove for good %s?", When: "jobs, events or deployments would go", Example: "archive prune --older-than 0s"},
	{Path: "image remove", Does: shell.Destroys, Question: "Remove the image %s?", Example: "image remove debian12"},
	{Path: "network remove", Does: shell.Destroys, Question: "Remove the network %s?", Example: "network remove lab"},
	{Path: "backup export", Does: shell.Destroys, When: "the instance is removed", Question: "Remove %s with all data after the export?",
		Example: "backup export web1 --target-node node2.drover.example --remove-instance"},
	{Path: "backup remove", Does: shell.Destroys, Question: "Remove the exports of %s?", Example: "backup remove web1"},
	{Path: "job cancel", Does: shell.Destroys, When: "the jobs were not named, or what runs is killed", Question: "Cancel %s?", Example: "job cancel --pending"},
	{Path: "filter add", Does: shell.Destroys, When: "the rule concerns every job", Question: "%s Go on?", Example: "filter add --action REJECT --all-jobs"},
	{Path: "filter replace", Does: shell.Destroys, When: "the rule concerns every job", Question: "%s Go on?", Example: "filter replace limit --action REJECT --all-jobs"},
	{Path: "filter modify", Does: shell.Destroys, When: "the rule concerns every job", Question: "%s Go on?", Example: "filter modify everything --shadow=false"},
	{Path: "filter apply", Does: shell.Destroys, When: "jobs would be cancelled, or a rule concerns every job", Question: "%s Go on?", Example: "filter apply everything.json"},
	{Path: "filter delete", Does: shell.Disturbs, When: "the rule holds jobs", Question: "%s Go on?", Example: "filter delete holds"},
	{Path: "server delete", ByName: true, Does: shell.Destroys, Question: "Delete %s with all data?", Example: "server delete shop"},
	{Path: "server rebuild", ByName: true, Does: shell.Destroys, Question: "Install %s anew? All data on the disk are lost.", Example: "server rebuild shop --image noop"},
	{Path: "server match", ByName: true, Does: shell.Disturbs, Question: "Have the server %[1]s be the instance %[2]s, and do to that what its user asks for?", Example: "server match shop web1"},
	{Path: "server tag clear", ByName: true, Does: shell.Destroys, Question: "Remove all tags of %s?", Example: "server tag clear shop"},
	{Path: "server tag replace", Does: shell.Destroys, When: "no tag is given", Question: "Remove all tags of %s?", Example: "server tag replace shop"},
	{Path: "manage server-tags clear", ByName: true, Does: shell.Destroys, Question: "Remove all tags of %s in this namespace?", Example: "manage server-tags clear shop"},
	{Path: "manage server-tags replace", Does: shell.Destroys, When: "no tag is given", Question: "Remove all tags of %s in this namespace?", Example: "manage server-tags replace shop"},
	{Path: "manage user remove", Does: shell.Destroys, Question: "Remove the user %s with all sessions and application credentials?", Example: "manage user remove bob"},
	{Path: "manage user disable", Does: shell.Disturbs, Question: "Let %s log in no more?", Example: "manage user disable bob"},
	{Path: "manage user revoke", Does: shell.Disturbs, Question: "Take the role %s in %s from %s?", Example: "manage user revoke bob lab member"},
	{Path: "manage project remove", Does: shell.Destroys, Question: "Remove the project %s with all roles in it?", Example: "manage project remove lab"},
	{Path: "deploy delete", Does: shell.Destroys, Question: "Remove for good %s?", Example: "deploy delete 1"},
	{Path: "deploy env delete", ByName: true, Does: shell.Destroys, Question: "Remove the environment %s and what is known of successes in it?", Example: "deploy env delete shop"},
	{Path: "deploy node delete", ByName: true, Does: shell.Destroys, Question: "Remove the node %[2]s from the environment %[1]s?", Example: "deploy node delete shop a"},
	{Path: "deploy node forget", ByName: true, Does: shell.Destroys, Question: "Forget what was done on the node %[2]s of the environment %[1]s? All of it runs there again.", Example: "deploy node forget shop a"},
	{Path: "deploy graph delete", ByName: true, Does: shell.Destroys, Question: "Remove the task graph %s?", Example: "deploy graph delete base"},
}

// Verbs is the table of all verbs that talk to a controller: what each does to what
// there is, and what is asked before.
func Verbs() []shell.Verb {
	out := slices.Clone(asking)
	for does, text := range map[shell.Effect]string{shell.Looks: looking, shell.Changes: changing} {
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			noun, verbs, has := strings.Cut(strings.TrimSpace(line), ": ")
			if !has {
				out = append(out, shell.Verb{Path: noun, Does: does})
			}
			for verb := range strings.FieldsSeq(verbs) {
				out = append(out, shell.Verb{Path: noun + " " + verb, Does: does})
			}
		}
	}
	return out
}
