package yaqlcmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// request is a line to evaluate, answer the line that comes back.
type request struct {
	ID      json.RawMessage `json:"id"`
	Expr    *string         `json:"expr"`
	Data    json.RawMessage `json:"data"`
	Options json.RawMessage `json:"options"`
}

type answer struct {
	ID    json.RawMessage  `json:"id"`
	Value *json.RawMessage `json:"value,omitempty"`
	Error *answerError     `json:"error,omitempty"`
}

type answerError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// invalidRequest is the type of error of a line that is no request.
const invalidRequest = "InvalidRequest"

// evalLines answers each line of in with one of out. The answers are flushed when no further line waits, so that a
// program may talk with it.
func (s *settings) evalLines(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	answers := bufio.NewWriter(out)
	e := evaluator{s, map[string]*yaql.Engine{}}
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if werr := writeLine(answers, e.answer(ctx, line)); werr != nil {
				return werr
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if err != nil || lines.Buffered() == 0 {
			if ferr := answers.Flush(); ferr != nil || err != nil {
				return ferr
			}
		}
	}
}

func writeLine(out io.Writer, a answer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}

// evaluator holds an engine for each set of options met.
type evaluator struct {
	*settings

	engines map[string]*yaql.Engine
}

func (e evaluator) answer(ctx context.Context, line []byte) answer {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return answer{ID: nullID, Error: &answerError{invalidRequest, err.Error()}}
	}
	if len(r.ID) == 0 {
		r.ID = nullID
	}
	if r.Expr == nil {
		return answer{ID: r.ID, Error: &answerError{invalidRequest, `"expr" is missing`}}
	}
	value, err := e.evaluate(ctx, r)
	if err != nil {
		return answer{ID: r.ID, Error: describe(err)}
	}
	raw := json.RawMessage(value)
	return answer{ID: r.ID, Value: &raw}
}

var nullID = json.RawMessage("null")

func describe(err error) *answerError {
	if fault, ok := errors.AsType[*yaql.Error](err); ok {
		return &answerError{fault.Class, fault.Message}
	}
	return &answerError{invalidRequest, err.Error()}
}

func (e evaluator) evaluate(ctx context.Context, r request) ([]byte, error) {
	options, err := yaqljson.ParseOptions(r.Options)
	if err != nil {
		return nil, err
	}
	engine, err := e.engineFor(options)
	if err != nil {
		return nil, err
	}
	var data any
	if len(r.Data) > 0 {
		if data, err = yaqljson.Decode(r.Data); err != nil {
			return nil, err
		}
	}
	compiled, err := engine.Compile(*r.Expr)
	if err != nil {
		return nil, err
	}
	scope := engine.NewContext()
	for name, value := range options.Vars {
		scope.Set(name, value)
	}
	ctx, cancel := e.deadline(ctx)
	defer cancel()
	result, err := compiled.EvalIn(ctx, scope, data)
	if err != nil {
		return nil, err
	}
	if options.Raw {
		return yaqljson.EncodeRaw(result)
	}
	return yaqljson.Encode(result)
}

func (e evaluator) engineFor(options yaqljson.Options) (*yaql.Engine, error) {
	if engine, ok := e.engines[options.Key]; ok {
		return engine, nil
	}
	limits := []yaql.Option{yaql.StepBudget(e.steps), yaql.OrderedResults()}
	if e.limit >= 0 {
		limits = append(limits, yaql.LimitIterators(e.limit))
	}
	if e.memory >= 0 {
		limits = append(limits, yaql.MemoryQuota(e.memory))
	}
	engine, err := yaql.New(append(options.Engine, limits...)...)
	if err == nil {
		e.engines[options.Key] = engine
	}
	return engine, err
}
