package graph

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/deploy/document"
)

// Rule is something that Lint looks for.
type Rule struct {
	Name string
	// Error: a graph with it is refused, or what has it fails wherever a deployment comes to it. All others are probably not meant.
	Error bool
	// Text says what is found, in a sentence.
	Text string
}

// The names of rules.
const (
	ruleYAML       = "yaml"
	ruleForm       = "form"
	ruleExpression = "expression"
	ruleTwice      = "twice"
	ruleCircle     = "circle"
	ruleFunction   = "unknown-function"
	ruleMethod     = "unknown-method"
	ruleArguments  = "arguments"
	ruleCondition  = "condition"
	ruleParameter  = "missing-parameter"
	ruleKey        = "repeated-key"
	ruleField      = "unknown-field"
	ruleNoEffect   = "no-effect"
	ruleStar       = "star"
	ruleDangling   = "unknown-task"
	ruleRole       = "unknown-role"
	ruleConstant   = "constant"
	ruleDollar     = "dollar"
	ruleComputed   = "yaql-exp"
	ruleNobody     = "nobody"
)

// Rules are all that Lint looks for, the errors first.
var Rules = []Rule{
	{ruleYAML, true, "A file cannot be read: it is no YAML or JSON, or it is too large."},
	{ruleForm, true, "Something has not the form that the schema of task graphs asks for (drover deploy schema)."},
	{ruleExpression, true, "An expression cannot be read."},
	{ruleTwice, true, "A file holds a task twice, or a task a field under two names."},
	{ruleCircle, true, "Tasks wait for one another in a circle."},
	{ruleFunction, true, "An expression calls a function that there is not."},
	{ruleMethod, true, "An expression calls a method that there is not."},
	{ruleArguments, true, "A function or method is called with arguments that it does not take: too many, too few, or others."},
	{ruleCondition, true, "A condition of the old language cannot be read."},
	{ruleParameter, true, "A task of a type that nodes know by themselves lacks a parameter that the type needs."},
	{ruleKey, false, "A map holds a key twice, of which the last one counts."},
	{ruleField, false, "A task has a field that means nothing."},
	{ruleNoEffect, false, "Something is kept that has no effect."},
	{ruleStar, false, "A star stands where it means no node."},
	{ruleDangling, false, "A relation names a task that the graph lacks."},
	{ruleRole, false, "A task is for a role that no node and no group has; needs an environment."},
	{ruleConstant, false, "A word or text stands where the constant of that name is likely to be meant, such as False for false."},
	{ruleDollar, false, "A condition of the old language holds a $, which means something in expressions alone."},
	{ruleComputed, false, "A key is almost yaql_exp."},
	{ruleNobody, false, "A task is for no role, tag or group, so that no node runs it."},
}

// refusal is what a graph is refused for.
type refusal struct {
	rule string
	at   document.Position
	err  error
}

func refused(rule string, at document.Position, err error) *refusal { return &refusal{rule, at, err} }

// finding is the refusal as people read it: its place by itself.
func (r *refusal) finding() Finding {
	return Finding{Rule: r.rule, Position: r.at, Message: strings.Replace(r.err.Error(), r.at.String()+": ", "", 1)}
}

// placed is the place that an error of a document tells in its text.
func placed(file string, err error) document.Position {
	at := document.Position{File: file}
	rest, found := strings.CutPrefix(err.Error(), file+":")
	for _, n := range []*int{&at.Line, &at.Column} {
		number, more, colon := strings.Cut(rest, ":")
		i, e := strconv.Atoi(number)
		if !found || !colon || e != nil {
			break
		}
		*n, rest = i, more
	}
	return at
}

// field describes a field for messages.
func field(task, name string) string { return fmt.Sprintf("task %s: field %s", task, name) }
