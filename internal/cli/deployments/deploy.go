// Package deployments is the command "drover deploy". Some of its verbs compute on files alone, and talk to no controller:
// they check task graphs, and tell what a deployment of an environment would do and why. The others keep environments,
// graphs and deployments at a controller.
package deployments

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// Lists of what deployments are made of.
var (
	EnvironmentList = lists.List{What: "environment", Fields: []string{"name", "deployed", "node_cnt", "graphs", "generation", "mtime", "who"},
		NameField: "name", Short: "List environments"}
	DeploymentList = lists.List{What: "deployment", Fields: []string{"id", "environment", "status", "mode", "runs", "begun", "ended", "who", "why"},
		NameField: "id", Numeric: true, Short: "List deployments, the oldest first"}
	TaskList = lists.List{What: "task", Fields: []string{"deployment", "node", "task", "state", "job", "held_by", "why"},
		NameField: "deployment", Numeric: true, Short: "List the tasks of deployments on their nodes"}
)

// Command returns the noun "deploy".
func Command(sh *shell.Shell) *cobra.Command {
	cmd := onFiles()
	shell.WrongArguments(cmd)
	for _, c := range cmd.Commands() {
		shell.Heeding(nil, c)
		switch c.Name() {
		case "plan":
			planStored(sh, shell.Heeding([]string{"luxi", "reason"}, c))
		case "explain":
			explainStored(sh, shell.Heeding([]string{"luxi", "output"}, c))
		}
	}
	cmd.Short = "Environments, task graphs and deployments"
	cmd.RunE, cmd.Args = sh.NeedsCommand, cobra.ArbitraryArgs
	history := lists.Command(sh, DeploymentList)
	history.Use = "history [ID...]"
	tasks := lists.Command(sh, TaskList)
	tasks.Use = "tasks [DEPLOYMENT...]"
	cmd.AddCommand(
		sh.Group("env", "Environments", lists.Command(sh, EnvironmentList), lists.FieldsCommand(sh, EnvironmentList), envPut(sh), envShow(sh), envDelete(sh)),
		sh.Group("node", "Nodes of environments", nodePut(sh), nodeDelete(sh), nodeForget(sh)),
		sh.Group("graph", "Task graphs", graphPut(sh), graphShow(sh), graphDelete(sh), shell.Heeding(nil, newFormat())),
		deployRun(sh), deployStop(sh), deployGoOn(sh, "resume", "Let a deployment go on that was stopped or failed; what failed stays so", false),
		deployGoOn(sh, "retry", "Try again what failed in a deployment, and what depends on it", true),
		deployStatus(sh), deployWatch(sh), deployLogs(sh), deployPicture(sh), deployDelete(sh), history, tasks, deployDiff(sh), deployConsole(sh))
	completeNames(sh, cmd)
	return cmd
}

// completeNames offers the names of environments, and the numbers of deployments.
func completeNames(sh *shell.Shell, deploy *cobra.Command) {
	environment, deployment := lists.CompleteNames(sh, "environment", true), lists.CompleteNames(sh, "deployment", true)
	shell.CompleteWords(deploy, map[string]cobra.CompletionFunc{"ENVIRONMENT": environment, "DEPLOYMENT": deployment, "ID": deployment})
	for _, c := range deploy.Commands() {
		if c.Name() == "env" {
			shell.CompleteWords(c, map[string]cobra.CompletionFunc{"NAME": environment})
		}
	}
}

// stampKeys are the keys of times in what a controller tells of environments, graphs and deployments.
var stampKeys = []string{"created", "begun", "ended", "modified", "latest_ended"}

// storing are the shared options of commands that store something.
var storing = []string{"luxi", "output", "reason"}

// fileArgument reads a file for the controller.
func fileArgument(sh *shell.Shell, path string) (course.File, error) {
	text, err := readFile(sh, path)
	return course.File{Path: path, Text: string(text)}, err
}

func readFile(sh *shell.Shell, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(sh.In)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New(fault.NotFound, "%w", err)
	}
	return text, nil
}

// kept is the answer to what was stored.
type kept struct {
	Name     string   `json:"name"`
	Nodes    int      `json:"nodes"`
	Tasks    int      `json:"tasks"`
	Warnings []string `json:"warnings"`
}

// store has something stored and tells what came of it.
func store(ctx context.Context, sh *shell.Shell, told func(kept) string, method string, args ...any) error {
	var k kept
	if err := sh.Do(ctx, method, &k, args...); err != nil {
		return err
	}
	warnAll(sh, k.Warnings)
	return sh.ShowTimes(k, stampKeys, func() error { return sh.Printf("%s\n", told(k)) })
}

func warnAll(sh *shell.Shell, warnings []string) {
	for _, w := range warnings {
		sh.Notef("warning: %s\n", w)
	}
}

func envPut(sh *shell.Shell) *cobra.Command {
	var graphs []string
	cmd := shell.Heeding(storing, &cobra.Command{
		Use: "put NAME FILE", Short: "Store the state to be reached of an environment", Args: shell.Exactly(2),
		Long: "Store the state to be reached of an environment: a file of YAML or JSON with common and nodes (- for\nstandard input). An environment of that name gets this state.",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := fileArgument(sh, args[1])
			if err != nil {
				return err
			}
			return store(cmd.Context(), sh, func(k kept) string { return "environment " + k.Name + ": " + shell.Counted(k.Nodes, "node") },
				"PutEnvironment", args[0], file, shell.NonNil(graphs), sh.UserTrail())
		},
	})
	cmd.Flags().StringArrayVarP(&graphs, "graph", "g", nil, "name of a stored task graph to deploy it by, or TYPE=NAME for one that run --type asks for; later ones override earlier ones")
	return cmd
}

