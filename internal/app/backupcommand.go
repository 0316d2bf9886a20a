package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/store/image"
)

// BackupCommand returns the verbs of `drover backup` that are about the state of
// the cluster.
func BackupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Short: "Backups of the cluster's state"}
	cmd.AddCommand(createBackup(), verifyBackup(), restoreBackup(), pruneBackups())
	return cmd
}

// atPlace gives a command the option that names a store.
func atPlace(cmd *cobra.Command, place *string) {
	cmd.Flags().StringVar(place, "at", "", "place of the store: the data directory of a controller, or the URL of a PostgreSQL database")
}

func createBackup() *cobra.Command {
	var from string
	var replace, ifLeading bool
	cmd := &cobra.Command{
		Use:   "create [FILE]",
		Short: "Write all that the store holds to a file, also while controllers use it",
		Long: `create writes one consistent picture of the store to FILE, with a checksum, and
reads it again. Only its owner can read it, and secrets are sealed in it as they are
in the store: the file with the key is not part of it. It has what is in the store;
certificates, accounts and the configuration are files of their own.
One whose name ends in ` + image.Compressed + ` is compressed (zstd). In a directory it is made
under a name with the time, compressed; without FILE in the directory that the setting
backups of ` + defaultConfig + ` names. What root makes belongs to whom the directory belongs to.
Without --at it is the store of this machine's controller.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := formOf(cmd)
			if err != nil {
				return err
			}
			if ifLeading {
				if leads, err := tellLeading(cmd, defaultConfig); err != nil || !leads {
					return err
				}
			}
			where, err := backupsAt(args, defaultConfig)
			if err != nil {
				return err
			}
			place, err := placeFor(cmd, from)
			if err != nil {
				return err
			}
			now := time.Now()
			file := image.In(where, now)
			err = imageOf(cmd.Context(), place, func(img *image.Image) error {
				_, err := image.Create(file, img, now, replace)
				return err
			})
			if err != nil {
				return err
			}
			return tellBackup(cmd, file, form)
		},
	}
	atPlace(cmd, &from)
	cmd.Flags().BoolVar(&replace, "yes", false, "replace a file that is there")
	onlyLeading(cmd, &ifLeading)
	return cmd
}

func verifyBackup() *cobra.Command {
	var into string
	var ifLeading bool
	cmd := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Prove that a backup is whole, and tell what it is",
		Long: `verify reads a backup to its end and compares its checksum. Of a directory it is the
newest backup there; without FILE the directory is the one that the setting backups of
` + defaultConfig + ` names. With --restore-into it is restored, too, into an empty
place below DIR that is removed again, compared, and its store checked: a backup that
nobody has restored is none.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := formOf(cmd)
			if err != nil {
				return err
			}
			if ifLeading {
				if leads, err := tellLeading(cmd, defaultConfig); err != nil || !leads {
					return err
				}
			}
			where, err := backupsAt(args, defaultConfig)
			if err != nil {
				return err
			}
			file, err := image.NewestIn(where)
			if err != nil {
				return err
			}
			if err := tellBackup(cmd, file, form); err != nil || into == "" {
				return err
			}
			n, err := tryRestore(cmd.Context(), file, into)
			if err != nil {
				return err
			}
			cmd.PrintErrf("restored %d objects into an empty place, compared them, and found their store consistent\n", n)
			return nil
		},
	}
	cmd.Flags().StringVar(&into, "restore-into", "", "directory in which it is restored to see that it can be; nothing stays there")
	onlyLeading(cmd, &ifLeading)
	return cmd
}

func restoreBackup() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a store from a backup, where there is none",
		Long: `restore makes a store from a backup, at a place that has none yet, and compares
the two object by object. What is left there of a store whose database was lost
is put into the directory left-behind beside the new one. What may have been given out after the backup was
made is not given again: revisions, epochs, job ids and the numbers of servers go
on by ` + jumpText + ` later. The store begins another life: what nodes have kept of jobs
since is not taken for what the restored cluster does. Without --at it is the place
where this machine's controller has its store, as ` + defaultConfig + ` says.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			place, keyFile, err := placeToMake(cmd, to, defaultConfig)
			if err != nil {
				return err
			}
			made, err := restore(cmd.Context(), args[0], place)
			made.tell(cmd)
			if err != nil {
				return err
			}
			if _, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %d objects, and compared them\n", made.objects); err != nil {
				return err
			}
			lacked, err := lackedAt(args[0], place, keyFile)
			if lacked != "" {
				cmd.PrintErrln(lacked)
			}
			return err
		},
	}
	atPlace(cmd, &to)
	return cmd
}

func tellBackup(cmd *cobra.Command, path, form string) error {
	f, err := image.Open(path)
	if err != nil {
		return err
	}
	keys, err := keysIn(f.Image())
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s: %d objects as of revision %d, made %s, %s\n", path, f.Objects, f.Revision, f.Made.Format(time.RFC3339), health.Size(uint64(f.Size)))
	if len(keys) > 0 {
		text += "its secrets are sealed with the key " + strings.Join(keys, ", ") + ", which is not in it\n"
	}
	if form != "table" {
		data, err := json.MarshalIndent(map[string]any{"file": path, "objects": f.Objects, "revision": f.Revision, "made": f.Made.Format(time.RFC3339), "bytes": f.Size, "keys": keys}, "", "  ")
		if err != nil {
			return err
		}
		if text, err = inForm(data, form); err != nil {
			return err
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}
