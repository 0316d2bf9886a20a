package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/yaql"
)

// grammar lists for each kind of value the ways to compute one. A hole <kind> is filled with an expression of that
// kind, <!kind> with a constant of it; <kind@other> with one in which $ is of the other kind, and <kind@a,b> with one in which $1 and $2 are.
var grammar = map[string][]string{
	"int": {
		"<int> + <int>", "<int> - <int>", "<big> mod <int>", "sign(<big>)", "<int> + <big> - <big>", "<int> * <int>", "<int> / <int>", "<int> mod <int>", "-<int>", "(<int>)", "+<int>",
		"<ints>.len()", "len(<strs>)", "<str>.len()", "<ints>.sum()", "<ints>.sum(<int>)", "<ints>.first()", "<ints>.last(<int>)", "<ints>.first(<int>)",
		"<ints>[<int>]", "<ints>.min()", "<ints>.max(<int>)", "<ints>.single()", "<ints>.aggregate($1 + $2, <int>)", "<ints>.aggregate(<int@int,int>)",
		"<str>.indexOf(<str>)", "<str>.lastIndexOf(<str>)", "<str>.indexOf(<str>, <int>)", "int(<str>)", "int(<float>)", "int(<bool>)", "int(<any>)", "abs(<int>)", "sign(<num>)",
		"max(<int>, <int>)", "min(<int>, <int>)", "round(<int>)", "round(<int>, <int>)", "pow(<int>, 2)", "bitwiseAnd(<int>, <int>)", "bitwiseOr(<int>, <int>)",
		"bitwiseXor(<int>, <int>)", "bitwiseNot(<int>)", "shiftBitsLeft(<int>, 2)", "shiftBitsRight(<int>, <int>)", "<ints>.indexOf(<int>)", "<ints>.lastIndexOf(<int>)",
		"<ints>.indexWhere(<bool@int>)", "<ints>.lastIndexWhere(<bool@int>)", "<dict>.len()", "<dict>.get(<str>, <int>)", "<dict>[<str>, <int>]", "<dict>.a", "<set>.len()",
		"switch(<bool> => <int>, true => <int>)", "let(<int>) -> <int@int>", "let(x => <int>) -> $x + <int>", "coalesce(null, <int>)", "selectCase(<bool>, <bool>)",
		"<ints>.where(<bool@int>).count()", "<strs>.select(len($)).sum(0)", "<date>.year", "<date>.day", "<date>.weekday", "<span>.microseconds", "with(<int>, <str>) -> $1",
		"def(f, $ * 2) -> f(<int>)", "def(f, switch($ < 2 => 1, true => $ * f($ - 1))) -> f(<small>)", "<bool>.switchCase(<int>, <int>)", "<small>.switchCase(<int>, <int>, 7)", "<ints>.count()", "<set>.count()",
	},
	"small": {"0", "1", "2", "3"},
	"float": {
		"<float> + <num>", "<num> / 2.0", "<float> * <num>", "float(<int>)", "float(<str>)", "<float> - <int>", "-<float>", "round(<float>, 1)", "round(<float>)", "abs(<float>)",
		"pow(abs(<num>), 0.5)", "pow(2, -1)", "<span>.hours", "<span>.seconds", "<float> mod <num>", "max(<num>, <float>)", "<date>.timestamp", "[<float>, <int>].sum()",
	},
	"num": {"<int>", "<float>"},
	"bool": {
		"<int> < <int>", "<big> > <num>", "<big> = <num>", "<num> >= <num>", "<int> = <int>", "<any> = <any>", "<any> != <any>", "<str> = <str>", "<str> < <str>", "<bool> and <bool>", "<bool> or <bool>", "not <bool>",
		"<int> in <ints>", "<str> in <strs>", "<str> in <str>", "<str> =~ `a.`", "<str> !~ '^n'", "<str> =~ <pattern>", "<str>.matches(<pattern>)", "regex(<pattern>, multiLine => true).matches(<str>)", "regex(<pattern>, ignoreCase => true).matches(<str>)", "<str>.matches('[a-c]+$')", "isString(<any>)", "isInteger(<any>)", "isNumber(<any>)",
		"isBoolean(<any>)", "isList(<any>)", "isDict(<any>)", "isSet(<any>)", "bool(<any>)", "<ints>.any()", "<ints>.any(<bool@int>)", "<ints>.all(<bool@int>)", "<ints>.contains(<int>)",
		"<dict>.containsKey(<str>)", "<dict>.containsValue(<int>)", "<str>.startsWith(<str>)", "<str>.endsWith(<str>, <str>)", "<set>.contains(<int>)", "<set> < <set>", "<set> = <set>",
		"<str>.isEmpty()", "isEmpty(<str>)", "<span> > <span>", "<date> >= <date>", "null < <any>", "<nodes>.any($.ram > <int>)", "isIterable(<any>)", "isDatetime(<any>)", "isTimespan(<any>)", "isRegex(<any>)", "<any> and <any>", "<any> or <any>",
		"not <any>", "<int> > null", "<iter> and true", "<ints>.isEmpty()", "<ints>.len() > <int>", "<int> in <set>", "isEmpty(<ints>)",
	},
	"str": {
		"<str> + <str>", "<str>.toUpper()", "<str>.toLower()", "str(<int>)", "str(<float>)", "str(<big> / <int>)", "str(<any>)", "<strs>.join('-')", "', '.join(<strs>)", "<ints>.join(';')", "<str>.trim()", "<str>.trim(<str>)",
		"<str>.trimLeft()", "<str>.trimRight('ab')", "<str>.substring(<int>)", "<str>.substring(<int>, <int>)", "<str>.replace(<str>, <str>)", "<str>.replace(<str>, <str>, 1)", "<strs>.first('none')",
		"<strs>[<int>]", "concat(<str>, <str>)", "<str> * <small>", "<small> * <str>", "regex('[aeiou]').replace(<str>, '_')", "regex(<pattern>).replace(<str>, '<>')", "regex(<pattern>).replace(<str>, `[\\g<0>]`, <int>)", "regex(<pattern>).search(<str>)", "<str>.replaceBy(regex(<pattern>), $.value + str($.start))", "regex('(a)(b)?').replace(<str>, `<\\2\\1>`)", "<str>.norm()", "hex(<int>)",
		"<str>.replace({a => b, b => c})", "<!date>.format('%Y-%m-%d %H:%M')", "regex('[a-z]+').search(<str>)", "<nodes>.first().name", "<nodes>[0].status", "str(<date>)", "str(<span>)", "escapeRegex(<str>)",
		"<strs>.max()", "<strs>.min('x')", "<strs>.sum()", "<strs>.sum('')", "'abc'.replaceBy(regex('[ab]'), $.value.toUpper())", "<str>.toCharArray().join('.')", "str(<list>)", "str(<dict>)", "coalesce(null, <str>)", "<strs>.last('z')",
		"<str>.split(',').join('|')", "str(<bool>)",
	},
	"ints": {
		"[<int>, <int>, <int>]", "[<int>]", "[]", "<ints>.where(<bool@int>)", "<ints>.select(<int@int>)", "<ints>.take(<int>)", "<ints>.skip(<int>)", "<ints>.limit(<small>)", "<ints> + <ints>", "<ints>.orderBy($)",
		"<ints>.orderByDescending($)", "<ints>.orderBy(-$).thenBy($)", "<ints>.distinct()", "<ints>.distinct($ mod 2)", "<ints>.reverse()", "<ints>.append(<int>, <int>)", "range(<small>)", "range(<small>, <int>)", "range(0, <int>, 2)",
		"<ints>.toList()", "<ints> * <small>", "<ints>.insert(<int>, <int>)", "<ints>.insertMany(<int>, <ints>)", "<ints>.delete(<int>)", "<ints>.delete(<int>, <int>)", "<ints>.replace(<int>, <int>)", "<ints>.replaceMany(<int>, <ints>)",
		"<ints>.takeWhile(<bool@int>)", "<ints>.skipWhile(<bool@int>)", "<ints>.accumulate($1 + $2)", "<ints>.accumulate($1 + $2, <int>)", "<nodes>.ram", "<nodes>.select($.ram)", "<strs>.select(len($))", "list(<ints>, <int>)", "<ints>.memorize()",
		"flatten([<ints>, <int>])", "[<ints>, [<int>]].flatten()", "<dict>.values()", "<ints>.selectMany([$, <int@int>])", "<ints>.concat(<ints>)", "<ints>.defaultIfEmpty([<int>])", "sequence(<int>).take(<small>)", "<ints>.filter(<bool@int>)",
		"generate(<int>, $ < 20, $ + 3)", "generateMany(<small>, switch($ < 3 => [$ + 1], true => []))", "<int>.repeat(<small>)", "<ints>.cycle().take(<small>)", "<ints>.zip(<ints>).select($[0] * $[1])", "<ints>.append()", "let($) -> <ints>",
		"<ints>.examine(<bool@int>)", "<ints>.assert(<bool@ints>)",
	},
	"iter": {"<ints>.where(<bool@int>)", "<strs>.select(<any@str>)", "<ints>.zip(<strs>)", "<ints>.enumerate()", "<strs>.enumerate(<int>)", "<ints>.zipLongest(<strs>)", "<ints>.zipLongest(<ints>, default => <int>)"},
	"strs": {
		"[<str>, <str>]", "[<str>]", "[a, b, c]", "<strs>.where(<bool@str>)", "<strs>.select(<str@str>)", "<str>.split(' ')", "<str>.split(<str>)", "<str>.split()", "<str>.split(',', 1)", "<str>.rightSplit(<str>, 1)", "<nodes>.name",
		"<nodes>.select($.status)", "<strs>.orderBy($)", "<strs>.orderBy(len($)).thenByDescending($)", "<strs>.distinct()", "<nodes>.selectMany($.roles)", "<str>.toCharArray()", "regex('[a-z]').searchAll(<str>)", "regex(<pattern>).searchAll(<str>)", "regex(<pattern>).split(<str>)", "<str>.split(regex(<pattern>), <small>)", "regex(<pattern>).searchAll(<str>, str([$.start, $.end, $2.value]))", "regex(',|;').split(<str>)",
		"<strs>.reverse()", "<strs> + <strs>", "<nodes>.where($.status = ready).name", "<strs>.append(<str>)", "<ints>.select(str($))", "<strs>.insert(<small>, <str>)", "<strs>.take(<small>)", "<strs>.toList()", "<nodes>.roles.flatten()", "<dict>.keys().orderBy($)",
	},
	"list": {
		"<ints>", "<strs>", "[<any>, <any>]", "<nodes>.select([$.name, $.ram])", "<nodes>.groupBy($.status)", "<nodes>.groupBy($.status, $.name)", "<nodes>.groupBy($.status, $.ram, $.sum())", "<ints>.zip(<strs>)", "<ints>.enumerate()",
		"<ints>.slice(<small>)", "<ints>.splitAt(<int>)", "<ints>.splitWhere(<bool@int>)", "<ints>.sliceWhere(<bool@int>)", "<nodes>.orderBy($.ram)", "<ints>.join(<ints>, $1 < $2, [$1, $2])", "<ints>.join(<strs>, <bool@int,str>, <any@int,str>)", "<ints>.groupBy($ mod 2)",
		"<ints>.groupBy(<any@int>, <int@int>)", "<list>.toList()", "<list>.append(<any>)", "<mixed>.select(<any@any>)", "<mixed>.where(<bool@any>)", "<mixed>.orderBy($)", "<mixed>.distinct()", "<ints>.groupBy($ mod 3, $, [$[0], $[1].sum()])", "<list>.select(<any@any>)",
		"<ints>.mergeWith(<ints>)", "<nodes>.select({n => $.name, r => $.roles.len()})", "list(<any>, <any>)", "<list>.flatten()", "<ints>.select([$, <any@int>])", "selectAllCases(<bool>, <bool>, true)", "<ints>.accumulate([$1, $2])",
		"regex('(a)|(b)').split(<str>)", "<dict>.items().orderBy($[0])",
	},
	"dict": {
		"{a => <int>, b => <int>}", "{<str> => <any>}", "dict(a => <int>, b => <int>)", "dict([[<str>, <int>], [b, <int>]])", "<strs>.toDict($, len($))", "<nodes>.toDict($.uid, $.ram)", "<dict> + <dict>", "<dict>.set(<str>, <int>)", "<dict>.set(a => <int>)",
		"<dict>.set({c => <int>})", "<dict>.delete(<str>)", "<dict>.deleteAll([<str>])", "<dict>.mergeWith({a => <int>, z => <any>})", "<dict>.mergeWith(<dict>, maxLevels => 1)", "<nodes>.first()", "<ints>.toDict($)", "{}", "<dict>.mergeWith({a => <int>}, null, $1 + $2)",
		"<dict>.items().where($[1] != <int>).toDict($[0], $[1])", "<nodes>.select([$.uid, $.roles]).toDict($[0], $[1])", "{<int> => <int>, <bool> => <str>}", "<dict>.insert(a, <int>)",
	},
	"set":  {"set(<int>, <int>)", "<ints>.toSet()", "<set> + <set>", "<set> - <set>", "<set>.union(<set>)", "<set>.intersect(<set>)", "<set>.difference(<set>)", "<set>.symmetricDifference(<set>)", "set()", "<set>.add(<int>)", "<set>.remove(<int>)", "{a => 1}.keys()", "toSet(<ints>)", "<ints>.select($ mod 3).toSet()"},
	"span": {"timespan(hours => <int>)", "timespan(days => <int>, minutes => <int>)", "<span> + <span>", "<span> - <span>", "<span> * <num>", "<span> / <num>", "-<span>", "<date> - <date>", "timespan(seconds => <int>)", "<date>.time", "timespan()", "<date>.offset"},
	"date": {
		"datetime(2020, 1, 1)", "datetime(<int>, 2, <int>)", "<date> + <span>", "<date> - <span>", "<date>.date", "<date>.replace(month => <int>)", "datetime(<int>)", "datetime(<float>)", "datetime('2015-09-29T12:30:15+03:00')", "<date>.utc",
		"datetime(2019, 12, 31, 23, 59, 59, 5, timespan(hours => <small>))", "datetime('2020-02-29', '%Y-%m-%d')", "datetime(<str>)", "datetime(<str>, '%Y-%m-%d')", "datetime(<str>, '%H:%M')",
	},
	"nodes": {"<nodes>.where(<bool@node>)", "<nodes>.orderBy($.ram)", "<nodes>.orderByDescending($.status)", "<nodes>.take(<small>)", "<nodes>.skip(1)", "<nodes>.reverse()", "<nodes>.orderBy($.status).thenBy($.ram)", "<nodes>.where($.ram > <int>)", "<nodes>.where(ready = $.status)", "<nodes>.where($.get(nothing) = null)", "<nodes>.where(cinder in $.roles)"},
	"mixed": {"[<any>, <any>, <any>]", "[null, <int>, <bool>]", "[<int>, <float>, <int>]"},
	"any":   {"<int>", "<float>", "<bool>", "<str>", "<list>", "<dict>", "<set>", "null", "<span>", "<date>", "<iter>", "<nodes>", "<ints>", "<strs>", "switch(<bool> => <any>, <bool> => <any>)", "coalesce(<any>, <any>)", "<any>?.len()", "let(x => <any>) -> [$x, $x]", "<dict>[<any>]", "<any>.nothing", "examine(<any>)", "regex(`a|b`)", "<any>[<any>]", "call(len, [<any>], {})", "<any>.len()", "<any>.select($)", "<any> + <any>", "<any> * <any>"},
}

