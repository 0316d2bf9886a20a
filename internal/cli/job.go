package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

func jobCommand(sh *shell) *cobra.Command {
	noun := sh.group("job", "Submit, follow and explain jobs",
		listCommand(sh, jobList), fieldsCommand(sh, jobList), jobInfo(sh), heeding(making, jobSubmit(sh)), jobWatch(sh), jobWait(sh),
		heeding(append(slices.Clone(changing), "priority"), jobPriority(sh)), jobExplain(sh))
	noun.AddCommand(heeds(changing, jobCancel(sh), jobArchive(sh), jobAutoArchive(sh),
		drainCommand(sh, "drain", true), drainCommand(sh, "undrain", false))...)
	return noun
}

// statusSets are the options that pick jobs by their status.
var statusSets = map[string][]job.Status{
	"pending":  {job.Queued, job.Waiting, job.Canceling},
	"queued":   {job.Queued},
	"waiting":  {job.Waiting},
	"running":  {job.Running},
	"error":    {job.Error},
	"finished": {job.Success, job.Canceled, job.Error},
}

// statusOptions registers some of them; the function that it returns gives the
// filter for those that were given, nil for none.
func statusOptions(cmd *cobra.Command, names ...string) func() qlang.Node {
	for _, name := range names {
		cmd.Flags().Bool(name, false, "jobs that are "+strings.ReplaceAll(name, "error", "failed"))
	}
	return func() qlang.Node {
		var words []string
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				for _, s := range statusSets[name] {
					words = append(words, string(s))
				}
			}
		}
		if len(words) == 0 {
			return nil
		}
		return qlang.AnyOf("status", words...)
	}
}

func jobListOptions(cmd *cobra.Command) func([]string, qlang.Node) ([]string, qlang.Node) {
	chosen := statusOptions(cmd, "pending", "queued", "waiting", "running", "error", "finished")
	archived := cmd.Flags().Bool("archived", false, "archived jobs too")
	return func(fields []string, filter qlang.Node) ([]string, qlang.Node) {
		if byStatus := chosen(); byStatus != nil {
			filter = both(filter, byStatus)
		}
		if *archived && !slices.Contains(fields, "archived") {
			fields = append(slices.Clone(fields), "archived")
		}
		return fields, filter
	}
}

// jobID reads an id from the command line.
func jobID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return 0, &exitError{status: ExitUsage, err: err}
	}
	return id, nil
}

func jobIDs(texts []string) ([]job.ID, error) {
	ids := make([]job.ID, len(texts))
	for i, text := range texts {
		id, err := jobID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// exactly checks the number of arguments.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %d arguments, got %d", cmd.UseLine(), n, len(args))
		}
		return nil
	}
}

// between checks the number of arguments.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return usage("%s takes %d to %d arguments, got %d", cmd.UseLine(), low, high, len(args))
		}
		return nil
	}
}

// atLeast checks the number of arguments.
func atLeast(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return usage("%s: missing argument", cmd.UseLine())
		}
		return nil
	}
}

func jobWatch(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "Follow a job and print its log as it comes", Args: exactly(1),
		ValidArgsFunction: sh.completeNames("job", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			if sh.structured() {
				return sh.awaitAll(cmd.Context(), []job.ID{id})
			}
			if err := sh.printf("%s", watchHeading(id)); err != nil {
				return err
			}
			_, err = sh.await(cmd.Context(), id, func(e logEntry) error { return sh.printf("%s\n", e.line()) })
			return err
		},
	}
}

// watchHeading announces the log of a job.
func watchHeading(id job.ID) string {
	title := fmt.Sprintf("Output from job %d follows", id)
	return title + "\n" + strings.Repeat("-", len(title)) + "\n"
}

func jobWait(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "wait ID...", Short: "Wait until jobs have ended", Args: atLeast(1),
		ValidArgsFunction: sh.completeNames("job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			return sh.awaitAll(cmd.Context(), ids)
		},
	}
}

