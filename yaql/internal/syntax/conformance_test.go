package syntax

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// conformance opens a file of the conformance data.
func conformance(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(testkit.Conformance(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

type parseCase struct {
	ID      string `json:"id"`
	Expr    string `json:"expr"`
	Options struct {
		Legacy          bool            `json:"legacy"`
		Delegates       bool            `json:"delegates"`
		KeywordOperator json.RawMessage `json:"keywordOperator"`
	} `json:"options"`
	Expect struct {
		Tree    any    `json:"tree"`
		Error   string `json:"error"`
		Message string `json:"message"`
	} `json:"expect"`
}

// TestParseConformance parses every expression of the corpus and compares the tree, or class and message of
// the error.
func TestParseConformance(t *testing.T) {
	lines := bufio.NewScanner(conformance(t, "yaql-parse.jsonl"))
	lines.Buffer(nil, 1<<22)
	passed, total := 0, 0
	for lines.Scan() {
		var c parseCase
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		total++
		if msg := checkParse(c); msg != "" {
			t.Errorf("%s: %s: %s", c.ID, c.Expr, msg)
			continue
		}
		passed++
	}
	t.Logf("yaql-parse.jsonl: %d of %d cases passed", passed, total)
	if total == 0 {
		t.Error("no cases")
	}
}

func checkParse(c parseCase) string {
	table := Default()
	if c.Options.Legacy {
		table = Legacy()
	}
	switch raw := string(c.Options.KeywordOperator); {
	case raw == "null":
		table.Pair = ""
	case raw != "":
		table.Pair = strings.Trim(raw, `"`)
	}
	p, err := NewParser(table, c.Options.Delegates)
	if err != nil {
		return err.Error()
	}
	n, perr := p.Parse(c.Expr)
	if perr != nil {
		if string(perr.Class) != c.Expect.Error {
			return "unexpected error " + perr.Error()
		}
		if c.Expect.Message != "" && perr.Class != Decode && c.Expect.Message != perr.Message {
			return "message " + perr.Message + ", not " + c.Expect.Message
		}
		return ""
	}
	if c.Expect.Error != "" {
		return "no error, not " + c.Expect.Error
	}
	if got := n.Tree(); !sameTree(got, c.Expect.Tree) {
		b, err := json.Marshal(got)
		if err != nil {
			return err.Error()
		}
		return "got " + string(b)
	}
	return ""
}

// sameTree compares a tree of ours with one decoded from JSON with numbers kept as text.
func sameTree(got, want any) bool {
	switch w := want.(type) {
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !sameTree(g[i], w[i]) {
				return false
			}
		}
		return true
	case json.Number:
		if strings.ContainsAny(w.String(), ".eE") {
			f, err := w.Float64()
			return err == nil && got == f
		}
		wi, _ := new(big.Int).SetString(w.String(), 10)
		switch g := got.(type) {
		case int64:
			return big.NewInt(g).Cmp(wi) == 0
		case *big.Int:
			return g.Cmp(wi) == 0
		}
		return false
	default:
		return reflect.DeepEqual(got, want)
	}
}
