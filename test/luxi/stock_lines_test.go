package luxi

// lines are run by both sets of tools, and what they write is compared.
var lines = [][]string{
	{"gnt-job", "list"}, {"gnt-job", "list", "1", "2"}, {"gnt-job", "list", "999"}, {"gnt-job", "list", "xx"},
	{"gnt-job", "list", "-o", "id,status,received_ts,start_ts,end_ts,opstatus,oppriority,priority,archived"},
	{"gnt-job", "list", "--no-headers", "--separator", ":"}, {"gnt-job", "list", "-F", `status == "success"`},
	{"gnt-job", "list", "--finished"}, {"gnt-job", "list", "-o", "+nosuch"},
	{"gnt-job", "info", "1"}, {"gnt-job", "info", "1", "2", "999"}, {"gnt-job", "watch", "1"}, {"gnt-job", "wait", "1"},
	{"gnt-job", "watch", "999"}, {"gnt-job", "wait", "999"}, {"gnt-job", "cancel", "1"}, {"gnt-job", "archive", "999"},
	{"gnt-job", "change-priority", "1"}, {"gnt-job", "list-fields", "id", "nosuch"},

	{"gnt-filter", "list"}, {"gnt-filter", "list", "-o", "uuid,action"}, {"gnt-filter", "info"}, {"gnt-filter", "delete", "x"},
	{"gnt-filter", "add", "--action=BAD"}, {"gnt-filter", "add", "--predicates", `[["x"]]`}, {"gnt-filter", "add", "--priority=-1"},
	{"gnt-filter", "info", "11111111-1111-1111-1111-111111111111"}, {"gnt-filter", "replace", "nouuid"},

	{"gnt-instance", "list"}, {"gnt-instance", "list", "web1"}, {"gnt-instance", "list", "web*"}, {"gnt-instance", "list", "nosuch"},
	{"gnt-instance", "list", "-o", "name,nosuch"}, {"gnt-instance", "list", "-F", "name === x"},
	{"gnt-instance", "list", "--filter", `status == "running"`},
	{"gnt-instance", "list", "-o", "+tags,be/memory,ctime,disk.sizes,nic.ips,snodes,hvparams"},
	{"gnt-instance", "list", "--units", "g", "-o", "name,be/maxmem,oper_ram"}, {"gnt-instance", "list", "-o", "name,nic.ip/3", "-v"},
	{"gnt-instance", "activate-disks", "web1"}, {"gnt-instance", "deactivate-disks", "web1"}, {"gnt-instance", "recreate-disks", "web1"},
	{"gnt-instance", "recreate-disks", "-n", "node2", "web1"}, {"gnt-instance", "recreate-disks", "-n", "node1:node2", "web1"},
	{"gnt-cluster", "repair-disk-sizes"}, {"gnt-cluster", "repair-disk-sizes", "nosuch"},
	{"gnt-instance", "info", "web1"}, {"gnt-instance", "info", "nosuch"}, {"gnt-instance", "list-tags", "web1"},
	{"gnt-instance", "list-tags", "nosuch"}, {"gnt-instance", "startup", "nosuch"},

	{"gnt-node", "list"}, {"gnt-node", "list", "nosuch"}, {"gnt-node", "list", "-o", "name,role,group,tags,pinst_list,ndparams"},
	{"gnt-node", "info", "node1"}, {"gnt-node", "info"}, {"gnt-node", "list-tags", "node1"},
	{"gnt-node", "health"}, {"gnt-node", "health", "--no-headers", "node1"}, {"gnt-node", "power", "status"}, {"gnt-node", "power", "--separator=:", "status", "node1"},
	{"gnt-node", "power", "off"}, {"gnt-node", "power", "sideways"}, {"gnt-node", "power", "-f", "off", "node1"}, {"gnt-node", "power", "-f", "cycle", "node1"}, {"gnt-node", "power", "on", "nosuch"},
	{"gnt-node", "restricted-command", "x"}, {"gnt-node", "restricted-command", "x", "node1"}, {"gnt-node", "powercycle", "--yes", "node1"},
	{"gnt-group", "list"}, {"gnt-group", "list", "-o", "name,node_list,ipolicy"}, {"gnt-group", "list-tags", "default"},
	{"gnt-network", "list"}, {"gnt-network", "list-tags", "nosuch"},

	{"gnt-cluster", "queue", "info"}, {"gnt-cluster", "watcher", "info"}, {"gnt-cluster", "list-tags"},
	{"gnt-cluster", "search-tags", "env"}, {"gnt-cluster", "version"}, {"gnt-cluster", "queue", "drain"},
	{"gnt-cluster", "queue", "info"}, {"gnt-instance", "startup", "web1"}, {"gnt-cluster", "queue", "undrain"},
	{"gnt-cluster", "watcher", "continue"},
	{"gnt-debug", "locks"}, {"gnt-debug", "delay", "0"}, {"gnt-debug", "delay", "0.01"},
	{"gnt-node", "volumes"}, {"gnt-node", "volumes", "--no-headers", "--separator=:", "-o", "node,size,instance", "node2"}, {"gnt-node", "volumes", "-o", "nosuch,name,other"},
	{"gnt-node", "volumes", "--units", "g", "-o", "+instance", "node1"}, {"gnt-node", "volumes", "nosuch"},
	{"gnt-node", "list-storage", "-t", "lvm-vg"}, {"gnt-node", "list-storage", "-t", "lvm-pv", "--separator", "|", "node2", "node1"}, {"gnt-node", "list-storage", "-t", "file", "-o", "name,allocatable,free"},
	{"gnt-node", "list-storage", "--no-headers", "-t", "lvm-pv", "-o", "free,name"}, {"gnt-node", "list-storage", "--units", "m", "-t", "file"}, {"gnt-node", "list-storage", "-o", "vg"},
	{"gnt-node", "list-storage", "-t", "sharedfile"}, {"gnt-node", "modify-storage", "--allocatable=no", "node2", "lvm-pv", "/dev/fake0"}, {"gnt-node", "list-storage", "-t", "lvm-pv", "-o", "node,allocatable"},
	{"gnt-node", "modify-storage", "--allocatable=yes", "node2", "lvm-pv", "/dev/fake0"}, {"gnt-node", "modify-storage", "node2", "lvm-pv", "/dev/fake0"},
	{"gnt-node", "modify-storage", "--allocatable=yes", "node1", "lvm-vg", "x"}, {"gnt-node", "modify-storage", "--allocatable=yes", "node1", "nosuch", "x"},
	{"gnt-node", "modify-storage", "--allocatable=yes", "node1", "lvm-pv", "/dev/sda"}, {"gnt-node", "repair-storage", "node2", "lvm-vg", "xenvg"},
	{"gnt-node", "repair-storage", "node2", "lvm-vg", "nosuch"}, {"gnt-node", "repair-storage", "node2", "file", "x"}, {"gnt-node", "repair-storage", "nosuch", "lvm-vg", "x"},
	{"gnt-node", "repair-storage", "--ignore-consistency", "node1", "lvm-vg", "xenvg"},
	{"gnt-storage", "diagnose"}, {"gnt-storage", "info"}, {"gnt-storage", "info", "shelf", "nosuch"}, {"gnt-debug", "test-osparams"}, {"gnt-debug", "test-osparams", "--os-parameters-secret", "a=b"},
	{"gnt-os", "list"}, {"gnt-os", "info"}, {"gnt-os", "diagnose"}, {"gnt-backup", "list"}, {"gnt-backup", "list-fields"},

	{"gnt-job", "list", "--output=id"}, {"gnt-job", "list", "--output", "id,status"}, {"gnt-job", "show", "1"},
	{"gnt-instance", "show", "web1"}, {"gnt-node", "show", "node1"}, {"gnt-os", "show"}, {"gnt-group", "info"},
	{"gnt-cluster", "modify"}, {"gnt-network", "modify", "nosuch"}, {"gnt-node", "modify", "node1"}, {"gnt-instance", "modify", "web1"},
	{"gnt-cluster", "modify", "-C", "5"}, {"gnt-cluster", "redist-conf", "-d"},
	{"gnt-instance", "startup", "--tags", "x"}, {"gnt-instance", "startup", "--all", "x"}, {"gnt-instance", "add-tags", "web1", "a b"},
}

