package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// The targets: how many times faster than the reference each case must be, the seed predicates among them,
// and the geometric mean of all.
const (
	wantEach = 100.0
	wantSeed = 1000.0
	wantMean = 300.0
)

// benchCase is one case of yaql_bench_cases.json, and what the reference took for it.
type benchCase struct {
	Name    string
	Expr    string
	Data    *string
	Options map[string]any
}

type benchFile struct {
	Data  map[string]dataSpec
	Cases []benchCase
}

type dataSpec struct {
	Value any
	Gen   string
	N     int
}

type referenceResult struct {
	Python string
	Cases  []struct {
		Name    string
		ParseUS float64 `json:"parse_us"`
		EvalUS  float64 `json:"eval_us"`
		SHA     string  `json:"result_sha"`
		Error   string
	}
}

// reference is where the Python engine is and which of the cases are wanted.
type reference struct{ python, directory, only string }

func (r reference) casesFile() string { return filepath.Join(r.directory, "yaql_bench_cases.json") }

// compareWithReference measures the cases in both engines and reports whether all targets were met.
func compareWithReference(out io.Writer, r reference, budget time.Duration) (bool, error) {
	text, err := os.ReadFile(r.casesFile())
	if err != nil {
		return false, err
	}
	var file benchFile
	if err := json.Unmarshal(text, &file); err != nil {
		return false, err
	}
	fmt.Fprintln(out, "measuring the reference; this takes a few minutes")
	theirs, err := r.run(budget)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\nPython %s against this engine, microseconds (median)\n", theirs.Python)
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\tparse, reference\tparse, ours\teval, reference\teval, ours\tratio\twanted\tover Go maps\tratio\tsame result\t")
	met, logs := true, 0.0
	cases := r.wanted(file.Cases)
	for i, c := range cases {
		ours, err := measureCase(c, file.Data, budget)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.Name, err)
		}
		python := theirs.Cases[i]
		ratio := python.EvalUS / ours.eval
		logs += math.Log(ratio)
		want := wantEach
		if strings.HasPrefix(c.Name, "seed-") {
			want = wantSeed
		}
		same := ours.same && ours.sha == python.SHA
		met = met && ratio >= want && same
		fmt.Fprintf(table, "%s\t%.1f\t%.2f\t%.0f\t%.3f\t%.0f\t%.0f\t%.3f\t%.0f\t%v\t\n", c.Name, python.ParseUS, ours.parse, python.EvalUS, ours.eval, ratio, want,
			ours.maps, python.EvalUS/ours.maps, same)
	}
	mean := math.Exp(logs / float64(len(cases)))
	if err := table.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "geometric mean of the ratios: %.0f (wanted %.0f)\n", mean, wantMean)
	return met && mean >= wantMean, nil
}

func (r reference) wanted(cases []benchCase) []benchCase {
	if r.only == "" {
		return cases
	}
	names := strings.Split(r.only, ",")
	return slices.DeleteFunc(cases, func(c benchCase) bool { return !slices.Contains(names, c.Name) })
}

func (r reference) run(budget time.Duration) (*referenceResult, error) {
	args := []string{filepath.Join(r.directory, "yaql_bench.py"), r.casesFile(), "--min-time", fmt.Sprint(budget.Seconds())}
	if r.only != "" {
		args = append(args, "--only", r.only)
	}
	cmd := exec.Command(r.python, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the reference did not run (is python3-yaql installed?): %w", err)
	}
	var result referenceResult
	return &result, json.Unmarshal(text, &result)
}

// measured are the costs of a case in microseconds, the digest of its result, and whether both forms of the data
// gave that.
type measured struct {
	parse, eval, maps float64
	sha               string
	same              bool
}

// documents are one document in both forms that the engine reads: as it decodes JSON, which is the counterpart of
// what the reference converts its data to before it is timed, and as the maps that a Go program may have.
type documents struct{ decoded, maps any }

func (s dataSpec) documents() (documents, error) {
	value := whole(s.Value)
	if s.Gen == "nodes" {
		value = nodes(s.N)
	}
	text, err := yaqljson.Encode(value)
	if err != nil {
		return documents{}, err
	}
	var d documents
	if d.decoded, err = yaqljson.Decode(text); err != nil {
		return documents{}, err
	}
	err = json.Unmarshal(text, &d.maps)
	d.maps = whole(d.maps)
	return d, err
}

