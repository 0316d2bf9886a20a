package deployments

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/library"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
)

// onFiles is the command "deploy" with those verbs that compute on files and talk to no controller.
func onFiles() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Check task graphs and plan deployments",
		Long: "Check task graphs and plan deployments. A graph is made of tasks, whose fields may be computed by YAQL\n" +
			"expressions over the state to be reached and the state of the task's last success.",
	}
	cmd.AddCommand(newValidate(), newLint(), newPlan(), newExplain(), newSchema())
	return cmd
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of task graphs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(graph.Schema)
			return err
		},
	}
}

// functionsFlag adds the flag that names a directory of functions.
func functionsFlag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "functions", "", "directory with functions of your own, in files whose names end in .yaml or .yml")
}

// languageWith returns the language of tasks with the functions of a directory, if one is named.
func languageWith(dir string) (*expression.Language, error) {
	if dir == "" {
		return expression.NewLanguage()
	}
	own, err := library.ReadDir(os.DirFS(dir))
	if err != nil {
		return nil, err
	}
	return expression.NewLanguage(own.Functions...)
}

// graphFiles are the names of the files of a directory that hold tasks.
var graphFiles = map[string]bool{"tasks.yaml": true, "deployment_tasks.yaml": true}

// loadGraph reads graphs: files, and directories with the graphs below them in the order of their paths. Later ones
// override and extend earlier ones by the ids of tasks.
func loadGraph(language *expression.Language, paths []string) (*graph.Graph, error) {
	sources, err := graphSources(paths)
	if err != nil {
		return nil, err
	}
	whole := &graph.Graph{}
	for _, s := range sources {
		g, err := graph.Read(language, s.File, s.Text)
		if err != nil {
			return nil, err
		}
		whole = whole.Merge(g)
	}
	return whole, nil
}

// filesOfGraph returns the files of a graph: the path itself, or the files of tasks below it in the order of their paths.
func filesOfGraph(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil && path != "-" {
		return nil, fault.New(fault.NotFound, "the graph %s: %w", path, err)
	}
	if path == "-" || !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && graphFiles[d.Name()] {
			files = append(files, file)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fault.New(fault.NotFound, "there is no tasks.yaml or deployment_tasks.yaml below %s", path)
	}
	return files, err
}

// loadEnvironment reads the state of an environment.
func loadEnvironment(space *state.Space, file string, stdin io.Reader) (*environment.Environment, error) {
	text, err := read(file, stdin)
	if err != nil {
		return nil, err
	}
	return environment.Read(space, file, text)
}

func read(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.New(fault.NotFound, "%w", err)
	}
	return text, nil
}

// warn writes warnings for a person.
func warn(w io.Writer, warnings []document.Warning) {
	for _, x := range warnings {
		warnText(w, x.String())
	}
}

func warnText(w io.Writer, text string) {
	_, _ = fmt.Fprintf(w, "warning: %s\n", text) // there is nowhere else to say it
}
