package exec

import (
	"context"
	"encoding/json"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

// Source returns the state that queries are answered from, as it is now;
// live.Querier has one.
type Source func(context.Context) *query.Source

// queryExecutors returns the entries of the opcodes that are queries.
func queryExecutors(source Source) Catalogue {
	asking := func(ask func(*query.Source, *opcode.Opcode) (any, error)) Executor {
		return Executor{Resumable: true, Why: asksOnly, Prepare: func(ctx context.Context, env *Env) (Plan, error) {
			result, err := ask(source(ctx), env.Op)
			return answer(result), err
		}}
	}
	return Catalogue{
		"OP_QUERY":                asking(queryItems),
		"OP_QUERY_FIELDS":         asking(queryFields),
		"OP_CLUSTER_QUERY":        asking(clusterQuery),
		"OP_CLUSTER_CONFIG_QUERY": asking(clusterConfigQuery),
		"OP_OS_DIAGNOSE":          asking(osDiagnose),
		"OP_EXT_STORAGE_DIAGNOSE": asking(providerDiagnose),
	}
}

func queryItems(src *query.Source, op *opcode.Opcode) (any, error) {
	filter := qlang.Node(&qlang.All{})
	if op.Has("qfilter") {
		var err error
		if filter, err = qlang.FromValue(op.Params["qfilter"]); err != nil {
			return nil, err
		}
	}
	return items.All.Run(src, op.Str("what"), op.Strings("fields"), filter, query.Options{})
}

func queryFields(_ *query.Source, op *opcode.Opcode) (any, error) {
	defs, err := items.All.Fields(op.Str("what"), op.Strings("fields"))
	return map[string][]query.Def{"fields": defs}, err
}

func clusterQuery(src *query.Source, _ *opcode.Opcode) (any, error) {
	return items.ClusterInfo(src), nil
}

// clusterConfigQuery returns the values of some settings, in a list.
func clusterConfigQuery(src *query.Source, op *opcode.Opcode) (any, error) {
	rows, err := items.Old(src, "cluster", nil, op.Strings("output_fields"))
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(rows.AppendValues(nil), &list); err != nil || len(list) != 1 {
		return nil, fault.New(fault.Internal, "the settings of the cluster are %d rows", len(list))
	}
	return list[0], nil
}

func osDiagnose(src *query.Source, op *opcode.Opcode) (any, error) {
	result, err := items.OSes(src, op.Strings("names"), op.Strings("output_fields"))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(result.AppendValues(nil)), nil
}

func providerDiagnose(src *query.Source, op *opcode.Opcode) (any, error) {
	result, err := items.Old(src, "extstorage", op.Strings("names"), op.Strings("output_fields"))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(result.AppendValues(nil)), nil
}
