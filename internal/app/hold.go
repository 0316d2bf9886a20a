package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// held is a store on which no controller leads until release is called.
type held struct {
	store   store.Store
	lease   store.Lease
	release func() error
}

// holdOff keeps controllers from leading on a store until release is called.
func holdOff(ctx context.Context, place string) (release func() error, err error) {
	h, err := hold(ctx, place)
	if err != nil {
		return nil, err
	}
	return h.release, nil
}

// hold keeps controllers from leading on a store.
func hold(ctx context.Context, place string) (*held, error) {
	if err := holdsStore(ctx, place); err != nil {
		return nil, err
	}
	url := place
	if !isPostgres(place) {
		if _, err := os.Stat(filepath.Join(place, storeDir)); err != nil {
			return nil, fault.New(fault.NotFound, "there is no store in %s: %w", place, err)
		}
		url = ""
	}
	s, err := openStore(ctx, place, url, &copies{data: place})
	if err != nil {
		return nil, err
	}
	lease, err := s.AcquireLease(ctx, leaseName, "drover store copy "+newUUID(), leaseTime)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	// Renewed, and not taken for long: a copy that is killed holds off nobody after it.
	keep, stop := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() {
		kept <- regularly(keep, leaseRenew, func() error {
			if _, err := s.RenewLease(keep, lease, leaseTime); err != nil && keep.Err() == nil {
				return err
			}
			return nil
		})
	}()
	return &held{s, lease, func() error {
		stop()
		return errors.Join(<-kept, s.ReleaseLease(context.WithoutCancel(ctx), lease), s.Close())
	}}, nil
}