// delegateWays and legacyWays are those that only engines with these options know.
var (
	delegateWays = map[string][]string{
		"int":  {"lambda(<int@int>)(<int>)", "let(f => lambda(<int@int>)) -> $f(<int>)", "lambda($1 + $2)(<int>, <int>)", "1 + lambda($)(<int>)", "let(f => lambda($ * 2)) -> ($f(<int>) + <int>)"},
		"ints": {"<ints>.select(lambda(<int@int>)($))", "let(f => lambda($ > 1)) -> <ints>.where($f($))", "def(f, lambda($ + 1)) -> <ints>.select(f()($))"},
		"any":  {"lambda(<any>)", "<any>(<any>)", "lambda(<any@int>)(<any>)", "<str>(<int>)"},
		"bool": {"not lambda($)(<bool>)", "lambda(<bool@str>)(<str>)"},
	}
	legacyWays = map[string][]string{
		"int":   {"<ints>[<int>]", "<ints>.sum()", "sum(<ints>)", "int(<str>)", "<str>.int()", "switch(<int>, $ > 1 => <int>, true => <int>)", "<ints>.as(sum($) => s) -> $s", "get(<dict>, a)", "<dict>.get(b, <int>)", "<dict>.nothing"},
		"ints":  {"<ints>[<bool@int>]", "<ints>[$ > <int>]", "where(<ints>, <bool@int>)", "select(<ints>, <int@int>)", "range(<int>).take(3)", "range(<int>, <int>)", "<ints>.takeWhile($ < 3)", "takeWhile(<ints>, $ < 3)", "list(<ints>)", "<ints>.list()", "<ints>.toList()"},
		"nodes": {"<nodes>[$.ram > <int>]", "<nodes>[$.status = ready]", "where(<nodes>, <bool@node>)"},
		"dict":  {"<dict>[$ = a]", "{a => <int>, b => <str>}", "dict(a => <int>)", "{(<str> => <int>)}", "dict((a => 1), (b => <int>))"},
		"list":  {"<any> => <any>", "<int> => <int> => <str>", "(<int> => <int>) => <str>", "tuple(<int>, <any>)", "[<any> => <any>]", "join(<ints>, <ints>, $1 < $2, [$1, $2])", "<ints>.select($ => $ * 2)", "<any>[<any>]"},
		"float": {"<int>.float()", "float(<str>)"}, "bool": {"bool(<any>)", "<any>.bool()", "a in <dict>"}, "strs": {"<nodes>[$.ram > 0].name", "<dict>.keys().orderBy($)"},
	}
)

