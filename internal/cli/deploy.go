package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/deploycmd"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
)

// Lists of what deployments are made of.
var (
	environmentList = list{what: "environment", fields: []string{"name", "status", "node_cnt", "graphs", "generation", "mtime", "who"},
		nameField: "name", short: "List environments"}
	deploymentList = list{what: "deployment", fields: []string{"id", "environment", "status", "mode", "runs", "begun", "ended", "who", "why"},
		nameField: "id", numeric: true, short: "List deployments, the oldest first"}
	deployTaskList = list{what: "task", fields: []string{"deployment", "node", "task", "state", "job", "held_by", "why"},
		nameField: "deployment", numeric: true, short: "List the tasks of deployments on their nodes"}
)

func deployCommand(sh *shell) *cobra.Command {
	cmd := deploycmd.New()
	wrongArguments(cmd)
	for _, c := range cmd.Commands() {
		heeding(nil, c)
		switch c.Name() {
		case "plan":
			sh.planStored(heeding([]string{"luxi", "reason"}, c))
		case "explain":
			sh.explainStored(heeding([]string{"luxi", "output"}, c))
		}
	}
	cmd.Short = "Environments, task graphs and deployments"
	cmd.RunE, cmd.Args, cmd.SuggestionsMinimumDistance = sh.needsCommand, cobra.ArbitraryArgs, 2
	history := listCommand(sh, deploymentList)
	history.Use = "history [ID...]"
	tasks := listCommand(sh, deployTaskList)
	tasks.Use = "tasks [DEPLOYMENT...]"
	cmd.AddCommand(
		sh.group("env", "Environments", listCommand(sh, environmentList), fieldsCommand(sh, environmentList), envPut(sh), envShow(sh), envDelete(sh)),
		sh.group("node", "Nodes of environments", nodePut(sh), nodeDelete(sh)),
		sh.group("graph", "Task graphs", graphPut(sh), graphShow(sh), graphDelete(sh)),
		deployRun(sh), deployStop(sh), deployGoOn(sh, "resume", "Let a deployment go on that was stopped or failed; what failed stays so", false),
		deployGoOn(sh, "retry", "Try again what failed in a deployment, and what depends on it", true),
		deployStatus(sh), history, tasks, deployDiff(sh), deployConsole(sh))
	return cmd
}

// storing are the shared options of commands that store something.
var storing = []string{"luxi", "output", "reason"}

// fileArgument reads a file for the controller.
func (sh *shell) fileArgument(path string) (course.File, error) {
	text, err := sh.readFile(path)
	return course.File{Path: path, Text: string(text)}, err
}

func (sh *shell) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(sh.in)
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
func (sh *shell) store(ctx context.Context, told func(kept) string, method string, args ...any) error {
	var k kept
	if err := sh.do(ctx, method, &k, args...); err != nil {
		return err
	}
	sh.warnAll(k.Warnings)
	return sh.show(k, func() error { return sh.printf("%s\n", told(k)) })
}

func (sh *shell) warnAll(warnings []string) {
	for _, w := range warnings {
		sh.notef("warning: %s\n", w)
	}
}

func envPut(sh *shell) *cobra.Command {
	var graphs []string
	cmd := heeding(storing, &cobra.Command{
		Use: "put NAME FILE", Short: "Store the state to be reached of an environment", Args: exactly(2),
		Long: "Store the state to be reached of an environment: a file of YAML or JSON with common and nodes (- for\nstandard input). An environment of that name gets this state.",
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := sh.fileArgument(args[1])
			if err != nil {
				return err
			}
			return sh.store(cmd.Context(), func(k kept) string { return fmt.Sprintf("environment %s: %d nodes", k.Name, k.Nodes) },
				"PutEnvironment", args[0], file, nonNil(graphs), sh.userTrail())
		},
	})
	cmd.Flags().StringArrayVarP(&graphs, "graph", "g", nil, "name of a stored task graph to deploy it by, or TYPE=NAME for one that run --type asks for; later ones override earlier ones")
	return cmd
}

func envShow(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show the state to be reached of an environment", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var state any
			if err := sh.do(cmd.Context(), "QueryEnvironment", &state, args[0]); err != nil {
				return err
			}
			return sh.show(state, func() error { return sh.showYAML(state) })
		},
	}
}

func envDelete(sh *shell) *cobra.Command {
	return heeding([]string{"luxi", "yes", "reason"}, &cobra.Command{
		Use: "delete NAME", Short: "Remove an environment; its deployments stay as history", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sh.confirm("Remove the environment " + args[0] + " and what is known of successes in it?"); err != nil {
				return err
			}
			return sh.do(cmd.Context(), "DeleteEnvironment", nil, args[0], sh.userTrail())
		},
	})
}

