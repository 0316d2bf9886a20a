package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/tinyguest"
)

// ImageCommand returns the verb of `drover image` that makes an image on this machine.
func ImageCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "image"}
	cmd.AddCommand(buildTiny())
	return cmd
}

// guestDir is where this user's tiny guests are kept; otherwise is for a user who has no directory of that kind. Those of root, whose home is closed to
// others, are where everybody reaches them: machines run as users without rights.
func guestDir(otherwise string) string {
	cache, err := os.UserCacheDir()
	switch {
	case err != nil:
		cache = otherwise
	case os.Geteuid() == 0 && os.Getenv("XDG_CACHE_HOME") == "":
		cache = "/var/cache"
	}
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "drover", "guest")
}

func buildTiny() *cobra.Command {
	dir := guestDir("")
	cmd := &cobra.Command{
		Use:   "build-tiny",
		Short: "Make a tiny Linux on this machine that machines can start from",
		Long: `build-tiny makes a tiny Linux of Debian's kernel for clouds and busybox: two
files that machines start from without a disk. It takes apt-get and dpkg-deb,
and no rights; 27 MB are fetched. What is there and fits is kept: a newer
kernel comes when the directory has been removed.

It asks no controller. Nodes need the files under the same path, readable by
everybody: run it on each of them, with the same --dir.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			form, err := formOf(cmd)
			if err != nil {
				return err
			}
			if dir == "" {
				return fault.New(fault.Invalid, "this user has no directory that the guest could be kept in").At("dir").WithHint("name one: --dir DIR")
			}
			guest, err := tinyguest.Build(cmd.Context(), tinyguest.Options{Dir: dir, Progress: func(text string) { cmd.PrintErrln("tiny guest: " + text) }})
			if err != nil {
				return err
			}
			return tellGuest(cmd, guest, form)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", dir, "directory that it is kept in; it is made if it is not there")
	return cmd
}

// startsTiny are the hypervisor parameters of a machine that starts from a tiny guest.
func startsTiny(guest tinyguest.Guest) cluster.Params {
	return cluster.Params{"kernel_path": guest.Kernel, "initrd_path": guest.Initrd, "kernel_args": "quiet panic=1", "root_path": ""}
}

// tellGuest tells where a guest is, and how machines start from it.
func tellGuest(cmd *cobra.Command, guest tinyguest.Guest, form string) error {
	if form == "table" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), `Linux %s
kernel  %s
initrd  %s

A machine that starts from it:
  drover instance add NAME --os noop --disk 0:size=64M -B memory=%d \
    -H kvm:kernel_path=%[2]s,\
initrd_path=%[3]s,\
kernel_args="quiet panic=1",root_path=
`, guest.Version, guest.Kernel, guest.Initrd, tinyguest.MinMemory)
		return err
	}
	data, err := json.Marshal(map[string]any{"version": guest.Version, "kernel": guest.Kernel, "initrd": guest.Initrd, "memory": tinyguest.MinMemory, "hvparams": startsTiny(guest)})
	if err != nil {
		return err
	}
	text, err := inForm(data, form)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}
