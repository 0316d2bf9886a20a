// Package texts holds what Drover writes as YAML and JSON to what others read: a text that looks like something else (an answer, a time,
// a number, a key of the syntax) comes back as the text that it was, by our own reader, by one of YAML 1.2, and by Python's.
package texts
