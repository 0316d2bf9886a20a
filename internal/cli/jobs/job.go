// Package jobs is the command "drover job": jobs are listed, followed, explained, cancelled and submitted, and the queue
// is opened and closed.
package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// Command returns the noun "job".
func Command(sh *shell.Shell) *cobra.Command {
	noun := sh.Group("job", "Submit, follow and explain jobs",
		lists.Command(sh, List), lists.FieldsCommand(sh, List), jobInfo(sh), shell.Heeding(shell.Making, jobSubmit(sh)), jobWatch(sh), jobWait(sh),
		shell.Heeding(append(slices.Clone(shell.Changing), "priority"), jobPriority(sh)), jobExplain(sh))
	noun.AddCommand(shell.Heeds(shell.Changing, jobCancel(sh), jobArchive(sh), jobAutoArchive(sh),
		Drain(sh, "drain", true), Drain(sh, "undrain", false))...)
	return noun
}

func jobWatch(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "Follow a job and print its log as it comes", Args: shell.Exactly(1),
		ValidArgsFunction: lists.CompleteNames(sh, "job", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := shell.JobID(args[0])
			if err != nil {
				return err
			}
			if sh.Structured() {
				return awaitAll(cmd.Context(), sh, []job.ID{id})
			}
			if _, err := standingOf(cmd.Context(), sh, id); err != nil && !sh.Classic() {
				return err // before a heading of nothing
			}
			sh.EndWithReader()
			if err := sh.Printf("%s", watchHeading(id)); err != nil {
				return err
			}
			_, err = await(cmd.Context(), sh, id, func(e work.LogEntry) error { return sh.Printf("%s\n", e.Line()) })
			return err
		},
	}
}

// watchHeading announces the log of a job.
func watchHeading(id job.ID) string {
	title := fmt.Sprintf("Output from job %d follows", id)
	return title + "\n" + strings.Repeat("-", len(title)) + "\n"
}

func jobWait(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "wait ID...", Short: "Wait until jobs have ended", Args: shell.AtLeast(1),
		ValidArgsFunction: lists.CompleteNames(sh, "job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := shell.JobIDs(args)
			if err != nil {
				return err
			}
			return awaitAll(cmd.Context(), sh, ids)
		},
	}
}

// awaitAll waits for the ends of jobs and shows them.
func awaitAll(ctx context.Context, sh *shell.Shell, ids []job.ID) error {
	outcomes := make([]work.Outcome, len(ids))
	sh.Awaited = slices.Clone(ids)
	var worst error
	for i, id := range ids {
		var err error
		if outcomes[i], err = await(ctx, sh, id, func(work.LogEntry) error { return nil }); errors.Is(err, shell.ErrFailed) {
			worst = err
		} else if err != nil {
			return err
		}
	}
	if sh.Structured() {
		if err := sh.Show(outcomes, nil); err != nil {
			return err
		}
	}
	return worst
}

// await follows a job to its end and says how it ended. One that failed makes the
// command fail.
func await(ctx context.Context, sh *shell.Shell, id job.ID, onLog func(work.LogEntry) error) (work.Outcome, error) {
	end, err := work.Follow(ctx, sh, id, onLog)
	if fault.Is(err, fault.NotFound) {
		end, err = archivedEnding(ctx, sh, id)
	}
	if fault.Is(err, fault.NotFound) && sh.Classic() {
		sh.Notef("Job %d failed: Error checking job status: Can't load job file\n", id)
		return work.Outcome{}, shell.ErrFailed
	}
	if err != nil {
		return work.Outcome{}, err
	}
	out := work.Outcome{Job: id, Status: end.Status}
	switch {
	case end.Status == string(job.Success):
		out.Result = end.Result()
		work.Succeeded(sh, end)
		return out, nil
	case sh.Classic():
		sh.Notef("Job %d failed: %s\n", id, end.ClassicVerdict())
	default:
		sh.Notef("Job %d %s\n", id, end.Verdict())
	}
	out.Error = end.Failure(false)
	return out, shell.ErrFailed
}

// archivedEnding finds out how a job ended that is in the archive by now.
func archivedEnding(ctx context.Context, sh *shell.Shell, id job.ID) (work.Ending, error) {
	var rows [][]json.RawMessage
	err := sh.Ask(ctx, "QueryJobs", &rows, []job.ID{id}, work.EndingFields)
	if err != nil {
		return work.Ending{}, err
	}
	if len(rows) != 1 {
		return work.Ending{}, fault.New(fault.NotFound, "Job %d not found", id)
	}
	return work.ReadEnding(id, rows[0])
}