// awaitAll waits for the ends of jobs and shows them.
func (sh *shell) awaitAll(ctx context.Context, ids []job.ID) error {
	outcomes := make([]outcome, len(ids))
	sh.awaited = slices.Clone(ids)
	var worst error
	for i, id := range ids {
		var err error
		if outcomes[i], err = sh.await(ctx, id, func(logEntry) error { return nil }); errors.Is(err, failed) {
			worst = err
		} else if err != nil {
			return err
		}
	}
	if sh.structured() {
		if err := sh.show(outcomes, nil); err != nil {
			return err
		}
	}
	return worst
}

// await follows a job to its end and says how it ended. One that failed makes the
// command fail.
func (sh *shell) await(ctx context.Context, id job.ID, onLog func(logEntry) error) (outcome, error) {
	end, err := sh.follow(ctx, id, onLog)
	if fault.Is(err, fault.NotFound) {
		end, err = sh.archivedEnding(ctx, id)
	}
	if fault.Is(err, fault.NotFound) && sh.persona.classic() {
		sh.notef("Job %d failed: Error checking job status: Can't load job file\n", id)
		return outcome{}, failed
	}
	if err != nil {
		return outcome{}, err
	}
	out := outcome{Job: id, Status: end.Status}
	switch {
	case end.Status == string(job.Success):
		out.Result = end.result()
		sh.succeeded("", end)
		return out, nil
	case sh.persona.classic():
		sh.notef("Job %d failed: %s\n", id, end.classicVerdict())
	default:
		sh.notef("Job %d %s\n", id, end.verdict())
	}
	out.Error = end.failure(false)
	return out, failed
}

// archivedEnding finds out how a job ended that is in the archive by now.
func (sh *shell) archivedEnding(ctx context.Context, id job.ID) (ending, error) {
	var rows [][]json.RawMessage
	err := sh.ask(ctx, "QueryJobs", &rows, []job.ID{id}, endingFields)
	if err != nil {
		return ending{}, err
	}
	if len(rows) != 1 {
		return ending{}, fault.New(fault.NotFound, "Job %d not found", id)
	}
	return readEnding(id, rows[0])
}

// chosenJobs returns the jobs that a command is for: those named, or those
// with a status.
func (sh *shell) chosenJobs(ctx context.Context, cmd *cobra.Command, args []string, byStatus qlang.Node) ([]job.ID, error) {
	if byStatus == nil {
		if err := atLeast(1)(cmd, args); err != nil {
			return nil, err
		}
		return jobIDs(args)
	}
	if len(args) > 0 {
		return nil, usage("%s: give ids, or a status or filter, not both", cmd.CommandPath())
	}
	ids, err := sh.jobsWhere(ctx, byStatus)
	if err == nil && len(ids) == 0 && !sh.persona.classic() {
		sh.notef("no job is chosen\n")
	}
	return ids, err
}

// unfinished is the filter for jobs that have not ended.
func unfinished() qlang.Node {
	return qlang.AnyOf("status", string(job.Queued), string(job.Waiting), string(job.Canceling), string(job.Running))
}

// chosenBy registers the options that choose jobs which have not ended: by their
// status and by a filter. The function that it returns gives the filter for what
// was given, nil for nothing.
func chosenBy(cmd *cobra.Command) func() (qlang.Node, error) {
	byStatus := statusOptions(cmd, "pending", "queued", "waiting")
	text := cmd.Flags().String("filter", "", "jobs that have not ended and that this filter lets through, for example 'reason =~ m/OPS-77/'")
	return func() (qlang.Node, error) {
		chosen := byStatus()
		if *text == "" {
			return chosen, nil
		}
		filter, err := qlang.ParseText(*text)
		if err != nil {
			return nil, err
		}
		if chosen == nil {
			chosen = unfinished()
		}
		return both(chosen, filter), nil
	}
}