// constants are what ends a branch.
var constants = map[string][]string{
	"int": {"0", "1", "2", "-3", "7", "10", "100"}, "big": {"12345678901234567890", "-9223372036854775809"}, "float": {"0.5", "1.0", "2.25", "-1.5", "0.1"}, "num": {"1", "2.5"}, "bool": {"true", "false"},
	"str": {"''", "a", "abc", "'x y'", `"it's"`, "'é'", "'a,b'", "'12'", "`a\\b`", "'ab ab'", "'Straße İ ΑΣ'", "'\\t a\\n'", "'1_000'", "' -12 '", "'1e5'", "'٣'", "'2015-09-29'", "'12:30'", "'nan'", "'\u00a0x\u2003'", "'ab\\nba'"}, "pattern": {
		"'a'", "`^a`", "`b$`", "`(a)(b)?`", "`[a-c]+`", "`\\s+`", "`\\w*`", "`x*`", "`(?P<n>\\d)`", "`(?i)STRASSE|ß`", "`(?<=a)b`", "`a(?!b)`", "`(\\w)\\1`", "`,|;| `", "`\\bn`", "`.`", "`a|`", "'('", "`a{1,2}`", "`[^a]`", "`\\p`",
	}, "ints": {"[1, 2, 3]", "[]", "[3, 1, 2, 1]"}, "strs": {"[a, b]", "['x y', '']", "[]"}, "list": {"[]", "[1, a]", "[[1, 2], [3]]"},
	"dict": {"{}", "{a => 1}", "{a => 1, b => 2}", "{a => {b => 1}}"}, "set": {"set()", "set(1, 2)"}, "span": {"timespan()", "timespan(hours => 1)"}, "date": {"datetime(2020, 2, 29)", "datetime(0)"}, "nodes": {"[]"}, "mixed": {"[1, a, null]"},
	"any": {"null", "1", "a", "true", "[]", "0.5"}, "iter": {"[1].where(true)"},
}

