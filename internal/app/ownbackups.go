package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/scratch"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// What commands about backups know of the controller of their machine, which is the one that its configuration is for.

// ownSettings are those of this machine's controller.
func ownSettings(config string) (settings, error) {
	from := source{defaults: serveDefaults()}
	if _, err := os.Stat(config); err == nil {
		from.file = config
	}
	return from.read()
}

// backupsAt is where backups are: what was said, or what the configuration says.
func backupsAt(args []string, config string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	s, err := ownSettings(config)
	if err == nil && s.Backups == "" {
		err = fault.New(fault.Invalid, "no file is named, and the configuration names no directory for backups").WithHint("name a file, or set backups in %s", config)
	}
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(s.Backups); err != nil || !info.IsDir() {
		return "", fault.New(fault.NotFound, "the directory for backups, %s, is not there", s.Backups).WithHint("install -d -m 0700 -o drover -g drover %s, or name a file", s.Backups)
	}
	return s.Backups, nil
}

// onlyLeading gives a command the option to leave its work to the machine that leads.
func onlyLeading(cmd *cobra.Command, set *bool) {
	cmd.Flags().BoolVar(set, "if-leading", false, "do it only where the controller of this machine leads; elsewhere say so, and end well")
}

// tellLeading asks the controller of this machine whether it leads, and tells a person if it does not.
func tellLeading(cmd *cobra.Command, config string) (bool, error) {
	socket, err := ownSocket(cmd, config)
	if err != nil {
		return false, err
	}
	r, err := askHealth(cmd.Context(), socket)
	switch {
	case err != nil:
		return false, err
	case r.Asked == "":
		return false, fault.New(fault.Unsupported, "the controller at %s does not tell whether it leads: its program is an older one", socket)
	case !r.Leads:
		cmd.PrintErrf("nothing was done: %s does not lead\n", r.Asked)
	}
	return r.Leads, nil
}

// ownSocket is the LUXI socket of this machine's controller, or of the one that was named as all commands take it.
func ownSocket(cmd *cobra.Command, config string) (string, error) {
	named := os.Getenv("DROVER_LUXI")
	if f := cmd.Flag("luxi"); f != nil {
		named = cmp.Or(f.Value.String(), named)
	}
	if named != "" {
		return named, nil
	}
	s, err := ownSettings(config)
	return cmp.Or(s.LUXI, filepath.Join(s.Data, "luxi.sock")), err
}

func askHealth(ctx context.Context, socket string) (r health.Report, err error) {
	client, err := luxiwire.Dial(ctx, socket)
	if err != nil {
		return r, err
	}
	err = client.Call(ctx, luxi.QueryHealth, nil, &r)
	return r, errors.Join(err, client.Close())
}

// restoredMark begins the names of directories with stores that are tried.
const restoredMark = ".drover-restored-"

// tryRestore restores a backup below a directory, and leaves nothing behind; count is how many objects it has.
func tryRestore(ctx context.Context, file, dir string) (count int, err error) {
	scratch.Clear(dir, restoredMark)
	if err := roomToTry(file, dir); err != nil {
		return 0, err
	}
	place, err := scratch.NewDir(dir, restoredMark)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot make a place to restore into: %w", err)
	}
	defer func() { err = errors.Join(err, place.Remove()) }()
	made, err := restore(ctx, file, place.Path)
	if err != nil {
		return 0, err
	}
	found, err := checkStore(ctx, place.Path)
	if err == nil && len(found.Problems) > 0 {
		err = fault.New(fault.WrongState, "the store that comes of the backup is not consistent: %s", found.Problems[0])
	}
	return made.objects, err
}

// roomToTry refuses a trial that would leave a disk full, which may be that of the store: what is restored is written once to the log of its database and
// once to its place, and has a copy when it is looked at.
func roomToTry(file, dir string) error {
	f, err := image.Open(file)
	if err != nil {
		return err
	}
	const times = 3
	err = sqlite.HaveRoom(times*uint64(f.Content), dir)
	if full, ok := errors.AsType[*fault.Error](err); ok {
		return full.WithHint("make room, or name another directory")
	}
	return err
}
