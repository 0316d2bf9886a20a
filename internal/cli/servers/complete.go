package servers

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/openstack"
)

// patience is how long a shell waits for names.
const patience = 2 * time.Second

// Offering offers names that a cloud knows. Without a cloud, or with a slow one, nothing is
// offered.
func Offering(reach func(*cobra.Command) (*openstack.Client, error), names func(context.Context, *openstack.Client, []string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), patience)
		defer cancel()
		cmd.SetContext(ctx)
		cloud, err := reach(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := names(ctx, cloud, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return shell.Offer(found, args, typed)
	}
}

// completions are what the words of the usage lines of "server" stand for, and the values of
// its options.
func completions(sh *shell.Shell) (words, options map[string]cobra.CompletionFunc) {
	offer := func(names func(context.Context, *openstack.Client, []string) ([]string, error)) cobra.CompletionFunc {
		return Offering(func(cmd *cobra.Command) (*openstack.Client, error) { return Cloud(cmd.Context(), sh) }, names)
	}
	words = map[string]cobra.CompletionFunc{"SERVER": offer(serverNames), "TAG": offer(tagNames)}
	options = map[string]cobra.CompletionFunc{
		"flavor": offer(func(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
			found, err := cloud.Flavors(ctx)
			return namesOf(found, func(f openstack.Flavor) string { return f.Name }), err
		}),
		"image": offer(func(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
			found, err := cloud.Images(ctx)
			return namesOf(found, func(i openstack.Image) string { return i.Name }), err
		}),
		"nic": offer(func(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
			found, err := cloud.Networks(ctx)
			return namesOf(found, func(n openstack.Network) string { return n.Name }), err
		}),
		"status": cobra.FixedCompletions([]string{"ACTIVE", "SHUTOFF", "BUILD", "ERROR"}, cobra.ShellCompDirectiveNoFileComp),
	}
	return words, options
}

func serverNames(ctx context.Context, cloud *openstack.Client, _ []string) ([]string, error) {
	found, err := cloud.Servers(ctx, nil)
	return namesOf(found, func(s openstack.Server) string { return s.Name }), err
}

// tagNames are the tags of the server that stands before them.
func tagNames(ctx context.Context, cloud *openstack.Client, args []string) ([]string, error) {
	s, err := cloud.FindServer(ctx, args[0])
	return s.Tags, err
}

func namesOf[T any](things []T, name func(T) string) []string {
	out := make([]string, len(things))
	for i, t := range things {
		out[i] = name(t)
	}
	return out
}

// completeOptions offers values of options to all commands below one.
func completeOptions(cmd *cobra.Command, options map[string]cobra.CompletionFunc) {
	for _, c := range cmd.Commands() {
		completeOptions(c, options)
	}
	for name, offer := range options {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, offer) // the option exists
		}
	}
}