// members are the values of each kind that a document has below $.
var members = map[string]map[string][]string{
	"doc":  {"int": {"$.n", "$.d.a"}, "float": {"$.f"}, "str": {"$.s", "$.d2.name"}, "ints": {"$.xs"}, "strs": {"$.names"}, "dict": {"$.d", "$.d2"}, "nodes": {"$.nodes"}, "mixed": {"$.mixed"}, "list": {"$.nested"}, "bool": {"$.flag"}},
	"node": {"int": {"$.ram"}, "str": {"$.name", "$.status", "$.uid"}, "strs": {"$.roles"}, "dict": {"$"}, "bool": {"$.up"}},
}

var kinds = []string{"int", "float", "bool", "str", "ints", "strs", "list", "dict", "set", "span", "date", "any", "nodes", "iter"}

// generator makes random expressions.
type generator struct {
	*rand.Rand

	delegates, legacy bool // the expressions are for an engine with these options
}

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

// expression makes one of a kind, in which $ (and $1, $2) are of the kinds of scope.
func (g generator) expression(kind string, scope []string, depth int) string {
	if g.IntN(30) == 0 {
		kind = pick(g, kinds) // the wrong kind of value, now and then
	}
	if depth <= 0 || g.IntN(5) == 0 {
		return g.leaf(kind, scope)
	}
	if kind == "any" && g.IntN(2) == 0 {
		return g.call(scope, depth-1)
	}
	ways := grammar[kind]
	if g.delegates && g.IntN(3) == 0 && len(delegateWays[kind]) > 0 {
		ways = delegateWays[kind]
	}
	if g.legacy && g.IntN(3) == 0 && len(legacyWays[kind]) > 0 {
		ways = legacyWays[kind]
	}
	if len(ways) == 0 {
		return g.leaf(kind, scope)
	}
	return g.fill(pick(g, ways), scope, depth-1)
}

