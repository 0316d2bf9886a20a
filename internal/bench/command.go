package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
)

// Command returns `drover bench`.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "measure a running controller", Args: cobra.NoArgs,
		Annotations: map[string]string{"drover/heeds": "output"}} // of the options that the program's commands share
	cmd.AddCommand(queueCommand(), queryCommand(), tagsCommand())
	return cmd
}

// options are the settings of a run.
type options struct {
	readyFile string
	jobs      int
	rounds    int
	instances int
	servers   int
}

func queueCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "measure how fast the job queue is",
		Long: `queue submits jobs that do nothing over LUXI and RAPI and measures how long that
takes, in milliseconds and in proportion to one fdatasync of the disk that the
controller writes to, measured in the same run. The jobs stay in the list of
jobs; "drover job autoarchive" moves them out of it. Measure a controller that
has nothing else to do.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd, o, ofQueue) },
	}
	o.flags(cmd, 200)
	cmd.Flags().IntVar(&o.jobs, "jobs", 20_000, "how many jobs to send through for the sustained rates")
	return cmd
}

func queryCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "query",
		Short: "measure how fast lists are, and whether jobs wait for them",
		Long: `query lists the instances of the cluster over LUXI, with all fields and with a
filter, and measures how long that takes. It measures how many jobs that do
nothing one client can submit, one after the other, alone and while another
client reads one list of all fields after the other, and how long a query takes
beside 5,000 such jobs a second. With --instances, it creates small instances
first until there are so many; they stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd, o, ofQuery) },
	}
	o.flags(cmd, 20)
	cmd.Flags().IntVar(&o.instances, "instances", 0, "create instances until there are so many")
	return cmd
}

// flags adds what all measurements need.
func (o *options) flags(cmd *cobra.Command, rounds int) {
	cmd.Flags().StringVar(&o.readyFile, "ready-file", "", "ready file of the controller, in its data directory (required)")
	cmd.Flags().IntVar(&o.rounds, "rounds", rounds, "how often to measure what is measured one at a time")
}

// show measures and prints what was found.
func show(cmd *cobra.Command, o options, parts []measurement) error {
	report, err := run(cmd.Context(), o, parts)
	if err != nil {
		return err
	}
	if f := cmd.Flag("output"); f != nil && f.Value.String() == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	}
	return report.table(cmd.OutOrStdout())
}

// controller is where the controller can be reached, as its ready file says.
type controller struct {
	RAPI     string `json:"rapi"`
	User     string `json:"rapi_user"`
	Password string `json:"rapi_password"`
	LUXI     string `json:"luxi"`
	// Of the Compute API; empty where there is none.
	Compute    string `json:"compute"`
	Identity   string `json:"identity"`
	OSUser     string `json:"os_username"`
	OSPassword string `json:"os_password"`
	OSProject  string `json:"os_project"`
	PID        int    `json:"pid"`
	dir        string // on the disk that it writes to
}

func find(readyFile string) (controller, error) {
	c := controller{dir: filepath.Dir(readyFile)}
	if readyFile == "" {
		return c, fault.New(fault.Invalid, "--ready-file is missing").At("ready-file").
			WithHint("drover dev writes ready.json into its data directory")
	}
	text, err := os.ReadFile(readyFile)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fault.New(fault.Environment, "cannot read the ready file: %w", err)
	}
	return c, nil
}

// Figure is one thing that was measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Fdatasyncs is the value in proportion to one fdatasync: how many of them a
	// time lasts, or how many happen during one. Zero where that means nothing.
	Fdatasyncs float64 `json:"fdatasyncs,omitempty"`
	Target     string  `json:"target"`
	Met        bool    `json:"met"`
}

// Report is what a run found.
type Report struct {
	// Fdatasync is the median of one, in milliseconds, before and after the run.
	Fdatasync [2]float64 `json:"fdatasync_ms"`
	Figures   []Figure   `json:"figures"`
}

func (r Report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintf(t, "one fdatasync of this disk: %.3f ms before, %.3f ms after\n\nMEASURED\tVALUE\tUNIT\tFDATASYNCS\tTARGET\tMET\n", r.Fdatasync[0], r.Fdatasync[1])
	for _, f := range r.Figures {
		if err == nil {
			_, err = fmt.Fprintf(t, "%s\t%.3f\t%s\t%.2f\t%s\t%v\n", f.Name, f.Value, f.Unit, f.Fdatasyncs, f.Target, f.Met)
		}
	}
	if err == nil {
		err = t.Flush()
	}
	return err
}
