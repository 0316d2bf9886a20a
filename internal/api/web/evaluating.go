package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/yaql"
)

// tried is what came of an expression: a value, with the comparisons that it made, or what is wrong with it.
type tried struct {
	Value    json.RawMessage    `json:"value,omitempty"`
	Compared []rollout.Compared `json:"compared"`
	Wrong    *misread           `json:"wrong,omitempty"`
	// Command is the command that tells the same.
	Command string `json:"command"`
}

// misread is what is wrong with an expression, and where.
type misread struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Line and Column are the place, from 1, and Offset is it as scripts count the letters of a text; Shown is the line with a mark below the place. All are
	// empty where the place is not known.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Offset int    `json:"offset,omitempty"`
	Shown  string `json:"shown,omitempty"`
}

// evaluate evaluates an expression over the new and the old state of an environment, as tasks have theirs evaluated.
func evaluate(s *Server, w http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	reader, err := s.deployments()
	if err != nil {
		return nil, err
	}
	var q struct {
		Expression string `json:"expression"`
		// Node is the one that $ is of; New and Old are the deployments whose states are taken, 0 for the present one, and that of the latest.
		Node string `json:"node"`
		New  int64  `json:"new"`
		Old  int64  `json:"old"`
	}
	if err := read(w, r, &q); err != nil {
		return nil, err
	}
	if strings.TrimSpace(q.Expression) == "" {
		return nil, fault.New(fault.Invalid, "say which expression").At("expression")
	}
	name := r.PathValue("id")
	question := rollout.Question{Expression: q.Expression, Node: q.Node, New: rollout.At{Environment: name, Deployment: q.New}}
	out := tried{Compared: []rollout.Compared{}, Command: "drover deploy console " + quoted(name)}
	for _, o := range []struct{ name, is string }{{"--node", q.Node}, {"--new", numberOf(q.New)}, {"--old", numberOf(q.Old)}, {"-e", q.Expression}} {
		if o.is != "" {
			out.Command += " " + o.name + " " + quoted(o.is)
		}
	}
	if q.Old != 0 {
		question.Old = &rollout.At{Environment: name, Deployment: q.Old}
	}
	a, err := reader.Eval(r.Context(), question)
	if wrong, ok := errors.AsType[*yaql.Error](err); ok {
		out.Wrong = misreadOf(wrong, q.Expression)
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Compared = a.Compared
	out.Value, err = json.Marshal(a.Value)
	return out, err
}

// numberOf is a number as text, empty for 0.
func numberOf(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// misreadOf tells what is wrong with an expression; of what is wrong elsewhere, as in a function of the operator's own, no place.
func misreadOf(e *yaql.Error, expression string) *misread {
	m := &misread{Message: e.Plain(), Hint: e.Hint}
	if m.Message == "" {
		m.Message = e.Class
	}
	if e.Offset < 0 || e.Offset > len(expression) || e.Source != expression {
		return m
	}
	m.Line, m.Column = e.Place()
	m.Offset = len(utf16.Encode([]rune(expression[:e.Offset])))
	m.Shown = e.Caret()
	return m
}
