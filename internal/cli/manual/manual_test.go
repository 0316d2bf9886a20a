package manual_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/manual"
)

// TestTextsStandAsTheyAre: nothing in a text is taken for a request, or cut, and a command is
// called as on its page.
func TestTextsStandAsTheyAre(t *testing.T) {
	root := &cobra.Command{Use: "drover"}
	noun := &cobra.Command{Use: "job", Short: "Jobs of drover job"}
	verb := &cobra.Command{Use: `grep "A" [flags]`, Long: ".hidden\n'quoted'\na\\b --c\n\n  .as it\n\n  is\nend of drover job\n", Run: func(*cobra.Command, []string) {},
		Example: "  drover job grep 'x'"}
	verb.Flags().StringP("out", "o", "here", ".where it goes")
	verb.Flags().Bool("secret", false, "")
	_ = verb.Flags().MarkHidden("secret") // it exists
	unseen := &cobra.Command{Use: "unseen", Hidden: true, Run: verb.Run}
	root.AddCommand(noun)
	noun.AddCommand(verb, unseen)
	page := manual.Page{Name: "gnt-job", Section: 8, Version: "1", Command: noun, Called: "gnt-job", Further: []string{"drover(1)"}}.Text()
	for _, want := range []string{
		`.TH "GNT\-JOB" 8 "" "Drover 1"`, `gnt\-job \- Jobs of gnt\-job`, `.SS "gnt\-job grep \(dqA\(dq [options]"`,
		"\\&.hidden\n\\&'quoted'\na\\eb \\-\\-c\n", ".nf\n  .as it\n\n  is\n.fi\n.PP\nend of gnt\\-job\n", ".TP\n.B \\-o, \\-\\-out string\n\\&.where it goes (default here)\n",
		".nf\n  gnt\\-job grep 'x'\n.fi\n", ".SH SEE ALSO\ndrover(1)\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	requests := regexp.MustCompile(`^\.(TH|SH|SS|TP|PP|B|I|br|nf|fi)( |$)`)
	for line := range strings.Lines(page) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, ".") && !requests.MatchString(line) || strings.HasPrefix(line, "'") {
			t.Errorf("%q would be taken for a request", line)
		}
	}
	for _, not := range []string{"secret", "unseen", "[flags]", "drover job"} {
		if strings.Contains(page, not) {
			t.Errorf("the page tells of %s:\n%s", not, page)
		}
	}
}
