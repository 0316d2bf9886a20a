// Package yaql compiles and evaluates expressions of YAQL, the query language that OpenStack's workflow and
// deployment services embed.
//
//	engine, err := yaql.New()
//	ready, err := engine.Compile("$.nodes.where($.status = ready and controller in $.roles).name")
//	names, err := ready.Eval(ctx, cluster)
//
// An [Engine] is made once and compiles any number of expressions; engines and expressions are immutable and safe
// for use by many goroutines. The results, and the classes of errors, are those of the Python implementation;
// docs/yaql in the source tree describes the language, every function, and the few differences.
//
// # Values
//
// The data that an expression sees as $ is an ordinary Go value, which is neither copied nor changed. Every value
// of the language has one representation:
//
//	null                  nil
//	boolean               bool
//	integer               int64, or *big.Int if it does not fit; other integer types in the input
//	float                 float64
//	string                string; characters are code points
//	list                  []any; in the input also other slices, and values with the methods of [Sequence]
//	map                   map[string]any, or *[Dict] for other keys or to keep the order; in the input also other
//	                      maps, structs (by their fields' JSON names) and values with the methods of [Mapping]
//	set                   *[Set]
//	date and time         [DateTime]; in the input also time.Time
//	length of time        [Timespan]; in the input also time.Duration
//	regular expression    *[Regex]
//	lazy collection       *[Iterator], in results only if the engine does not convert them
//	object of the host    a value with the methods of [Object]
//
// Results are of the same types: lazy collections become lists, and so do sets, unless the options say
// otherwise. A value of another type that the data had, or that a function of the host returned, comes out as it went in.
//
// # Safety
//
// An expression can do nothing but compute. What it costs is bounded without being asked for, by [DefaultSteps], so
// that a stranger's expression cannot take the host's memory or time; [StepBudget], [MemoryQuota], [LimitIterators] and
// [DepthLimit] bound it more closely, and [Unbounded] not at all. A context.Context with a deadline stops it (a nil one never ends), and
// searches of regular expressions, sizes of numbers and nesting are always bounded.
//
// # Extending
//
// Functions of the host are made by [NewFunction], or from Go functions by [Func1] and its siblings, and
// registered in a [Context], in which variables are set as well. One that panics is an error of the expression. Operators are added by [InsertOperator].
//
// # How it is fast
//
// Compilation turns the syntax tree into closures. Where the tree tells enough (the path $.a.b, a comparison with a
// constant, a search in a literal list, a predicate of where) the closure does the work on Go values directly, and
// takes the general way, by overload resolution, for operands of other types. That is allowed as long as nobody
// replaces functions of the library. A context knows whether it, or one above it, does; in such a context the
// expression is compiled again, into code that finds every operator by name.
package yaql