func nodePut(sh *shell) *cobra.Command {
	var host string
	cmd := heeding(storing, &cobra.Command{
		Use: "put ENVIRONMENT UID FILE", Short: "Add a node to an environment, or replace its data", Args: exactly(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := sh.fileArgument(args[2])
			if err != nil {
				return err
			}
			var on any
			if host != "" {
				on = host
			}
			return sh.store(cmd.Context(), func(k kept) string { return "node " + k.Name }, "PutEnvironmentNode", args[0], args[1], file, on, sh.userTrail())
		},
	})
	cmd.Flags().StringVar(&host, "host", "", "node of the cluster that carries its tasks out")
	return cmd
}

func nodeDelete(sh *shell) *cobra.Command {
	return heeding([]string{"luxi", "reason"}, &cobra.Command{
		Use: "delete ENVIRONMENT UID", Short: "Take a node out of an environment", Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.do(cmd.Context(), "DeleteEnvironmentNode", nil, args[0], args[1], sh.userTrail())
		},
	})
}

func graphPut(sh *shell) *cobra.Command {
	return heeding(storing, &cobra.Command{
		Use: "put NAME PATH...", Short: "Check a task graph and store it", Args: atLeast(2),
		Long: "Check a task graph and store it. A path is a file, or a directory: all tasks.yaml and deployment_tasks.yaml\nbelow it. Later files override and extend earlier ones by the ids of tasks.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var files []course.File
			for _, path := range args[1:] {
				found, err := deploycmd.GraphFiles(path)
				if err != nil {
					return err
				}
				for _, f := range found {
					file, err := sh.fileArgument(f)
					if err != nil {
						return err
					}
					files = append(files, file)
				}
			}
			return sh.store(cmd.Context(), func(k kept) string { return fmt.Sprintf("task graph %s: %d tasks", k.Name, k.Tasks) },
				"PutTaskGraph", args[0], files, sh.userTrail())
		},
	})
}

func graphShow(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show the files of a task graph", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var g course.Graph
			if err := sh.do(cmd.Context(), "QueryTaskGraph", &g, args[0]); err != nil {
				return err
			}
			return sh.show(g, func() error {
				for _, f := range g.Files {
					if err := sh.printf("# %s\n%s", f.Path, f.Text); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func graphDelete(sh *shell) *cobra.Command {
	return heeding([]string{"luxi", "reason"}, &cobra.Command{
		Use: "delete NAME", Short: "Remove a task graph that no environment uses", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sh.do(cmd.Context(), "DeleteTaskGraph", nil, args[0], sh.userTrail())
		},
	})
}

func deployDiff(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "diff ENVIRONMENT|DEPLOYMENT [ENVIRONMENT|DEPLOYMENT]", Short: "Compare the states of environments and deployments", Args: between(1, 2),
		Long: "Compare two states: that of a deployment, by its number, or the one to be reached of an environment, by its name.\nWith one environment only, its state is compared with that of its latest deployment.",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after, err := sh.twoStates(cmd.Context(), args)
			if err != nil {
				return err
			}
			var found []struct {
				Node, Path string
				Old, New   json.RawMessage
				Came, Gone bool
			}
			if err := sh.do(cmd.Context(), "DiffStates", &found, before, after); err != nil {
				return err
			}
			return sh.show(found, func() error {
				for _, d := range found {
					where := "common"
					if d.Node != "" {
						where = "node " + d.Node
					}
					text := string(d.Old) + " -> " + string(d.New)
					switch {
					case d.Came:
						text = "came: " + string(d.New)
					case d.Gone:
						text = "went: " + string(d.Old)
					}
					if err := sh.printf("%s%s: %s\n", where, d.Path, text); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// stateAt names a state.
type stateAt struct {
	Environment string `json:"environment,omitempty"`
	Deployment  int64  `json:"deployment,omitempty"`
}

func stateNamed(text string) stateAt {
	if n, ok := numberValue(text).(int64); ok {
		return stateAt{Deployment: n}
	}
	return stateAt{Environment: text}
}

// twoStates are those that arguments name. What one environment alone is compared with is its latest deployment.
func (sh *shell) twoStates(ctx context.Context, args []string) (before, after stateAt, err error) {
	before = stateNamed(args[0])
	if len(args) > 1 {
		return before, stateNamed(args[1]), nil
	}
	after = before
	if after.Deployment != 0 {
		return before, after, usage("give a second state to compare that of deployment %d with", after.Deployment)
	}
	var latest struct{ ID int64 }
	if err := sh.do(ctx, "LatestDeployment", &latest, after.Environment); err != nil {
		return before, after, err
	}
	return stateAt{Deployment: latest.ID}, after, nil
}