// jobsWhere returns the jobs that a filter lets through.
func (sh *shell) jobsWhere(ctx context.Context, filter qlang.Node) ([]job.ID, error) {
	var found listing.Answer
	if err := sh.ask(ctx, "Query", &found, "job", []string{"id"}, qlang.JSON(filter)); err != nil {
		return nil, err
	}
	ids := make([]job.ID, len(found.Data))
	for i, row := range found.Data {
		if err := json.Unmarshal(row[0].Value, &ids[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// eachJob asks the same of several jobs and shows the answers.
func (sh *shell) eachJob(ids []job.ID, ask func(id job.ID) (answer, error)) error {
	type result struct {
		Job     job.ID `json:"job"`
		OK      bool   `json:"ok"`
		Message string `json:"message"`
	}
	results := []result{}
	bad := false
	for _, id := range ids {
		a, err := ask(id)
		if err != nil {
			return err
		}
		results = append(results, result{id, a.ok, fmt.Sprint(a.value)})
		bad = bad || !a.ok
	}
	err := sh.show(results, func() error {
		for _, r := range results {
			if !sh.persona.classic() && !strings.Contains(r.Message, r.Job.String()) {
				r.Message = fmt.Sprintf("Job %d: %s", r.Job, r.Message)
			}
			if err := sh.printf("%s\n", r.Message); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && bad {
		return failed
	}
	return err
}

func jobCancel(sh *shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Cancel jobs",
		Long: "Cancel jobs. What has not begun is cancelled at once. Of a running job the\n" +
			"present opcode completes and the rest is cancelled; --kill ends that opcode too.",
		ValidArgsFunction: sh.completeWhere("job", true, unfinished()),
	}
	chosen := chosenBy(cmd)
	kill := cmd.Flags().Bool("kill", false, "end the running opcode as well; needs --yes-do-it or --yes")
	sure := cmd.Flags().Bool("yes-do-it", false, "confirm --kill")
	force := cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *kill && !*sure && !sh.flags.yes {
			return usage("--kill ends opcodes in the middle of their work; confirm it with --yes-do-it")
		}
		byStatus, err := chosen()
		if err != nil {
			return sh.badFilter(err)
		}
		ids, err := sh.chosenJobs(cmd.Context(), cmd, args, byStatus)
		if err != nil {
			return err
		}
		if sh.flags.dryRun {
			return sh.eachJob(ids, sh.foreseen(cmd.Context(), func(id job.ID, s job.Status, _ bool) job.Forecast {
				return job.ForecastCancel(id, s, *kill)
			}))
		}
		if byStatus != nil && !*force && len(ids) > 0 {
			if err := sh.confirm(fmt.Sprintf("Cancel %d jobs: %s?", len(ids), joinIDs(ids))); err != nil {
				return err
			}
		}
		if byStatus != nil && !sh.persona.classic() {
			slices.Reverse(ids) // jobs that depend on others go with them: first those, so that each is told once
		}
		return sh.eachJob(ids, func(id job.ID) (answer, error) {
			var a answer
			err := sh.ask(cmd.Context(), "CancelJob", &a, id, *kill, sh.userTrail())
			return a, err
		})
	}
	return cmd
}

func joinIDs(ids []job.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = id.String()
	}
	return strings.Join(parts, ", ")
}

func jobArchive(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "archive ID...", Short: "Put jobs that have ended into the archive", Args: atLeast(1),
		ValidArgsFunction: sh.completeNames("job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			if sh.flags.dryRun {
				return sh.eachJob(ids, sh.foreseen(cmd.Context(), job.ForecastArchive))
			}
			bad := false
			for _, id := range ids {
				var done bool
				if err := sh.do(cmd.Context(), "ArchiveJob", &done, id, sh.userTrail()); err != nil {
					return err
				}
				if !done {
					sh.notef("Failed to archive job with ID '%d'\n", id)
					bad = true
				}
			}
			if bad {
				return failed
			}
			return nil
		},
	}
}

// archiveLimit is how long one request for archiving may take.
const archiveLimit = 89

func jobAutoArchive(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "autoarchive AGE|all", Short: "Put jobs that ended long ago into the archive",
		Long: "Put the jobs into the archive that ended longer ago than AGE, a number of\nseconds or a number with s, m, h, d or w behind it; \"all\" for every ended job.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			age, err := ageOf(args[0])
			if err != nil {
				return err
			}
			if sh.flags.dryRun {
				return sh.wouldArchive(cmd.Context(), age)
			}
			var counts [2]int
			if err := sh.ask(cmd.Context(), "AutoArchiveJobs", &counts, age, archiveLimit, sh.userTrail()); err != nil {
				return err
			}
			result := map[string]int{"archived": counts[0], "left": counts[1]}
			return sh.show(result, func() error {
				return sh.printf("Archived %d jobs, %d unchecked left\n", counts[0], counts[1])
			})
		},
	}
}

