package query

// ConfigValues returns the few settings that old clients ask for by name (LUXI
// QueryConfigValues); nil for a name that is not known.
func ConfigValues(src *Source, names []string) []any {
	v := newView(src, nil)
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = configValue(v, name)
	}
	return out
}

func configValue(v *view, name string) any {
	switch name {
	case "cluster_name":
		return v.cluster.Name
	case "master_node":
		return masterName(v.inv)
	case "drain_flag":
		return v.Runtime.Drained
	case "watcher_pause":
		if v.Runtime.WatcherPause == 0 {
			return nil
		}
		return v.Runtime.WatcherPause
	case "modify_ssh_setup":
		return v.cluster.ModifySSHSetup
	case "ssh_key_type":
		return v.cluster.SSHKeyType
	case "ssh_key_bits":
		return v.cluster.SSHKeyBits
	}
	return nil
}
