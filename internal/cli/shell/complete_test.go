package shell

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

func TestWordsOfUsageLines(t *testing.T) {
	for _, c := range []struct {
		use   string
		place int
		want  []string
	}{
		{"show SERVER", 0, []string{"SERVER"}},
		{"show SERVER", 1, nil},
		{"add SERVER TAG...", 1, []string{"TAG"}},
		{"add SERVER TAG...", 5, []string{"TAG"}},
		{"replace SERVER [TAG...]", 2, []string{"TAG"}},
		{"diff ENVIRONMENT|DEPLOYMENT [ENVIRONMENT|DEPLOYMENT]", 1, []string{"ENVIRONMENT", "DEPLOYMENT"}},
		{"add [RULE|FILE|-]...", 3, []string{"RULE", "FILE", "-"}},
		{"create NAME --flavor FLAVOR", 1, nil},
		{"run ENVIRONMENT | --plan ID", 1, nil},
		{"list", 0, nil},
	} {
		if got := wordsAt(argumentWords(c.use), c.place); !slices.Equal(got, c.want) {
			t.Errorf("%s: argument %d is one of %q, want %q", c.use, c.place, got, c.want)
		}
	}
}

func TestCommandsOfferWhatTheirUsageSays(t *testing.T) {
	root := &cobra.Command{Use: "x"}
	for _, use := range []string{"show SERVER", "put NAME FILE", "pause DURATION", "list KIND"} {
		root.AddCommand(&cobra.Command{Use: use, Run: func(*cobra.Command, []string) {}})
	}
	own := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"own"}, cobra.ShellCompDirectiveNoFileComp
	}
	find := func(name string) *cobra.Command {
		c, _, err := root.Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	find("list").ValidArgsFunction = own
	CompleteWords(root, map[string]cobra.CompletionFunc{"SERVER": func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return Offer([]string{"web1", "web2", "db1"}, args, typed)
	}})
	CompleteRest(root)
	for _, c := range []struct {
		verb, typed string
		args        []string
		want        []cobra.Completion
		directive   cobra.ShellCompDirective
	}{
		{"show", "w", nil, []cobra.Completion{"web1", "web2"}, cobra.ShellCompDirectiveNoFileComp},
		{"show", "", []string{"web1"}, nil, cobra.ShellCompDirectiveNoFileComp},
		{"put", "", nil, nil, cobra.ShellCompDirectiveNoFileComp},
		{"put", "", []string{"lab"}, nil, cobra.ShellCompDirectiveDefault},
		{"pause", "", nil, nil, cobra.ShellCompDirectiveNoFileComp},
		{"list", "", nil, []cobra.Completion{"own"}, cobra.ShellCompDirectiveNoFileComp},
	} {
		got, directive := find(c.verb).ValidArgsFunction(root, c.args, c.typed)
		if !slices.Equal(got, c.want) || directive != c.directive {
			t.Errorf("%s %q %q: %q, %v", c.verb, c.args, c.typed, got, directive)
		}
	}
}