func envShow(sh *shell.Shell) *cobra.Command {
	var reveal bool
	cmd := shell.Heeding([]string{"luxi", "output", "reason"}, &cobra.Command{
		Use: "show NAME", Short: "Show the state to be reached of an environment", Args: shell.Exactly(1),
		Long: "Show the state to be reached of an environment, with <redacted> in place of secrets; with --show-secrets as it is,\nwhich is kept as an event.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var state json.RawMessage // numbers stay as they are
			if err := sh.Do(cmd.Context(), "QueryEnvironment", &state, args[0], reveal, sh.UserTrail()); err != nil {
				return err
			}
			if sh.Flags.Output == "yaml" {
				return environmentFile(sh, state)
			}
			return sh.Show(state, func() error { return environmentFile(sh, state) })
		},
	})
	cmd.Flags().BoolVar(&reveal, revealFlag, false, "show secrets; that is kept as an event")
	return cmd
}

// environmentFile writes a state as YAML that is read as the same.
func environmentFile(sh *shell.Shell, state json.RawMessage) error {
	v, err := yaqljson.Decode(state)
	if err != nil {
		return err
	}
	text, err := dump.YAML(v)
	if err != nil {
		return err
	}
	return sh.Printf("%s", text)
}

func envDelete(sh *shell.Shell) *cobra.Command {
	return shell.Heeding([]string{"luxi", "yes", "reason"}, &cobra.Command{
		Use: "delete NAME", Short: "Remove an environment; its deployments stay as history", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.Do(cmd.Context(), "DeleteEnvironment", nil, args[0], sh.UserTrail())
		},
	})
}

func nodePut(sh *shell.Shell) *cobra.Command {
	var host string
	cmd := shell.Heeding(storing, &cobra.Command{
		Use: "put ENVIRONMENT UID FILE", Short: "Add a node to an environment, or replace its data", Args: shell.Exactly(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := fileArgument(sh, args[2])
			if err != nil {
				return err
			}
			var on any
			if host != "" {
				on = host
			}
			return store(cmd.Context(), sh, func(k kept) string { return "node " + k.Name }, "PutEnvironmentNode", args[0], args[1], file, on, sh.UserTrail())
		},
	})
	cmd.Flags().StringVar(&host, "host", "", "node of the cluster that carries its tasks out")
	return cmd
}

func nodeDelete(sh *shell.Shell) *cobra.Command {
	return shell.Heeding([]string{"luxi", "reason"}, &cobra.Command{
		Use: "delete ENVIRONMENT UID", Short: "Take a node out of an environment", Args: shell.Exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.Do(cmd.Context(), "DeleteEnvironmentNode", nil, args[0], args[1], sh.UserTrail())
		},
	})
}

func nodeForget(sh *shell.Shell) *cobra.Command {
	return shell.Heeding([]string{"luxi", "output", "yes", "reason"}, &cobra.Command{
		Use: "forget ENVIRONMENT UID", Short: "Have all tasks on a node count as never done", Args: shell.Exactly(2),
		Long: "Have all tasks on a node of an environment count as never done: the next deployment runs there as on a new machine.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var f struct {
				Environment string `json:"environment"`
				Node        string `json:"node"`
				Tasks       int    `json:"tasks"`
			}
			if err := sh.Do(cmd.Context(), "ForgetEnvironmentNode", &f, args[0], args[1], sh.UserTrail()); err != nil {
				return err
			}
			return sh.Show(f, func() error {
				return sh.Printf("node %s of %s: %s forgotten\n", f.Node, f.Environment, shell.Counted(f.Tasks, "finished task"))
			})
		},
	})
}

func graphPut(sh *shell.Shell) *cobra.Command {
	return shell.Heeding(storing, &cobra.Command{
		Use: "put NAME PATH...", Short: "Check a task graph and store it", Args: shell.AtLeast(2),
		Long: "Check a task graph and store it. A path is a file, or a directory: all tasks.yaml and deployment_tasks.yaml\nbelow it. Later files override and extend earlier ones by the ids of tasks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var files []course.File
			for _, path := range args[1:] {
				found, err := filesOfGraph(path)
				if err != nil {
					return err
				}
				for _, f := range found {
					file, err := fileArgument(sh, f)
					if err != nil {
						return err
					}
					files = append(files, file)
				}
			}
			return store(cmd.Context(), sh, func(k kept) string { return "task graph " + k.Name + ": " + shell.Counted(k.Tasks, "task") },
				"PutTaskGraph", args[0], files, sh.UserTrail())
		},
	})
}

func graphShow(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show the files of a task graph", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var g course.Graph
			if err := sh.Do(cmd.Context(), "QueryTaskGraph", &g, args[0]); err != nil {
				return err
			}
			return sh.ShowTimes(g, stampKeys, func() error {
				for _, f := range g.Files {
					if err := sh.Printf("# %s\n%s", f.Path, f.Text); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func graphDelete(sh *shell.Shell) *cobra.Command {
	return shell.Heeding([]string{"luxi", "reason"}, &cobra.Command{
		Use: "delete NAME", Short: "Remove a task graph that no environment uses", Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.Do(cmd.Context(), "DeleteTaskGraph", nil, args[0], sh.UserTrail())
		},
	})
}