// names are what functions and methods are called, with the names of their parameters. Those that depend on the time, on
// chance, or on the order of sets are left out.
var names = func() []string {
	engine, err := yaql.New()
	if err != nil {
		panic(err)
	}
	var all []string
	for _, f := range engine.Functions() {
		if !strings.ContainsAny(f.Name(), "#*") && !slices.Contains([]string{"now", "random", "localtz", "characters", "call", "def", "format"}, f.Name()) {
			all = append(all, f.Name())
		}
	}
	return all
}()

// call makes a call of any function or method with any arguments, few of which will fit.
func (g generator) call(scope []string, depth int) string {
	var arguments []string
	for range g.IntN(4) {
		argument := g.expression(pick(g, kinds), scope, depth)
		if g.IntN(6) == 0 {
			argument = pick(g, []string{"start", "count", "predicate", "position", "selector", "a", "length", "default", "maxSplits"}) + " => " + argument
		}
		arguments = append(arguments, argument)
	}
	text := pick(g, names) + "(" + strings.Join(arguments, ", ") + ")"
	if g.IntN(3) > 0 {
		return "(" + g.expression(pick(g, kinds), scope, depth) + ")." + text
	}
	return text
}

func (g generator) leaf(kind string, scope []string) string {
	var choices []string
	for i, k := range scope {
		if k == kind || kind == "any" {
			choices = append(choices, []string{"$", "$2"}[i])
		}
	}
	choices = append(choices, members[scope[0]][kind]...)
	if len(choices) > 0 && g.IntN(3) > 0 {
		return pick(g, choices)
	}
	if from := constants[kind]; len(from) > 0 {
		return pick(g, from)
	}
	return "null"
}