func measureCase(c benchCase, data map[string]dataSpec, budget time.Duration) (measured, error) {
	ordered, err := yaql.New(append(engineOptions(c.Options), yaql.OrderedResults())...)
	if err != nil {
		return measured{}, err
	}
	plain, err := yaql.New(engineOptions(c.Options)...)
	if err != nil {
		return measured{}, err
	}
	var input documents
	if c.Data != nil {
		if input, err = data[*c.Data].documents(); err != nil {
			return measured{}, err
		}
	}
	decoded, err := measureEval(ordered, c.Expr, input.decoded, budget)
	if err != nil {
		return measured{}, err
	}
	input.decoded = nil
	maps, err := measureEval(plain, c.Expr, input.maps, budget)
	if err != nil {
		return measured{}, err
	}
	return measured{
		parse: microseconds(budget, func() { _, _ = ordered.Compile(c.Expr) }),
		eval:  decoded.eval, maps: maps.eval, sha: decoded.sha, same: decoded.sha == maps.sha,
	}, nil
}

// measureEval evaluates an expression over one form of its data.
func measureEval(engine *yaql.Engine, text string, input any, budget time.Duration) (measured, error) {
	expression, err := engine.Compile(text)
	if err != nil {
		return measured{}, err
	}
	result, err := expression.Eval(context.Background(), input)
	if err != nil {
		return measured{}, err
	}
	sha, err := digest(result)
	if err != nil {
		return measured{}, err
	}
	return measured{eval: microseconds(budget, func() { _, _ = expression.Eval(context.Background(), input) }), sha: sha}, nil
}

func engineOptions(options map[string]any) []yaql.Option {
	all := []yaql.Option{yaql.ReferenceDefaults()}
	if on, ok := options["yaql.convertSetsToLists"].(bool); ok {
		all = append(all, yaql.ConvertSetsToLists(on))
	}
	return all
}

// digest is the SHA-256 of a result as JSON with sorted keys and without spaces, non-ASCII escaped.
func digest(result any) (string, error) {
	text, err := yaqljson.Encode(result)
	if err != nil {
		return "", err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var sorted any
	if err := decoder.Decode(&sorted); err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(sorted); err != nil {
		return "", err
	}
	sum := sha256.Sum256(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
	return hex.EncodeToString(sum[:]), nil
}

var (
	statuses = []string{"ready", "discover", "provisioned", "error", "stopped"}
	roles    = []string{"controller", "compute", "cinder", "ceph-osd", "mongo"}
)

// nodes makes a document of n nodes, as the generator of the reference's script does.
func nodes(n int) any {
	all := make([]any, n)
	for i := range all {
		own := []any{roles[i%5], roles[(i/5)%5]}
		if i%3 == 0 {
			own = own[:1]
		}
		all[i] = object("uid", fmt.Sprint(i), "name", fmt.Sprintf("node-%d", i), "status", statuses[i%5], "roles", own,
			"pending_addition", i%7 == 0, "cpu", int64(1)<<(i%6), "ram", int64(1024*(1+i%64)),
			"network", object("ip", fmt.Sprintf("10.%d.%d.%d", i/65536%256, i/256%256, i%256), "vlan", int64(100+i%50)),
			"rack", fmt.Sprintf("r%d", i%40))
	}
	return object("cluster", object("id", int64(1), "status", "operational"), "nodes", all,
		"configs", object("nova", object("debug", false, "parameter", object("value", true))))
}

// object makes a map of keys and values that take turns; the keys are strings.
func object(pairs ...any) *yaql.Dict {
	d := yaql.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		_ = d.Set(pairs[i], pairs[i+1]) // strings can be hashed
	}
	return d
}

// whole turns the numbers of decoded JSON, which are whole here, into integers.
func whole(v any) any {
	switch x := v.(type) {
	case float64:
		return int64(x)
	case []any:
		for i := range x {
			x[i] = whole(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = whole(x[k])
		}
	}
	return v
}