// unfinished is the filter for jobs that have not ended.
func unfinished() qlang.Node {
	return qlang.AnyOf("status", string(job.Queued), string(job.Waiting), string(job.Canceling), string(job.Running))
}

// selection is how commands choose jobs: by their ids, or those that have not
// ended by their status and by a filter.
type selection struct {
	status func() qlang.Node
	filter string
}

func (s *selection) register(cmd *cobra.Command) {
	s.status = statusOptions(cmd, "pending", "queued", "waiting")
	cmd.Flags().StringVar(&s.filter, "filter", "", "jobs that have not ended and that this filter lets through, for example 'reason =~ m/OPS-77/'")
	_ = cmd.RegisterFlagCompletionFunc("filter", lists.CompleteFilter("job")) // the option exists
}

// jobs returns the jobs that are meant. several says that they were not named one
// by one, so that it takes a question before something is done to them.
func (s *selection) jobs(cmd *cobra.Command, sh *shell.Shell, args []string) (ids []job.ID, several bool, err error) {
	within := s.status()
	if within == nil && s.filter == "" {
		if err := shell.AtLeast(1)(cmd, args); err != nil {
			return nil, false, err
		}
		ids, err = shell.JobIDs(args)
		return ids, false, err
	}
	if len(args) > 0 {
		return nil, false, shell.Usage("%s: give ids, or a status or filter, not both", cmd.CommandPath())
	}
	if within == nil {
		within = unfinished()
	}
	filter := within
	if s.filter != "" {
		typed, err := lists.ParseFilter(sh, s.filter)
		if err != nil {
			return nil, false, err
		}
		filter = lists.Both(within, typed)
	}
	if ids, err = jobsWhere(cmd.Context(), sh, filter); err != nil {
		return nil, false, err
	}
	if len(ids) == 0 && !sh.Classic() {
		sh.Notef("no job is chosen\n")
	}
	if s.filter != "" {
		err = lists.TellMissing(cmd.Context(), sh, "job", s.filter, within)
	}
	return ids, true, err
}

// jobsWhere returns the jobs that a filter lets through.
func jobsWhere(ctx context.Context, sh *shell.Shell, filter qlang.Node) ([]job.ID, error) {
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "job", []string{"id"}, qlang.JSON(filter)); err != nil {
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
func eachJob(ctx context.Context, sh *shell.Shell, ids []job.ID, ask func(id job.ID) (work.Answer, error)) error {
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
		message := fmt.Sprint(a.Value)
		if !a.OK && !sh.Classic() {
			message = refusal(ctx, sh, id, message)
		}
		results = append(results, result{id, a.OK, message})
		bad = bad || !a.OK
	}
	err := sh.Show(results, func() error {
		for _, r := range results {
			if !sh.Classic() && !strings.Contains(r.Message, r.Job.String()) {
				r.Message = fmt.Sprintf("job %d: %s", r.Job, r.Message)
			}
			if !r.OK && !sh.Classic() {
				sh.Notef("%s\n", r.Message)
			} else if err := sh.Printf("%s\n", r.Message); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && bad {
		return shell.ErrFailed
	}
	return err
}

func jobCancel(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID...", Short: "Cancel jobs",
		Long: "Cancel jobs. What has not begun is cancelled at once. Of a running job the\n" +
			"present opcode completes and the rest is cancelled; --kill ends that opcode too.",
		ValidArgsFunction: lists.CompleteWhere(sh, "job", true, unfinished()),
	}
	var chosen selection
	chosen.register(cmd)
	kill := cmd.Flags().Bool("kill", false, "end the running opcode as well; needs --yes-do-it or --yes")
	sure := cmd.Flags().Bool("yes-do-it", false, "confirm --kill")
	force := cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *kill && !*sure && !sh.Flags.Yes && sh.Classic() {
			return shell.Usage("--kill ends opcodes in the middle of their work; confirm it with --yes-do-it")
		}
		ids, several, err := chosen.jobs(cmd, sh, args)
		if err != nil {
			return err
		}
		if sh.Flags.DryRun {
			return eachJob(cmd.Context(), sh, ids, foreseen(cmd.Context(), sh, func(id job.ID, s job.Status, _ bool) job.Forecast {
				return job.ForecastCancel(id, s, *kill)
			}))
		}
		switch {
		case len(ids) == 0:
			return nil
		case *kill && !*sure && !sh.Classic():
			err = sh.Sure("job cancel", named(ids)+" and end what runs in the middle of its work")
		case several && !*force:
			err = sh.Sure("job cancel", named(ids))
		}
		if err != nil {
			return err
		}
		if several && !sh.Classic() {
			slices.Reverse(ids) // jobs that depend on others go with them: first those, so that each is told once
		}
		return eachJob(cmd.Context(), sh, ids, func(id job.ID) (work.Answer, error) {
			var a work.Answer
			err := sh.Ask(cmd.Context(), "CancelJob", &a, id, *kill, sh.UserTrail())
			return a, err
		})
	}
	return cmd
}

// named names jobs in a question.
func named(ids []job.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	if len(texts) == 1 {
		return "job " + texts[0]
	}
	return shell.Several(texts, "job")
}

func jobArchive(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "archive ID...", Short: "Put jobs that have ended into the archive", Args: shell.AtLeast(1),
		ValidArgsFunction: lists.CompleteNames(sh, "job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := shell.JobIDs(args)
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				return eachJob(cmd.Context(), sh, ids, foreseen(cmd.Context(), sh, job.ForecastArchive))
			}
			bad := false
			for _, id := range ids {
				var done bool
				if err := sh.Do(cmd.Context(), "ArchiveJob", &done, id, sh.UserTrail()); err != nil {
					return err
				}
				if !done {
					text := fmt.Sprintf("Failed to archive job with ID '%d'", id)
					if !sh.Classic() {
						text = refusal(cmd.Context(), sh, id, text)
					}
					sh.Notef("%s\n", text)
					bad = true
				}
			}
			if bad {
				return shell.ErrFailed
			}
			return nil
		},
	}
}

