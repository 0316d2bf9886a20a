package items_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/testkit"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in this zone
	os.Exit(m.Run())
}

// commandLine is a recorded run of a command.
type commandLine struct {
	name           string
	words          []string
	status         int
	stdout, stderr string
}

var heading = regexp.MustCompile(`(?s)\A# request: ([^\n]*)\n.*?# exit status: (\d+)\n.*?# ---- stdout\n`)

func recordedCommandLines(t *testing.T) []commandLine {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testkit.Conformance(t, "golden", "cli"), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var out []commandLine
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := heading.FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s has no heading", file)
		}
		c := commandLine{name: strings.TrimSuffix(filepath.Base(file), ".txt"), words: shellWords(string(m[1]))}
		if c.status, err = strconv.Atoi(string(m[2])); err != nil {
			t.Fatal(err)
		}
		c.stdout, c.stderr, _ = strings.Cut(string(text[len(m[0]):]), "# ---- stderr\n")
		out = append(out, c)
	}
	return out
}

// shellWords splits a line at blanks that are not inside single quotes.
func shellWords(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?:'[^']*'|[^' ])+`).FindAllString(line, -1) {
		out = append(out, strings.ReplaceAll(m, "'", ""))
	}
	return out
}

// onlyAsks tells the recorded commands whose output comes from queries alone.
// Lists of the fields of rules are left out: there are more of them here, which
// makes the columns wider.
var onlyAsks = regexp.MustCompile(`^gnt-((instance|node|group|network|job|backup) (list|list-fields)|filter list|debug locks|` +
	`(instance|cluster) list-tags|(node|group|network|filter) info|cluster (getmaster|master-ping|queue info|watcher info))( |$)`)

// TestCommandLineConformance runs every recorded command that only asks, with
// the recorded state behind the socket, and compares all that it writes.
func TestCommandLineConformance(t *testing.T) {
	lists := recordedCommandLines(t)
	jobs := listedJobs(t, lists)
	passed, total := 0, 0
	for _, c := range lists {
		if !onlyAsks.MatchString(strings.Join(c.words, " ")) {
			continue
		}
		total++
		src := items.RecordedSource(t)
		asInMoment(t, src, c, jobs)
		got := run(t, src, c.words)
		if want := masked(c); masked(got.named(c)) != want {
			t.Errorf("%s: %s", c.name, testkit.FirstDifference(masked(got.named(c)), want))
			continue
		}
		passed++
	}
	t.Logf("golden/cli, commands that only ask: %d of %d recordings passed", passed, total)
	if total < 50 {
		t.Errorf("only %d recordings were found", total)
	}
}

func (c commandLine) named(as commandLine) commandLine {
	c.name, c.words = as.name, as.words
	return c
}

// asInMoment makes the state what it was when a list was recorded.
func asInMoment(t *testing.T, src *query.Source, c commandLine, jobs map[string][]items.ListedJob) {
	t.Helper()
	switch {
	case jobs[c.name] != nil:
		items.WithJobs(src, items.ListedJobs(t, jobs[c.name]))
	case strings.Contains(c.name, "gnt-filter_list"):
		items.WithRulesOf(src, c.stdout)
	case strings.HasSuffix(c.name, "_drained"):
		src.Runtime.Drained = true
	case strings.HasPrefix(c.name, "gnt-debug_locks") && c.name != "gnt-debug_locks_idle":
		items.WithRecordedLocks(t, src)
	}
}

// listedJobs are the jobs that were there when each job list was recorded: the
// lists of a moment show them all between them.
func listedJobs(t *testing.T, lists []commandLine) map[string][]items.ListedJob {
	t.Helper()
	byName := map[string]commandLine{}
	for _, c := range lists {
		byName[c.name] = c
	}
	late := jobsOf(t, byName["gnt-job_list_o"].stdout)
	if len(late) != 102 {
		t.Fatalf("%d jobs in the longest list", len(late))
	}
	// The one job in the archive is in no other list.
	archived := jobsOf(t, byName["gnt-job_list_archived"].stdout)
	for _, j := range archived {
		if j.Archived {
			late = append(late, j)
		}
	}
	slices.SortFunc(late, func(a, b items.ListedJob) int { return int(a.ID - b.ID) })
	early := jobsOf(t, byName["gnt-job_list_mixed"].stdout)
	out := map[string][]items.ListedJob{"gnt-job_list_mixed": early, "gnt-job_list_running": early}
	for _, name := range []string{"gnt-job_list", "gnt-job_list_archived", "gnt-job_list_error", "gnt-job_list_filter", "gnt-job_list_o"} {
		out[name] = late
	}
	for _, name := range []string{"non_ascii_C-UTF-8_latin1_gnt-job_list", "non_ascii_C-UTF-8_beyond_latin1_gnt-job_list"} {
		out[name] = jobsOf(t, byName[name].stdout)
	}
	return out
}

var jobLine = regexp.MustCompile(`^ *(\d+) (\w+) +(?:0 )?([A-Z]+_\S+)? *(?:\[(\d+), (\d+)\] +(?:\[(\d+), (\d+)\]|-))?([YN])?$`)

func jobsOf(t *testing.T, list string) []items.ListedJob {
	t.Helper()
	var out []items.ListedJob
	for line := range strings.Lines(list) {
		m := jobLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue // the header
		}
		id, err := job.ParseID(m[1])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, items.ListedJob{ID: id, Status: m[2], Summary: m[3], Received: moment(m[4], m[5]), Ended: moment(m[6], m[7]), Archived: m[8] == "Y"})
	}
	return out
}

func moment(seconds, micros string) job.Time {
	s, _ := strconv.ParseInt(seconds, 10, 64) // absent in most lists
	u, _ := strconv.ParseInt(micros, 10, 64)
	return job.Time(s*1e6 + u)
}

// ratios are shown in an order that changes from run to run.
var ratios = regexp.MustCompile(`(?m)^( +vcpu-ratio: .*\n)( +spindle-ratio: .*\n)`)

// momentary are the free disk space and the used and free memory of a node,
// which another recording has from another moment.
var momentary = regexp.MustCompile(`(?m)^(\S+ +\S+G +)\d+\.\dG( +\S+G) +\d+\.\dG +\d+\.\dG( +\d+ +\d+)$`)

// description is the last column of lists of fields, which is in our words.
var description = regexp.MustCompile(`(?m)^(\S+ +(?:Floating-point number|Storage size|[A-Z]\S+) +\S+ +)\S.*$`)

// masked is all that a command wrote, without what cannot be equal.
func masked(c commandLine) string {
	out := c.stdout
	if strings.Contains(c.name, "list-fields") || strings.Contains(c.name, "list_fields") {
		out = description.ReplaceAllString(out, "$1...")
	}
	if c.name == "gnt-node_list" {
		out = momentary.ReplaceAllString(out, "$1.....$2 .... .....$3")
	}
	out = ratios.ReplaceAllString(out, "$2$1")
	return fmt.Sprintf("status %d\n%s%s", c.status, out, c.stderr)
}

// run runs a command against a socket behind which a state is.
func run(t *testing.T, src *query.Source, words []string) commandLine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "luxi")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serve(t, src, conn)
		}
	}()
	var stdout, stderr bytes.Buffer
	status := cli.Main(t.Context(), cli.Env{Args: words, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now,
		Getenv: func(name string) string { return map[string]string{"DROVER_LUXI": path}[name] }})
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	<-done
	return commandLine{status: status, stdout: stdout.String(), stderr: stderr.String()}
}

func serve(t *testing.T, src *query.Source, conn net.Conn) {
	defer func() { _ = conn.Close() }() // the command has gone before
	for frames := luxiwire.NewFrameReader(conn, luxiwire.MaxFrame); ; {
		frame, err := frames.Next()
		if err != nil {
			return
		}
		answer, err := reply(src, frame)
		if err != nil {
			t.Error(err)
			return
		}
		if err := luxiwire.WriteFrame(conn, answer); err != nil {
			t.Error(err)
			return
		}
	}
}

// reply answers a request as a controller in that state would.
func reply(src *query.Source, frame []byte) ([]byte, error) {
	req, err := luxiwire.ParseRequest(frame)
	if err != nil {
		return nil, err
	}
	if req.Method == "QueryMasters" {
		alone := fault.New(fault.WrongState, "this controller is alone")
		return luxiwire.ErrorFrame(luxiwire.Error{Class: "OpPrereqError", Args: []any{alone.Error(), "wrong_state"}}, alone)
	}
	var args []json.RawMessage
	if err := json.Unmarshal(req.Args, &args); err != nil {
		return nil, err
	}
	result, err := asked(src, req.Method, args)
	if e, ok := errors.AsType[*query.Error](err); ok {
		pair := luxiwire.Error{Class: e.Class}
		for _, arg := range e.Args {
			pair.Args = append(pair.Args, arg)
		}
		return luxiwire.ErrorFrame(pair, e)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.Args, err)
	}
	return luxiwire.ResultFrame(result)
}

func asked(src *query.Source, method string, args []json.RawMessage) (any, error) {
	var lists [2][]string
	var texts [2]string
	for i := range min(len(args), 2) {
		if json.Unmarshal(args[i], &texts[i]) != nil {
			if err := json.Unmarshal(args[i], &lists[i]); err != nil {
				return nil, err
			}
		}
	}
	switch method {
	case "Query":
		filter, err := qlang.ParseJSON(args[2])
		if err != nil {
			return nil, err
		}
		res, err := items.All.Run(src, texts[0], lists[1], filter, query.Options{})
		if err != nil {
			return nil, err
		}
		return json.RawMessage(res.AppendJSON(nil)), nil
	case "QueryFields":
		defs, err := items.All.Fields(texts[0], lists[1])
		defs = slices.DeleteFunc(defs, func(d query.Def) bool { return items.NewField(texts[0], d.Name) })
		return map[string]any{"fields": defs}, err
	case "QueryFilters", "QueryNetworks", "QueryInstances":
		item := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(method, "Query"), "s"))
		res, err := items.Old(src, item, lists[0], lists[1])
		if err != nil {
			return nil, err
		}
		return json.RawMessage(res.AppendValues(nil)), nil
	case "QueryConfigValues":
		return items.ConfigValues(src, lists[0]), nil
	case "QueryTags":
		if texts[0] == "cluster" {
			return src.Inventory.Cluster().Labels(), nil
		}
		i, err := src.Inventory.FindInstance(texts[1])
		if err != nil {
			return nil, err
		}
		return i.Labels(), nil
	}
	return nil, fault.New(fault.Invalid, "not a request that only asks")
}
