package yaqljson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/internal/pytext"
)

// Options are the settings that travel with an expression, read from JSON:
//
//	{"engine": {"yaql.limitIterators": 3}, "context": {"no_sets": true}, "vars": {"v": 1},
//	 "delegates": true, "legacy": true, "keywordOperator": ":"}
//
// Every part may be absent. Without options an expression runs with the defaults of the reference's library,
// in which sets stay sets in results.
type Options struct {
	Engine []yaql.Option  // for yaql.New
	Vars   map[string]any // the variables to set, without their dollar signs
	Raw    bool           // results are not converted: write them with EncodeRaw
	Key    string         // equal for options that ask for equal engines
}

// ParseOptions reads options. Empty text means none. Names that it does not know are refused.
func ParseOptions(text []byte) (Options, error) {
	o := Options{Engine: []yaql.Option{yaql.ReferenceDefaults()}}
	if len(text) == 0 || string(text) == "null" {
		return o, nil
	}
	value, err := Decode(text)
	if err != nil {
		return o, fmt.Errorf("options: %w", err)
	}
	given, ok := value.(*yaql.Dict)
	if !ok {
		return o, errors.New("options: want an object")
	}
	var failed error
	given.Range(func(key, value any) bool {
		failed = o.set(key.(string), value)
		return failed == nil
	})
	if failed != nil {
		return o, fmt.Errorf("options: %w", failed)
	}
	if legacy, _ := given.Get("legacy"); legacy == true {
		o.Engine = append(o.Engine, yaql.ConvertTuplesToLists(false)) // the reference's legacy factory insists on it
	}
	o.Key = engineKey(text)
	return o, nil
}

// engineKey is the text of the options without the variables, in which keys are sorted.
func engineKey(text []byte) string {
	var parts map[string]any
	if json.Unmarshal(text, &parts) != nil {
		return string(text)
	}
	delete(parts, "vars")
	key, err := json.Marshal(parts)
	if err != nil {
		return string(text)
	}
	return string(key)
}

func (o *Options) set(key string, value any) error {
	switch key {
	case "engine":
		return o.setAll("engine", value, engineOptions)
	case "context":
		return o.setAll("context", value, contextOptions)
	case "vars":
		return o.setVars(value)
	case "delegates":
		return o.when(key, value, yaql.AllowDelegates())
	case "legacy":
		return o.when(key, value, yaql.Legacy())
	case "keywordOperator":
		sign, ok := value.(string)
		if !ok && value != nil {
			return wrongType(key, "a string or null")
		}
		o.Engine = append(o.Engine, yaql.KeywordOperator(sign))
		return nil
	}
	return unknown(key, []string{"engine", "context", "vars", "delegates", "legacy", "keywordOperator"})
}

func (o *Options) setVars(value any) error {
	vars, ok := value.(*yaql.Dict)
	if !ok {
		return wrongType("vars", "an object")
	}
	o.Vars = map[string]any{}
	vars.Range(func(key, value any) bool {
		o.Vars[strings.TrimPrefix(key.(string), "$")] = value
		return true
	})
	return nil
}

// when adds an option that is on or off.
func (o *Options) when(key string, value any, option yaql.Option) error {
	on, ok := value.(bool)
	if !ok {
		return wrongType(key, "true or false")
	}
	if on {
		o.Engine = append(o.Engine, option)
	}
	return nil
}

// setting reads the value of one named option.
type setting func(o *Options, value any) (yaql.Option, bool)

func flag(option func(bool) yaql.Option) setting {
	return func(_ *Options, value any) (yaql.Option, bool) {
		on, ok := value.(bool)
		return option(on), ok
	}
}

var engineOptions = map[string]setting{
	"yaql.limitIterators": func(_ *Options, value any) (yaql.Option, bool) {
		n, ok := value.(int64)
		return yaql.LimitIterators(int(n)), ok
	},
	"yaql.memoryQuota": func(_ *Options, value any) (yaql.Option, bool) {
		n, ok := value.(int64)
		return yaql.MemoryQuota(n), ok
	},
	"yaql.convertOutputData": func(o *Options, value any) (yaql.Option, bool) {
		on, ok := value.(bool)
		o.Raw = !on
		return yaql.ConvertOutputData(on), ok
	},
	"yaql.convertInputData":     flag(yaql.ConvertInputData),
	"yaql.convertTuplesToLists": flag(yaql.ConvertTuplesToLists),
	"yaql.convertSetsToLists":   flag(yaql.ConvertSetsToLists),
	"yaql.iterableDicts":        flag(yaql.IterableDicts),
}

var contextOptions = map[string]setting{
	"no_sets": func(_ *Options, value any) (yaql.Option, bool) {
		on, ok := value.(bool)
		if !on {
			return nil, ok
		}
		return yaql.NoSets(), ok
	},
	"group_by_agg_fallback": flag(yaql.GroupByFallback),
}

func (o *Options) setAll(group string, value any, known map[string]setting) error {
	given, ok := value.(*yaql.Dict)
	if !ok {
		return wrongType(group, "an object")
	}
	var failed error
	given.Range(func(k, v any) bool {
		name := k.(string)
		read, ok := known[name]
		if !ok {
			failed = unknown(group+"."+name, names(group, known))
			return false
		}
		option, ok := read(o, v)
		if !ok {
			failed = wrongType(group+"."+name, "another type")
			return false
		}
		if option != nil {
			o.Engine = append(o.Engine, option)
		}
		return true
	})
	return failed
}

func names(group string, known map[string]setting) []string {
	all := make([]string, 0, len(known))
	for name := range known {
		all = append(all, group+"."+name)
	}
	return all
}

func unknown(key string, known []string) error {
	if nearest, ok := pytext.Nearest(key, known); ok {
		return fmt.Errorf("%q is not known; did you mean %q?", key, nearest)
	}
	return fmt.Errorf("%q is not known", key)
}

func wrongType(key, want string) error { return fmt.Errorf("%q: want %s", key, want) }
