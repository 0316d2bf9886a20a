package expression

import (
	"context"

	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// aside is what pieces are evaluated with by themselves, when the expression that they stand in need not be.
type aside struct {
	scope *yaql.Context // that of expressions, and a function that keeps what its argument comes to
	cur   *state.View   // what the piece looks at
	out   *outcome
}

// asideName is the name of the function; expressions do not see it.
const asideName = "__aside"

func (e *Evaluator) prepareAside() error {
	keep, err := yaql.NewFunction(asideName, "expr: lambda", func(c *yaql.Context, args []any) (any, error) {
		e.aside.out = e.settled(&argument{c, lambda(args[0])}, e.aside.cur)
		return nil, nil
	})
	if err != nil {
		return err
	}
	e.aside.scope = e.scope.Child()
	e.aside.scope.Register(keep)
	return nil
}

// byItself evaluates a piece with a view as $. It returns nil on errors, whose places would be those of the piece: who
// wants them evaluates the whole expression.
func (e *Evaluator) byItself(ctx context.Context, p *piece, cur *state.View) *outcome {
	if p.alone == nil {
		code, err := e.language.engine.Compile(asideName + "(" + p.text + ")")
		if err != nil {
			return nil
		}
		p.alone = code
	}
	outer := e.aside
	e.aside.cur, e.aside.out = cur, nil
	_, err := p.alone.EvalIn(ctx, e.around(e.aside.scope), cur)
	out := e.aside.out
	e.aside = outer
	if err != nil || out == nil || out.err != nil {
		return nil
	}
	return out
}