// life is one thing after the other, in the words of Ganeti's manual pages.
var life = []string{
	"gnt-cluster modify -C 5 --maintain-node-health no", "gnt-cluster modify -B vcpus=1 -N link=br1", "gnt-cluster modify -H kvm:acpi=false",
	"gnt-cluster modify -D drbd:resync-rate=1000", "gnt-cluster modify --ipolicy-std-specs cpu-count=2", "gnt-cluster modify --ipolicy-vcpu-ratio 4.0",
	"gnt-cluster modify --reserved-lvs=", "gnt-cluster add-tags a", "gnt-cluster remove-tags a", "gnt-cluster verify", "gnt-cluster verify-disks",
	"gnt-cluster redist-conf", "gnt-cluster watcher pause 1h", "gnt-cluster watcher continue", "gnt-cluster master-ping",
	"gnt-cluster show-ispecs-cmd",
	"gnt-group add -D plain:stripes=2 --ipolicy-vcpu-ratio 3 rack2", "gnt-group modify --alloc-policy last_resort rack2", "gnt-group rename rack2 rack3",
	"gnt-group list-fields", "gnt-group assign-nodes rack3 node2", "gnt-group assign-nodes default node2", "gnt-group add-tags rack3 a", "gnt-group remove-tags rack3 a",
	"gnt-group show-ispecs-cmd rack3", "gnt-group remove rack3",
	"gnt-network add --network 192.0.2.0/24 --gateway 192.0.2.1 net1", "gnt-network connect -N mode=bridged,link=br0 net1 default",
	"gnt-network modify --add-reserved-ips 192.0.2.9 net1", "gnt-network info net1", "gnt-network add-tags net1 a", "gnt-network remove-tags net1 a", "gnt-network list",
	"gnt-network list-fields",
	"gnt-instance add -t diskless -o noop --no-name-check --no-ip-check --net 0:network=net1,ip=pool three", "gnt-instance info three",
	"gnt-instance modify --net 0:name=eth0 three", "gnt-instance modify --net add:link=br9 three", "gnt-instance modify --net -1:remove three",
	"gnt-instance modify -O test_param=1 three", "gnt-instance shutdown three",
	"gnt-instance rename -f --no-name-check --no-ip-check three four", "gnt-instance modify --offline four", "gnt-instance modify --online four",
	"gnt-instance startup four", "gnt-instance reboot four", "gnt-instance remove -f four", "gnt-network disconnect net1 default", "gnt-network remove net1",
	"gnt-instance shutdown web1", "gnt-instance modify --disk add:size=64M web1", "gnt-instance modify --disk 1:name=data web1",
	"gnt-instance modify --disk 1:remove web1", "gnt-instance grow-disk web1 0 64M", "gnt-instance reinstall -f -o noop+default web1",
	"gnt-instance move -f -n node2 web1", "gnt-instance start web1", "gnt-instance move -f -n node1 web1", "gnt-instance shutdown web1",
	"gnt-instance activate-disks web1", "gnt-instance deactivate-disks web1", "gnt-cluster repair-disk-sizes web1",
	"gnt-instance console --show-cmd web1", "gnt-instance list-fields", "gnt-instance remove-tags web1 env:prod", "gnt-instance start web1",
	"gnt-node modify -D yes node2", "gnt-node modify -D no node2", "gnt-node add-tags node2 a", "gnt-node remove-tags node2 a", "gnt-node list-fields",
	"gnt-filter list", "gnt-filter list-fields", "gnt-job list-fields", "gnt-job archive 1", "gnt-job autoarchive all", "gnt-debug delay --no-master 0.01",
	"gnt-debug locks", "gnt-os list", "gnt-os modify --hidden yes noop", "gnt-backup list",
	"gnt-backup export -n node2 --long-sleep web1", "gnt-backup list -n node2", "gnt-backup list-fields",
	"gnt-backup import -n node1 -t file --src-node node2 --src-dir web1 --no-name-check --no-ip-check --net 0:mac=auto copy", "gnt-instance info copy",
	"gnt-instance remove -f copy", "gnt-backup remove web1",
	"gnt-debug iallocator --mode=allocate -t drbd --disks 64 -o noop x", "gnt-debug iallocator --mode=node-evacuate web1",
	"gnt-debug submit-job testdata/job.json", "gnt-cluster info", "gnt-cluster rename -f other", "gnt-cluster renew-crypto -f",
	"gnt-instance add -t drbd -s 64M -n node1:node2 -o noop --no-name-check --no-ip-check pair", "gnt-instance migrate -f pair", "gnt-instance failover -f pair",
	"gnt-instance replace-disks -s pair", "gnt-node failover -f node1", "gnt-instance remove -f web2",
	"gnt-node migrate -f node2", "gnt-instance migrate -f pair", "gnt-node evacuate -f -p -I hail node2", "gnt-instance remove -f pair",
	"gnt-group add rack4", "gnt-group assign-nodes rack4 node2", "gnt-instance add -t diskless -n node1 -o noop --no-name-check --no-ip-check four",
	"gnt-instance change-group -I hail --to rack4 four", "gnt-group evacuate --sequential --to default rack4", "gnt-instance remove -f four",
	"gnt-group assign-nodes default node2", "gnt-group remove rack4",
	"gnt-instance batch-create testdata/batch.json", "gnt-instance info batch1", "gnt-instance remove -f batch1",
	"gnt-instance batch-create -I hail testdata/batch2.json", "gnt-instance info batch2", "gnt-instance remove -f batch2", "gnt-instance remove -f batch3",
	"gnt-debug test-osparams --os-parameters=a=b", "gnt-node list-storage", "gnt-node volumes", "gnt-node modify-storage --allocatable=no node1 lvm-pv /dev/fake0",
	"gnt-node modify-storage --allocatable=yes node1 lvm-pv /dev/fake0", "gnt-node repair-storage node1 lvm-vg xenvg", "gnt-storage diagnose", "gnt-storage info",
	"gnt-node powercycle --yes --dry-run node2", "gnt-node remove node2", "gnt-cluster epo --all --force",
	"gnt-debug test-jobqueue",
}

// unset are refused for want of something that the tool cannot say, or that nobody has set: what stands there is told.
var unset = map[string]string{
	"gnt-cluster activate-master-ip": "master-ip-setup", "gnt-cluster deactivate-master-ip --yes": "master-ip-setup", "gnt-cluster destroy --yes-do-it": "has to be said",
}

// elsewhere are those that need something else than the socket.
var elsewhere = []string{
	"gnt-cluster command", "gnt-cluster copyfile", "gnt-node add", // ssh
	"gnt-cluster getmaster", "gnt-cluster init", "gnt-cluster master-failover", "gnt-cluster upgrade", // the files of an installation
	"gnt-debug metad", "gnt-debug wconfd", "gnt-node list-drbd", // other daemons
}
