package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/reason"
)

// WhyCommand returns the command "why".
func WhyCommand(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "why JOB|INSTANCE|NODE", Short: "Tell why something is as it is, and what it waits for", Args: shell.Exactly(1),
		Long: "Tell why something is as it is. Of a job: what it waits for, and what would have to\n" +
			"change (job explain). Of an instance or a node: how it is, who changed it last and\n" +
			"why, and what the jobs wait for that are about it.",
		ValidArgsFunction: lists.CompleteNames(sh, "instance", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if id, err := job.ParseID(args[0]); err == nil {
				return explainJob(cmd.Context(), sh, id)
			}
			t, err := findThing(cmd.Context(), sh, args[0])
			if err != nil {
				return err
			}
			if t.Jobs, err = explainJobsOf(cmd.Context(), sh, t.Name); err != nil {
				return err
			}
			return sh.ShowTimes(t, explanationTimes, func() error { return sh.Printf("%s", listing.Fold(t.text(sh), sh.Width)) })
		},
	}
}

// thing is an instance or a node, with why it is as it is.
type thing struct {
	Kind       string                `json:"kind"`
	Name       string                `json:"name"`
	State      string                `json:"state"`
	Means      string                `json:"means"`
	Changed    json.Number           `json:"changed,omitempty"`
	ChangedBy  job.ID                `json:"changed_by,omitempty"`
	Why        string                `json:"why,omitempty"`
	Trail      reason.Trail          `json:"trail,omitempty"`
	Jobs       []machine.Explanation `json:"jobs"`
	stateParts []string
}

// thingKinds are the kinds of things that are asked about, with the fields that tell
// how they are.
var thingKinds = []struct {
	kind   string
	fields []string
	means  func(t *thing)
}{
	{"instance", []string{"status", "pnode"}, meansOfInstance},
	{"node", []string{"offline", "drained", "master"}, meansOfNode},
}

// changeFields tell of the last change of a thing.
var changeFields = []string{"last_change", "last_change_job", "last_change_reason", "last_change_trail"}

// findThing looks for the instance or the node of a name. What there is not is an
// instance that there is not.
func findThing(ctx context.Context, sh *shell.Shell, name string) (*thing, error) {
	var missing error
	for _, k := range thingKinds {
		filter, err := qlang.FromArguments([]string{name}, qlang.ArgOptions{NameField: "name"})
		if err != nil {
			return nil, lists.BadFilter(sh, err)
		}
		var found listing.Answer
		fields := slices.Concat([]string{"name"}, changeFields, k.fields)
		err = sh.Ask(ctx, "Query", &found, k.kind, fields, qlang.JSON(filter))
		switch {
		case fault.Is(err, fault.NotFound):
			if missing == nil {
				missing = err
			}
			continue
		case err != nil:
			return nil, err
		case len(found.Data) != 1:
			return nil, shell.Usage("%s means %s; why is told of one", name, shell.Counted(len(found.Data), k.kind))
		}
		t, err := readThing(k.kind, found.Data[0])
		if err == nil {
			k.means(t)
		}
		return t, err
	}
	return nil, missing
}

// readThing reads a row with the name, changeFields and the fields of the kind.
func readThing(kind string, row []listing.Cell) (*thing, error) {
	t := &thing{Kind: kind}
	for i, place := range []any{&t.Name, &t.Changed, &t.ChangedBy, &t.Why, &t.Trail} {
		if row[i].Status != 0 {
			continue
		}
		if err := json.Unmarshal(row[i].Value, place); err != nil {
			return nil, err
		}
	}
	for _, cell := range row[1+len(changeFields):] {
		t.stateParts = append(t.stateParts, lists.CellText(cell))
	}
	return t, nil
}

// instanceStates say what the states of instances mean.
var instanceStates = map[string]string{
	"running": "runs", "ADMIN_down": "is stopped, as it is to be", "ADMIN_offline": "is marked offline, and holds no memory",
	"USER_down": "was shut down from within", "ERROR_down": "is down, though it is to run", "ERROR_up": "runs, though it is to be stopped",
	"ERROR_nodedown": "cannot be seen: its node does not answer", "ERROR_nodeoffline": "cannot be seen: its node is marked offline",
	"ERROR_wrongnode": "runs on a node that it does not belong to",
}

func meansOfInstance(t *thing) {
	t.State = t.stateParts[0]
	t.Means = instanceStates[t.State]
	if t.Means == "" {
		t.Means = "has the state " + t.State
	}
	if node := t.stateParts[1]; node != "" {
		t.Means += "; its node is " + node
	}
}

func meansOfNode(t *thing) {
	offline, drained, master := t.stateParts[0] == "true", t.stateParts[1] == "true", t.stateParts[2] == "true"
	switch {
	case offline:
		t.State, t.Means = "offline", "is marked offline: it is asked and told nothing"
	case drained:
		t.State, t.Means = "drained", "takes no new instances; those on it go on"
	default:
		t.State, t.Means = "online", "takes part"
	}
	if master {
		t.Means += "; it is the master"
	}
}

// aboutMany is of how many jobs about one thing it is told what they wait for.
const aboutMany = 5

// explainJobsOf explains the jobs about a thing that have not ended.
func explainJobsOf(ctx context.Context, sh *shell.Shell, name string) ([]machine.Explanation, error) {
	short, _, _ := strings.Cut(name, ".")
	about := qlang.AnyOf("object", name, short)
	waits := qlang.AnyOf("job_status", words(append(statusSets["pending"], job.Running))...)
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "opcode", []string{"job"}, qlang.JSON(lists.Both(waits, about))); err != nil {
		return nil, err
	}
	out := []machine.Explanation{}
	var seen []job.ID
	for _, row := range found.Data {
		var id job.ID
		if err := json.Unmarshal(row[0].Value, &id); err != nil {
			return nil, err
		}
		if slices.Contains(seen, id) || len(out) == aboutMany {
			continue
		}
		seen = append(seen, id)
		var x machine.Explanation
		switch err := sh.Ask(ctx, "ExplainJob", &x, id); {
		case fault.Is(err, fault.NotFound): // it has ended, and is archived
		case err != nil:
			return nil, err
		default:
			out = append(out, x)
		}
	}
	return out, nil
}

// text tells a person all of it.
func (t *thing) text(sh *shell.Shell) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", sh.Paint(shell.Bold, t.Name), t.Means)
	if at, ok := listing.Moment(listing.Field{Kind: "timestamp"}, json.RawMessage(t.Changed)); ok {
		by := ""
		if t.ChangedBy > 0 {
			by = fmt.Sprintf(" by job %d", t.ChangedBy)
		}
		fmt.Fprintf(&b, "changed last %s, %s%s\n", shell.Ago(sh.Now().Sub(at)), at.Format(time.DateTime), by)
		for _, hop := range t.Trail {
			b.WriteString(shell.HopLine(hop))
		}
	} else {
		b.WriteString("no job that is remembered has changed it\n")
	}
	if len(t.Jobs) == 0 {
		b.WriteString("no job about it waits or runs\n")
	}
	for i := range t.Jobs {
		b.WriteString("\n")
		briefly(sh, &b, &t.Jobs[i])
	}
	return b.String()
}