// ageUnits are the seconds in a unit of time.
var ageUnits = map[byte]int64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}

// ageOf reads an age in seconds; all ages are over that of "all", -1.
func ageOf(text string) (int64, error) {
	if text == "all" {
		return -1, nil
	}
	digits, factor := text, int64(1)
	if n := len(text); n > 0 && ageUnits[text[n-1]] != 0 {
		digits, factor = text[:n-1], ageUnits[text[n-1]]
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 {
		return 0, usage("an age is a number with an optional s, m, h, d or w, or \"all\"; got %q", text)
	}
	return n * factor, nil
}

func jobPriority(sh *shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "change-priority --priority low|normal|high ID...", Short: "Change how urgent jobs are",
		ValidArgsFunction: sh.completeWhere("job", true, unfinished()),
	}
	chosen := chosenBy(cmd)
	force := cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sh.flags.priority == "" {
			return &exitError{status: ExitFailed, err: fault.New(fault.WrongState, "--priority option must be given.")}
		}
		priority, err := priorityOf(sh.flags.priority)
		if err != nil {
			return err
		}
		byStatus, err := chosen()
		if err != nil {
			return sh.badFilter(err)
		}
		ids, err := sh.chosenJobs(cmd.Context(), cmd, args, byStatus)
		if err != nil {
			return err
		}
		if sh.flags.dryRun {
			return sh.eachJob(ids, sh.foreseen(cmd.Context(), func(id job.ID, s job.Status, _ bool) job.Forecast {
				return job.ForecastPriority(id, s, priority)
			}))
		}
		if byStatus != nil && !*force && len(ids) > 0 {
			if err := sh.confirm(fmt.Sprintf("Change the priority of %d jobs: %s?", len(ids), joinIDs(ids))); err != nil {
				return err
			}
		}
		return sh.eachJob(ids, func(id job.ID) (answer, error) {
			var a answer
			err := sh.ask(cmd.Context(), "ChangeJobPriority", &a, id, priority, sh.userTrail())
			return a, err
		})
	}
	return cmd
}

func drainCommand(sh *shell, verb string, on bool) *cobra.Command {
	short := map[bool]string{true: "Take no new jobs; those in the queue go on", false: "Take new jobs again"}[on]
	return &cobra.Command{
		Use: verb, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sh.flags.dryRun {
				return sh.wouldDrain(cmd.Context(), on)
			}
			return sh.ask(cmd.Context(), "SetDrainFlag", nil, on, sh.userTrail())
		},
	}
}

const stampLayout = "2006-01-02 15:04:05.000000"

// stamp shows a time of a job: [seconds, microseconds].
func stamp(pair *[2]int64) string {
	if pair == nil {
		return "N/A"
	}
	return time.Unix(pair[0], pair[1]*1000).Format(stampLayout)
}