// fill replaces the holes of a way.
func (g generator) fill(way string, scope []string, depth int) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(way, "<")
		end := strings.IndexByte(rest, '>')
		if !found || end <= 0 || strings.ContainsAny(rest[:end], " =`\\") {
			out.WriteString(before)
			if !found {
				return out.String()
			}
			out.WriteByte('<')
			way = rest
			continue
		}
		out.WriteString(before)
		kind, inner, scoped := strings.Cut(rest[:end], "@")
		exact := strings.HasPrefix(kind, "!")
		if kind = strings.TrimPrefix(kind, "!"); exact {
			out.WriteString(pick(g, constants[kind]))
			way = rest[end+1:]
			continue
		}
		holeScope := scope
		if scoped {
			holeScope = strings.Split(inner, ",")
		}
		out.WriteString(g.operand(kind, holeScope, depth, before, rest[end+1:]))
		way = rest[end+1:]
	}
}

// operand parenthesises an expression that stands beside an operator or before a dot.
func (g generator) operand(kind string, scope []string, depth int, before, after string) string {
	text := g.expression(kind, scope, depth)
	simple := !strings.ContainsAny(text, " +-")
	enclosed := (before == "" || strings.HasSuffix(before, "(") || strings.HasSuffix(before, ", ") || strings.HasSuffix(before, "[") || strings.HasSuffix(before, "=> ")) &&
		(after == "" || strings.HasPrefix(after, ")") || strings.HasPrefix(after, ",") || strings.HasPrefix(after, "]") || strings.HasPrefix(after, "}"))
	if simple || enclosed || g.IntN(20) == 0 {
		return text
	}
	return "(" + text + ")"
}

