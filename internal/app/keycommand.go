package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store/image"
)

// forgetKeyCommand returns `drover store forget-key`.
func forgetKeyCommand() *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:   "forget-key KEY PLACE",
		Short: "Give up the secrets that were sealed with a key that is lost",
		Long: `forget-key has a store go on whose key file is lost for good: what was sealed with
the key named KEY (a start that lacks it tells its name) is replaced by nothing.
States of environments and files of task graphs have to be put again, and private
parameters of operating systems set again; all else is as it was. No controller may
lead on the store meanwhile. Without --yes it says what it would do. PLACE is the
data directory of a controller, or the URL of a PostgreSQL database.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := forgetKey(cmd.Context(), args[0], args[1], sure)
			if err != nil {
				return err
			}
			did := "were given up"
			if !sure {
				did = "would be given up (nothing was changed: say --yes)"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the secrets of %d objects %s\n", n, did)
			return err
		},
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do it")
	return cmd
}

func forgetKey(ctx context.Context, id, place string, sure bool) (count int, err error) {
	held, err := hold(ctx, place)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, held.release()) }()
	ids, err := sealed.KeysOf(ctx, held.store)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(ids, id) {
		return 0, fault.New(fault.NotFound, "nothing in the store is sealed with a key %q", id).WithHint("%s", keysThere(ids))
	}
	return sealed.Forget(ctx, held.store, held.lease.Epoch, id, sealedParts(), sure)
}

func keysThere(ids []string) string {
	if len(ids) == 0 {
		return "nothing is sealed at all"
	}
	return "its keys are " + strings.Join(ids, ", ")
}

// keysIn names the keys with which secrets of an image are sealed.
func keysIn(img *image.Image) ([]string, error) {
	ids := []string{}
	for o, err := range img.Objects {
		if err != nil {
			return nil, err
		}
		if o.Kind == sealed.KindKey {
			ids = append(ids, o.ID)
		}
	}
	return ids, nil
}

// lackedAt says which keys are missing where a backup was restored; empty if none is. keyFile is the file of the keys there, empty where that is not known.
func lackedAt(file, place, keyFile string) (string, error) {
	f, err := image.Open(file)
	if err != nil {
		return "", err
	}
	ids, err := keysIn(f.Image())
	if err != nil || len(ids) == 0 {
		return "", err
	}
	if keyFile == "" && isPostgres(place) {
		return "its secrets are sealed with the key " + strings.Join(ids, ", ") + ", which the key file of its controllers has to hold", nil
	}
	path := cmp.Or(keyFile, filepath.Join(place, keyName))
	ring, err := sealed.ReadRing(path)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	if ids = slices.DeleteFunc(ids, ring.Has); len(ids) == 0 {
		return "", nil
	}
	return "its secrets are sealed with the key " + strings.Join(ids, ", ") + ", which " + path + " does not hold: put the key file there before a controller is started, or name it as key-file", nil
}
