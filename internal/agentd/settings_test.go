package agentd

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestTheManualHasEachSetting: in the table of docs/nodes.md, and none that there is not.
func TestTheManualHasEachSetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| setting | default | what |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/nodes.md has no table of settings")
	}
	var told []string
	for line := range strings.Lines(table) {
		for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			told = append(told, name[1])
		}
	}
	flags := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	s := defaults()
	s.register(flags)
	var all []string
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	slices.Sort(told)
	if slices.Sort(all); !slices.Equal(told, all) {
		t.Errorf("docs/nodes.md tells of %v, and there are %v", told, all)
	}
}
