// Package yaqljson carries YAQL's values in JSON, in both directions and without loss.
//
// JSON's own kinds stand for themselves; a number with a point or an exponent is a float, any other an
// integer of any size, and the order of an object's keys is kept. What JSON lacks is an object with one key:
//
//	{"$float": "nan"}                the floats nan, inf and -inf
//	{"$set": [1, 2]}                 a set, sorted by the JSON of its items
//	{"$tuple": [1, 2]}               a list that was not converted to a plain one
//	{"$dict": [[1, "a"]]}            a map with a key that is no string, or begins with a dollar sign
//	{"$datetime": "2015-09-29T00:00:00+00:00"}
//	{"$timespan": 1000000}           microseconds
//	{"$regex": {"pattern": "a", "flags": ["ignoreCase"]}}
//	{"$opaque": "context"}           what cannot be written: it has a kind only, and cannot be read back
package yaqljson
