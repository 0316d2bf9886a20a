package cli

import "github.com/drover-project/drover/internal/reason"

// trail returns the reason entries of this command: what the user gave as the
// reason, if anything, then the program and command that passed it on, for
// example ["gnt:client:gnt-instance", "shutdown"].
func (sh *shell) trail(noun string) reason.Trail {
	trail, now := sh.userTrail(), sh.now().UnixNano()
	program := "gnt:client:" + sh.persona.name
	if !sh.persona.classic() {
		program += "-" + noun
	}
	return trail.Append(reason.Entry{Source: program, Reason: sh.verb, Time: now})
}

// userTrail holds the reason that the user gave, if any.
func (sh *shell) userTrail() reason.Trail {
	if sh.flags.reason == "" {
		return reason.Trail{}
	}
	return reason.Trail{{Source: reason.SourceUser, Reason: sh.flags.reason, Time: sh.now().UnixNano()}}
}
