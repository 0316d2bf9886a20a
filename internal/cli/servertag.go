package cli

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

// serverTagCommand is about the tags of servers, as their users see them.
func serverTagCommand(sh *shell) *cobra.Command {
	// verb is a command about one server and what else is on its command line.
	verb := func(use, short string, args cobra.PositionalArgs, do func(context.Context, *openstack.Client, string, []string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			cloud, s, err := sh.findServer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return do(cmd.Context(), cloud, s.ID, args[1:])
		}}
	}
	return sh.group("tag", "Tags of servers", heeds(asUser,
		verb("list SERVER", "List the tags of a server", exactly(1), sh.listServerTags),
		verb("check SERVER TAG", "Tell whether a server has a tag, and its status", exactly(2), sh.checkServerTag),
		verb("add SERVER TAG...", "Add tags to a server", atLeast(2), sh.addServerTags),
		verb("delete SERVER TAG...", "Remove tags from a server", atLeast(2), sh.deleteServerTags),
		verb("replace SERVER [TAG...]", "Make tags all that a server has", atLeast(1), sh.replaceServerTags),
		verb("clear SERVER", "Remove all tags from a server", exactly(1), func(ctx context.Context, cloud *openstack.Client, id string, _ []string) error {
			return cloud.Clear(ctx, id)
		}),
		verb("show SERVER TAG", "Tell the life of a tag: who asked for it, its jobs, what it waits for", exactly(2), sh.showServerTag))...)
}

func (sh *shell) showTags(tags []string) error {
	return sh.show(tags, func() error {
		for _, tag := range tags {
			if err := sh.printf("%s\n", tag); err != nil {
				return err
			}
		}
		return nil
	})
}

func (sh *shell) listServerTags(ctx context.Context, cloud *openstack.Client, id string, _ []string) error {
	tags, err := cloud.Tags(ctx, id)
	if err != nil {
		return err
	}
	return sh.showTags(tags)
}

// checkServerTag ends with a failure when the server does not have the tag.
func (sh *shell) checkServerTag(ctx context.Context, cloud *openstack.Client, id string, args []string) error {
	answer, err := cloud.Tag(ctx, http.MethodGet, id, args[0])
	if err != nil {
		return err
	}
	status := answer.Header.Get("Tag-Status")
	return sh.show(map[string]string{"tag": args[0], "status": status}, func() error { return sh.printf("%s\n", status) })
}

// addServerTags adds one tag after the other: what is refused keeps none before
// it away.
func (sh *shell) addServerTags(ctx context.Context, cloud *openstack.Client, id string, tags []string) error {
	for _, tag := range tags {
		if _, err := cloud.Tag(ctx, http.MethodPut, id, tag); err != nil {
			return err
		}
	}
	return nil
}

func (sh *shell) deleteServerTags(ctx context.Context, cloud *openstack.Client, id string, tags []string) error {
	for _, tag := range tags {
		if _, err := cloud.Tag(ctx, http.MethodDelete, id, tag); err != nil {
			return err
		}
	}
	return nil
}

func (sh *shell) replaceServerTags(ctx context.Context, cloud *openstack.Client, id string, tags []string) error {
	now, err := cloud.Replace(ctx, id, tags)
	if err != nil {
		return err
	}
	return sh.showTags(now)
}

func (sh *shell) showServerTag(ctx context.Context, cloud *openstack.Client, id string, args []string) error {
	life, err := cloud.Life(ctx, id, args[0])
	if err != nil {
		if fault.Is(err, fault.NotFound) && !strings.Contains(err.Error(), "tag") {
			return fault.New(fault.NotFound, "this cloud does not tell the lives of tags: it is not Drover's")
		}
		return err
	}
	return sh.show(life, func() error {
		t := &table{}
		t.add("Tag:", life.Name)
		t.add("On the cluster:", life.Raw)
		t.add("Status:", life.Status)
		t.add("Asked for by:", life.Asked.User+" over "+life.Asked.Front+", request "+life.Asked.Request+", "+life.Asked.Time)
		if life.Job != 0 {
			t.add("Job:", strconv.FormatInt(life.Job, 10))
		}
		if life.Waits != "" {
			t.add("Waits:", life.Waits)
		}
		if life.Failure != "" {
			t.add("Failed:", life.Failure)
		}
		for _, e := range life.Events {
			about := e.Text
			if e.Job != 0 {
				about = strings.TrimSuffix("job "+strconv.FormatInt(e.Job, 10)+": "+e.Text, ": ")
			}
			t.add(e.Time, strings.TrimSpace(e.What+" "+about))
		}
		return sh.printf("%s", t)
	})
}
