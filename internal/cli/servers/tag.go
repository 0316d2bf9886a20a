package servers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// serverTagCommand is about the tags of servers, as their users see them.
func serverTagCommand(sh *shell.Shell) *cobra.Command {
	// verb is a command about one server and what else is on its command line.
	verb := func(use, short string, args cobra.PositionalArgs, do func(context.Context, *shell.Shell, *openstack.Client, string, []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			cloud, s, err := findServer(cmd.Context(), sh, args[0])
			if err != nil {
				return err
			}
			return do(cmd.Context(), sh, cloud, s.ID, args[1:])
		}}
	}
	return sh.Group("tag", "Tags of servers", shell.Heeds(AsUser,
		verb("list SERVER", "List the tags of a server", shell.Exactly(1), listServerTags),
		verb("check SERVER TAG", "Tell whether a server has a tag, and its status", shell.Exactly(2), checkServerTag),
		verb("add SERVER TAG...", "Add tags to a server", shell.AtLeast(2), addServerTags),
		verb("delete SERVER TAG...", "Remove tags from a server", shell.AtLeast(2), deleteServerTags),
		verb("replace SERVER [TAG...]", "Make tags all that a server has", shell.AtLeast(1), replaceServerTags),
		verb("clear SERVER", "Remove all tags from a server", shell.Exactly(1), func(ctx context.Context, _ *shell.Shell, cloud *openstack.Client, id string, _ []string) error {
			return cloud.Clear(ctx, id)
		}),
		verb("show SERVER TAG", "Tell the life of a tag: who asked for it, its jobs, what it waits for", shell.Exactly(2), showServerTag))...)
}

// ShowTags shows tags, one to a line.
func ShowTags(sh *shell.Shell, tags []string) error {
	return sh.Show(tags, func() error {
		for _, tag := range tags {
			if err := sh.Printf("%s\n", tag); err != nil {
				return err
			}
		}
		return nil
	})
}

func listServerTags(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, id string, _ []string) error {
	tags, err := cloud.Tags(ctx, id)
	if err != nil {
		return err
	}
	return ShowTags(sh, tags)
}

// checkServerTag ends with a failure when the server does not have the tag.
func checkServerTag(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, id string, args []string) error {
	answer, err := cloud.Tag(ctx, http.MethodGet, id, args[0])
	if err != nil {
		return err
	}
	status := answer.Header.Get("Tag-Status")
	return sh.Show(map[string]string{"tag": args[0], "status": status}, func() error { return sh.Printf("%s\n", status) })
}

// addServerTags adds one tag after the other: what is refused keeps none before
// it away.
func addServerTags(ctx context.Context, _ *shell.Shell, cloud *openstack.Client, id string, tags []string) error {
	for _, tag := range tags {
		if _, err := cloud.Tag(ctx, http.MethodPut, id, tag); err != nil {
			return err
		}
	}
	return nil
}

func deleteServerTags(ctx context.Context, _ *shell.Shell, cloud *openstack.Client, id string, tags []string) error {
	for _, tag := range tags {
		if _, err := cloud.Tag(ctx, http.MethodDelete, id, tag); err != nil {
			return err
		}
	}
	return nil
}

func replaceServerTags(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, id string, tags []string) error {
	if len(tags) == 0 {
		if err := sh.Sure("server tag replace", id); err != nil {
			return err
		}
	}
	now, err := cloud.Replace(ctx, id, tags)
	if err != nil {
		return err
	}
	return ShowTags(sh, now)
}

func showServerTag(ctx context.Context, sh *shell.Shell, cloud *openstack.Client, id string, args []string) error {
	life, err := cloud.Life(ctx, id, args[0])
	if err != nil {
		if fault.Is(err, fault.NotFound) && !strings.Contains(err.Error(), "tag") {
			return fault.New(fault.NotFound, "this cloud does not tell the lives of tags: it is not Drover's")
		}
		return err
	}
	return sh.Show(life, func() error {
		t := &shell.Table{}
		t.Add("Tag:", life.Name)
		t.Add("On the cluster:", life.Raw)
		t.Add("Status:", life.Status)
		t.Add("Asked for by:", life.Asked.User+" over "+life.Asked.Front+", request "+life.Asked.Request+", "+life.Asked.Time)
		if life.Job != 0 {
			t.Add("Job:", strconv.FormatInt(life.Job, 10))
		}
		if life.Waits != "" {
			t.Add("Waits:", life.Waits)
		}
		if life.Failure != "" {
			t.Add("Failed:", life.Failure)
		}
		for _, e := range life.Events {
			about := e.Text
			if e.Job != 0 {
				about = strings.TrimSuffix("job "+strconv.FormatInt(e.Job, 10)+": "+e.Text, ": ")
			}
			t.Add(e.Time, strings.TrimSpace(e.What+" "+about))
		}
		return sh.Printf("%s", t)
	})
}
