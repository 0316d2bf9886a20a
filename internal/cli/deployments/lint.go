package deployments

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/version"
)

// lintForm is a form in which findings are shown, as --output names it.
type lintForm struct {
	name string
	// of is what help says of it beside the name.
	of    string
	write func(out io.Writer, found []graph.Finding, files int) error
}

// lintForms are all of them, the usual one first.
var lintForms = []lintForm{
	{"text", "", writeFindings},
	{"json", "", func(out io.Writer, found []graph.Finding, _ int) error { return writeJSON(out, rows(found)) }},
	{"sarif", "2.1.0, for code hosts and editors", func(out io.Writer, found []graph.Finding, _ int) error { return writeJSON(out, sarif(found)) }},
}

// lintFormNames are their names, and told with what help says of them.
func lintFormNames() (names, told []string) {
	for _, f := range lintForms {
		names = append(names, f.name)
		if f.of != "" {
			f.name += " (" + f.of + ")"
		}
		told = append(told, f.name)
	}
	return names, told
}

func newLint() *cobra.Command {
	var graphs []string
	var env, functions, output string
	cmd := &cobra.Command{
		Use:   "lint --graph PATH...",
		Short: "Find all that is wrong in task graphs, or probably not meant",
		Long: "Find all that is wrong in task graphs, or probably not meant: one finding to a line, with its place and the name\n" +
			"of its rule. Where validate tells the first error, lint goes on behind it, and looks for calls of functions and\n" +
			"methods that there are not, too. The exit status is 1 if there is an error.\n\nRules:\n" + ruleLines(),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			form := slices.IndexFunc(lintForms, func(f lintForm) bool { return f.name == output })
			if form < 0 {
				names, _ := lintFormNames()
				return shell.Usage("--output must be one of %s, got %q", strings.Join(names, ", "), output)
			}
			language, err := languageWith(functions)
			if err != nil {
				return err
			}
			sources, err := graphSources(graphs)
			if err != nil {
				return err
			}
			var roles []string
			if env != "" {
				if roles, err = rolesOf(env, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			found := graph.Lint(language, sources, roles)
			if err := lintForms[form].write(cmd.OutOrStdout(), found, len(sources)); err != nil {
				return err
			}
			if errors, _ := levels(found); errors > 0 {
				return shell.ErrFailed
			}
			return nil
		},
	}
	_, told := lintFormNames()
	cmd.Flags().StringArrayVarP(&graphs, "graph", "g", nil, "file or directory of a task graph; later ones override earlier ones")
	cmd.Flags().StringVarP(&env, "env", "e", "", "file of the environment that the graph is for; with it, roles that nobody has are found")
	cmd.Flags().StringVar(&output, "output", lintForms[0].name, "how to show findings: "+strings.Join(told, ", "))
	functionsFlag(cmd.Flags(), &functions)
	_ = cmd.MarkFlagRequired("graph") // the flag exists
	return cmd
}

// ruleLines are the rules as the help lists them.
func ruleLines() string {
	b := &strings.Builder{}
	for _, r := range graph.Rules {
		fmt.Fprintf(b, "  %-18s%s\n", r.Name, r.Text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// rolesOf are the roles and tags of the nodes of an environment.
func rolesOf(file string, stdin io.Reader) ([]string, error) {
	env, err := loadEnvironment(state.NewSpace(), file, stdin)
	if err != nil {
		return nil, err
	}
	roles := []string{} // an environment without nodes has no roles, and is one
	for _, n := range env.Nodes {
		roles = append(roles, n.Tags...)
	}
	return roles, nil
}

// graphSources reads the files of graphs.
func graphSources(paths []string) ([]graph.Source, error) {
	var out []graph.Source
	for _, path := range paths {
		files, err := filesOfGraph(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := read(file, os.Stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, graph.Source{File: file, Text: text})
		}
	}
	return out, nil
}

// level is error or warning.
func level(f graph.Finding) string {
	if slices.ContainsFunc(graph.Rules, func(r graph.Rule) bool { return r.Name == f.Rule && r.Error }) {
		return "error"
	}
	return "warning"
}

// levels counts findings.
func levels(found []graph.Finding) (errors, warnings int) {
	for _, f := range found {
		if level(f) == "error" {
			errors++
		} else {
			warnings++
		}
	}
	return errors, warnings
}

// writeFindings writes them for people.
func writeFindings(out io.Writer, found []graph.Finding, files int) error {
	for _, f := range found {
		if _, err := fmt.Fprintf(out, "%s: %s: %s [%s]\n", f.Position, level(f), f.Message, f.Rule); err != nil {
			return err
		}
	}
	errors, warnings := levels(found)
	_, err := fmt.Fprintf(out, "%s and %s in %s\n", shell.Counted(errors, "error"), shell.Counted(warnings, "warning"), shell.Counted(files, "file"))
	return err
}

func writeJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// row is a finding as data.
type row struct {
	Rule    string `json:"rule"`
	Level   string `json:"level"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func rows(found []graph.Finding) []row {
	out := make([]row, len(found))
	for i, f := range found {
		out[i] = row{f.Rule, level(f), f.File, f.Line, f.Column, f.Message}
	}
	return out
}

// The form of SARIF 2.1.0 (OASIS), as far as findings need it.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"semanticVersion"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string       `json:"id"`
		Short         sarifMessage `json:"shortDescription"`
		Configuration struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region *sarifRegion `json:"region,omitempty"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
)

func sarif(found []graph.Finding) sarifLog {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: make([]sarifResult, len(found))}
	run.Tool.Driver = sarifDriver{Name: "drover", Version: version.Number, Rules: make([]sarifRule, len(graph.Rules))}
	for i, r := range graph.Rules {
		rule := &run.Tool.Driver.Rules[i]
		rule.ID, rule.Short.Text = r.Name, r.Text
		rule.Configuration.Level = level(graph.Finding{Rule: r.Name})
	}
	for i, f := range found {
		at := sarifLocation{}
		at.Physical.Artifact.URI = filepath.ToSlash(f.File)
		if f.Line > 0 {
			at.Physical.Region = &sarifRegion{f.Line, f.Column}
		}
		run.Results[i] = sarifResult{f.Rule, level(f), sarifMessage{f.Message}, []sarifLocation{at}}
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}
