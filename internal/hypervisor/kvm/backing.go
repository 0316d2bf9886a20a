package kvm

import "github.com/drover-project/drover/internal/storage"

// Backing is what the volumes are kept in.
func (d *Driver) Backing() storage.Backing { return d.cfg.Volumes }
