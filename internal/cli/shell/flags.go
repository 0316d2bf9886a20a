package shell

import (
	"slices"
	"strconv"

	"github.com/spf13/pflag"
)

// Flags are the options that all commands take.
type Flags struct {
	luxi, Output, Reason, Priority string
	Submit, DryRun, Yes, Stale     bool
	// Of the classic tools only.
	PrintJobID bool
	Debug      int
}

// Register adds the options.
func (f *Flags) Register(set *pflag.FlagSet) {
	set.StringVar(&f.luxi, "luxi", "", "the controller's socket (default: $DROVER_LUXI, else that of the local controller)")
	set.StringVar(&f.Output, "output", Formats[0].Name, "how to show results: "+formatHelp())
	set.StringVar(&f.Reason, "reason", "", "why; it travels with the job and is remembered")
	set.StringVar(&f.Priority, "priority", "", "urgency of jobs: low, normal or high")
	set.BoolVar(&f.Submit, "submit", false, "print the job's id and do not wait for its end")
	set.BoolVar(&f.DryRun, "dry-run", false, "check everything and change nothing")
	set.BoolVar(&f.Yes, "yes", false, "do not ask for confirmation")
	set.BoolVar(&f.Stale, "stale", false, "take the answer of a controller that stands by, which may not be the newest")
}

// Check refuses a form of output that there is not.
func (f *Flags) Check() error {
	if names := FormatNames(); !slices.Contains(names, f.Output) {
		return Usage("--output must be %s, got %q", Alternatives(names, " or "), f.Output)
	}
	return nil
}

// priorities are the names of the three priorities that a job may be given.
var priorities = map[string]int{"low": 10, "normal": 0, "high": -10}

// PriorityOf reads the name of a priority, or the number itself.
func PriorityOf(text string) (int, error) {
	if n, ok := priorities[text]; ok {
		return n, nil
	}
	for _, n := range priorities {
		if strconv.Itoa(n) == text {
			return n, nil
		}
	}
	return 0, Usage("--priority must be low, normal or high, got %q", text)
}
