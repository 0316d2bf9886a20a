package servers

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

const imageHelp = `Make an image of what is on the disk of a server at this moment, of which others are
made then (server create --image NAME). The server goes on meanwhile; what its programs
had not written yet is not in the image, so stop it first where that matters.`

// serverImage is a command that makes an image of a server.
func serverImage(sh *shell.Shell) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{Use: "image SERVER NAME", Short: "Make an image of the disk of a server", Long: imageHelp, Args: shell.Exactly(2), RunE: func(cmd *cobra.Command, args []string) error {
		cloud, err := Cloud(cmd.Context(), sh)
		if err != nil {
			return err
		}
		s, err := cloud.FindServer(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		id, err := cloud.Capture(cmd.Context(), s.ID, args[1])
		if err == nil && wait {
			err = awaitImage(cmd.Context(), cloud, s.ID, id)
		}
		if err != nil {
			return err
		}
		return sh.Show(map[string]string{"id": id, "name": args[1]}, func() error { return sh.Printf("%s\n", id) })
	}}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until servers can be made of it")
	return cmd
}

// awaitImage waits until servers can be made of an image of a server, or it came to nothing.
func awaitImage(ctx context.Context, cloud *openstack.Client, server, id string) error {
	for looked := 1; ; looked++ {
		m, err := cloud.Image(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			return cameToNothing(ctx, cloud, server, id)
		case err != nil || m.Status == "active":
			return err
		}
		if err := PauseFor(ctx, betweenLooks.After(looked)); err != nil {
			return err
		}
	}
}

// cameToNothing says why an image of a server is no more.
func cameToNothing(ctx context.Context, cloud *openstack.Client, server, id string) error {
	acts, err := cloud.Actions(ctx, server)
	if err != nil {
		return err
	}
	for _, a := range acts { // the newest first
		if a.Action == "createImage" {
			return fault.New(fault.Failed, "the image %s came to nothing: %s", id, a.Message)
		}
	}
	return fault.New(fault.Failed, "the image %s was removed before it was whole", id)
}
