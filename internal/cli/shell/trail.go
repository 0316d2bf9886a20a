package shell

import (
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/reason"
)

// Trail returns the reason entries of this command: what the user gave as the
// reason, if anything, then the program and command that passed it on, for
// example ["gnt:client:gnt-instance", "shutdown"].
func (sh *Shell) Trail(noun string) reason.Trail {
	trail, now := sh.UserTrail(), sh.Now().UnixNano()
	program := "gnt:client:" + sh.Persona.Name
	if !sh.Classic() {
		program += "-" + noun
	}
	return trail.Append(reason.Entry{Source: program, Reason: sh.Verb, Time: now})
}

// ChosenBy adds to what trails say of this command how the items were chosen that it
// is about: whoever reads the trail of one of them learns what else was meant.
func (sh *Shell) ChosenBy(option, text string) {
	sh.Verb += " " + option
	if text != "" {
		sh.Verb += " " + Quoted(listing.Cut(text, longestChoice))
	}
}

// longestChoice is how much of a filter trails repeat, in letters.
const longestChoice = 1000

// Quoted is a text as shells take it for one word.
func Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// UserTrail holds the reason that the user gave, if any.
func (sh *Shell) UserTrail() reason.Trail {
	if sh.Flags.Reason == "" {
		return reason.Trail{}
	}
	return reason.Trail{{Source: reason.SourceUser, Reason: sh.Flags.Reason, Time: sh.Now().UnixNano()}}
}

// HopLine shows a hop of a trail.
func HopLine(e reason.Entry) string {
	text := e.Source
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return "    " + time.Unix(0, e.Time).Format(time.DateTime) + " " + text + "\n"
}
