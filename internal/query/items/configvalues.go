package items

import "github.com/drover-project/drover/internal/query"

// ConfigValues returns the few settings that old clients ask for by name (LUXI
// QueryConfigValues); nil for a name that is not known.
func ConfigValues(src *query.Source, names []string) []any {
	v := query.NewView(src, nil)
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = configValue(v, name)
	}
	return out
}

func configValue(v *query.View, name string) any {
	switch name {
	case "cluster_name":
		return v.Cluster.Name
	case "master_node":
		return masterName(v.Inventory)
	case "drain_flag":
		return v.Runtime.Drained
	case "watcher_pause":
		if v.Runtime.WatcherPause == 0 {
			return nil
		}
		return v.Runtime.WatcherPause
	case "modify_ssh_setup":
		return v.Cluster.ModifySSHSetup
	case "ssh_key_type":
		return v.Cluster.SSHKeyType
	case "ssh_key_bits":
		return v.Cluster.SSHKeyBits
	}
	return nil
}