// pieces are what a slip of the pen may put into an expression.
var pieces = []string{
	" ", "(", ")", "[", "]", "{", "}", ",", ",,", "=>", "->", ".", "?.", "+", "-", "*", "/", "<=", "=~", "!", "=", ":", "$", "$1", "a", "not ", " and ", " or", " in ", " mod ", "'", `"`, "`", "\\",
	"1", "1.5", ".5", "1e5", "007", "é", "_", "__x", "x__", "f(", "true", "null", "True", "\n", "'\\n'", `"\x41"`, "'\\u00e9'", "'\\xzz'", "'\\400'", "'\\N{DIGIT ONE}'", "`\\``", "٣", "->$", "#", "%", "&", "\u00a0", "\t",
}

// slip puts pieces into an expression, takes some out, or leaves it as it is.
func (g generator) slip(text string) string {
	for range g.IntN(3) {
		runes := []rune(text)
		at := g.IntN(len(runes) + 1)
		end := min(len(runes), at+g.IntN(3))
		piece := ""
		if g.IntN(3) > 0 {
			piece = pick(g, pieces)
		}
		text = string(runes[:at]) + piece + string(runes[end:])
	}
	return text
}

// document makes random data in the shape that members describes.
func (g generator) document() map[string]any {
	words := []string{"a", "b", "abc", "node", "x y", "", "é", "a,b", "12", "Straße"}
	ints := func(n int) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = g.IntN(12) - 2
		}
		return out
	}
	texts := func(n int) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = pick(g, words)
		}
		return out
	}
	nodes := make([]any, g.IntN(5))
	for i := range nodes {
		nodes[i] = map[string]any{
			"uid": strconv.Itoa(i), "name": fmt.Sprintf("node-%d", i), "status": pick(g, []string{"ready", "error", "new"}), "ram": 512 * g.IntN(4),
			"roles": []any{pick(g, []string{"controller", "compute"}), "cinder"}[:1+g.IntN(2)], "up": g.IntN(2) == 0,
		}
	}
	return map[string]any{
		"n": g.IntN(20) - 5, "f": float64(g.IntN(40))/4 + 0.25, "s": pick(g, words), "xs": ints(g.IntN(6)), "names": texts(g.IntN(5)), "flag": g.IntN(2) == 0,
		"d": map[string]any{"a": g.IntN(10), "b": g.IntN(10)}, "d2": map[string]any{"name": pick(g, words), "a": ints(2)}, "nodes": nodes,
		"mixed": []any{nil, g.IntN(5), pick(g, words), true, 1.5, ints(2)}[:g.IntN(7)], "nested": []any{ints(2), ints(1), texts(2)},
	}
}
