"""Answers expressions with the Python reference, for the differential test.

Reads lines {"expr", "data", "options"} and writes for each a line {"value"} or {"error": class}, in the encoding of
package yaqljson. Without options the engine has those of the library's own eval(). With {"parse": true} the value is
the syntax tree. What takes too long or too much memory, or makes a
text of an address, is answered with {"skip": true}.
"""
import collections.abc  # noqa: F401  yaql needs it loaded
import datetime
import json
import math
import re
import resource
import signal
import sys

import yaql
from yaql import legacy
from yaql.language import contexts, expressions, specs, utils
from yaql.standard_library import strings

ENGINES = {}
OPAQUE = re.compile(r' at 0x[0-9a-f]+>|dict_(keys|values|items)\(|\brepeat\(')
EPOCH = datetime.timedelta(microseconds=1)


def encode(v):
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        if math.isnan(v) or math.isinf(v):
            return {'$float': repr(v)}
        return v
    if isinstance(v, (list, tuple)):
        items = [encode(x) for x in v]
        return {'$tuple': items} if isinstance(v, tuple) else items
    if isinstance(v, (set, frozenset)):
        return {'$set': sorted((encode(x) for x in v), key=lambda x: json.dumps(x, sort_keys=True))}
    if isinstance(v, (dict, utils.FrozenDict)):
        if all(isinstance(k, str) and not k.startswith('$') for k in v):
            return {k: encode(x) for k, x in v.items()}
        return {'$dict': [[encode(k), encode(x)] for k, x in v.items()]}
    if isinstance(v, datetime.datetime):
        return {'$datetime': v.isoformat()}
    if isinstance(v, datetime.timedelta):
        return {'$timespan': v // EPOCH}
    if isinstance(v, re.Pattern):
        flags = [(re.I, 'ignoreCase'), (re.M, 'multiLine'), (re.S, 'dotAll')]
        return {'$regex': {'pattern': v.pattern, 'flags': [name for bit, name in flags if v.flags & bit]}}
    if isinstance(v, contexts.ContextBase):
        return {'$opaque': 'context'}
    if isinstance(v, complex):
        return {'$opaque': 'complex'}
    if v is utils.NO_VALUE:
        return {'$opaque': 'noValue'}
    return {'$opaque': 'function'}


class Skip(BaseException):
    pass


def give_up(*_):
    raise Skip


@specs.name('str')
@specs.parameter('value', nullable=True)
def checked_str(value):
    text = strings.str_(value)
    if OPAQUE.search(text):
        raise Skip  # the text of a lazy value is another one in each run
    return text


def engine_and_root(options):
    key = json.dumps(options, sort_keys=True)
    if key not in ENGINES:
        delegates = options.get('delegates', False)
        if options.get('legacy'):
            factory, create = legacy.YaqlFactory(allow_delegates=delegates), legacy.create_context
        else:
            sign = options.get('keywordOperator', '=>')
            factory, create = yaql.YaqlFactory(keyword_operator=sign, allow_delegates=delegates), yaql.create_context
        root = create(delegates=delegates, **options.get('context', {})).create_child_context()
        root.register_function(checked_str)
        ENGINES[key] = factory.create(options.get('engine')), root
    return ENGINES[key]


def tree(e):
    if e is utils.NO_VALUE:
        return ['skip']
    if isinstance(e, expressions.Statement):
        return tree(e.expression)
    if isinstance(e, expressions.BinaryOperator):
        return ['bin', e.operator] + [tree(x) for x in e.args]
    if isinstance(e, expressions.UnaryOperator):
        return ['un', e.operator] + [tree(x) for x in e.args]
    if isinstance(e, expressions.GetContextValue):
        return ['var', e.path.value]
    if isinstance(e, expressions.KeywordConstant):
        return ['kw', e.value]
    if isinstance(e, expressions.Constant):
        return ['const', encode(e.value)]
    if isinstance(e, expressions.Wrap):
        return ['wrap', tree(e.expr)]
    if isinstance(e, expressions.MappingRuleExpression):
        return ['map', tree(e.source), tree(e.destination)]
    kinds = {'#indexer': ['index'], '#list': ['list'], '#map': ['dict']}
    return kinds.get(e.name, ['call', e.name]) + [tree(x) for x in e.args]


def answer(request):
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        engine, root = engine_and_root(request.get('options') or {})
        parsed = engine(request['expr'])
        if request.get('parse'):
            return {'value': tree(parsed)}
        value = parsed.evaluate(data=request['data'], context=root.create_child_context())
        return {'value': encode(value)}
    except (Skip, MemoryError, RecursionError):
        return {'skip': True}
    except re.error:
        return {'error': 're.error'}
    except Exception as e:  # noqa: B902  every class is an answer
        return {'error': type(e).__name__}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


signal.signal(signal.SIGALRM, give_up)
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