// archiveLimit is how long one request for archiving may take.
const archiveLimit = 89

func jobAutoArchive(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "autoarchive AGE|all", Short: "Put jobs that ended long ago into the archive",
		Long: "Put the jobs into the archive that ended longer ago than AGE, a number of\nseconds or a number with s, m, h, d or w behind it; \"all\" for every ended job.",
		Args: shell.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			age, err := shell.AgeOf(args[0])
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				return wouldArchive(cmd.Context(), sh, age)
			}
			var counts [2]int
			if err := sh.Ask(cmd.Context(), "AutoArchiveJobs", &counts, age, archiveLimit, sh.UserTrail()); err != nil {
				return err
			}
			result := map[string]int{"archived": counts[0], "left": counts[1]}
			return sh.Show(result, func() error {
				return sh.Printf("Archived %d jobs, %d unchecked left\n", counts[0], counts[1])
			})
		},
	}
}

func jobPriority(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{
		Use: "change-priority --priority low|normal|high ID...", Short: "Change how urgent jobs are",
		ValidArgsFunction: lists.CompleteWhere(sh, "job", true, unfinished()),
	}
	var chosen selection
	chosen.register(cmd)
	force := cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sh.Flags.Priority == "" {
			if !sh.Classic() {
				return shell.Usage("%s: give --priority low, normal or high", cmd.CommandPath())
			}
			return &shell.ExitError{Status: shell.ExitFailed, Err: fault.New(fault.WrongState, "--priority option must be given.")}
		}
		priority, err := shell.PriorityOf(sh.Flags.Priority)
		if err != nil {
			return err
		}
		ids, several, err := chosen.jobs(cmd, sh, args)
		if err != nil {
			return err
		}
		if sh.Flags.DryRun {
			return eachJob(cmd.Context(), sh, ids, foreseen(cmd.Context(), sh, func(id job.ID, s job.Status, _ bool) job.Forecast {
				return job.ForecastPriority(id, s, priority)
			}))
		}
		if several && !*force && len(ids) > 0 {
			if err := sh.Confirm("Change the priority of " + named(ids) + "?"); err != nil {
				return err
			}
		}
		return eachJob(cmd.Context(), sh, ids, func(id job.ID) (work.Answer, error) {
			var a work.Answer
			err := sh.Ask(cmd.Context(), "ChangeJobPriority", &a, id, priority, sh.UserTrail())
			return a, err
		})
	}
	return cmd
}
