// Package pytext holds the rules of text that YAQL inherits from Python: how numbers and strings are
// written and read, what counts as white space, how case is changed, what an escape in a string
// literal means.
//
// Everything is a pure function of strings. Text is UTF-8; where Python would hold a lone surrogate,
// which UTF-8 cannot express, the replacement character U+FFFD stands in its place.
package pytext
