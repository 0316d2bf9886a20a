package rapi

import (
	"strings"

	"github.com/drover-project/drover/internal/rights"
)

// handler answers one method of one resource.
type handler struct {
	// needs is what is needed of who asks. Where reading needs no right, that is still an account if authentication is required.
	needs rights.Right
	// body is how large a body may be, in bytes; 0 for a handler that looks at
	// none. Those that are open have none: see the tests.
	body int64
	// stored: a controller that does not lead can answer from what is stored, or
	// serve returns live.ErrLed there.
	stored bool
	// meant: the query string may have the UUID of the instance that is meant. Else it is refused: who gives it relies on it.
	meant bool
	// serve returns what is sent as JSON.
	serve func(*request) (any, error)
}

// route is a path of the interface. A segment in braces stands for any text:
// {id} and {disk} for digits, others for a name.
type route struct {
	path    string
	methods map[string]handler
}

// router finds routes by the number of segments of their paths.
type router map[int][]compiled

type compiled struct {
	segments []segment
	methods  map[string]handler
}

// segment is a part of a path: a text, or any text that fits a variable.
type segment struct {
	text       string // of a variable its name
	isVariable bool
}

func newRouter(routes []route) router {
	r := router{}
	for _, x := range routes {
		c := compiled{methods: x.methods}
		for _, text := range strings.Split(x.path, "/")[1:] {
			name, isVariable := strings.CutPrefix(text, "{")
			c.segments = append(c.segments, segment{strings.TrimSuffix(name, "}"), isVariable})
		}
		r[len(c.segments)] = append(r[len(c.segments)], c)
	}
	return r
}

// find returns the methods of a path, nil if there is no such path, and what
// stands in the place of the segments in braces. The path is not decoded:
// names are made of letters, digits, "_", "." and "-".
func (r router) find(path string) (map[string]handler, map[string]string) {
	if !strings.HasPrefix(path, "/") {
		return nil, nil
	}
	segments := strings.Split(path, "/")[1:]
	for _, c := range r[len(segments)] {
		if c.matches(segments) {
			return c.methods, c.variables(segments)
		}
	}
	return nil, nil
}

func (c *compiled) matches(segments []string) bool {
	for i, want := range c.segments {
		if want.isVariable && !fits(want.text, segments[i]) || !want.isVariable && want.text != segments[i] {
			return false
		}
	}
	return true
}

// variables returns what stands for the variables; nil if there are none.
func (c *compiled) variables(segments []string) (variables map[string]string) {
	for i, s := range c.segments {
		if s.isVariable && variables == nil {
			variables = map[string]string{}
		}
		if s.isVariable {
			variables[s.text] = segments[i]
		}
	}
	return variables
}

func fits(variable, text string) bool {
	digitsOnly := variable == "id" || variable == "disk"
	for i := range len(text) {
		c := text[i]
		digit := c >= '0' && c <= '9'
		word := digit || c == '_' || c == '.' || c == '-' || (c|0x20 >= 'a' && c|0x20 <= 'z')
		if !word || (digitsOnly && !digit) {
			return false
		}
	}
	return text != ""
}
