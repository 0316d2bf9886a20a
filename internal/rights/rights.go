// Package rights decides who may do what, for every surface of a controller: may this account do that to this. A surface finds out
// who asks, has a column of its table say what a request needs, and translates the answer.
//
//	surface                        who asks                                        what is needed of them
//	LUXI                           who reaches the socket: Operator                nothing more
//	RAPI, its watches              a line of the users file: Listed                needs of handler (api/rapi/resources.go)
//	the page                       a line of the users file; by a link Operator    needs of request (api/web/requests.go)
//	Compute, Image                 the token's user and project: InProject         needs of route (api/compute/routes.go), and the project
//	Identity                       the same; over the socket Operator              needs of route (api/identity/routes.go), and the user
//	consoles                       the token that the ticket was made with         Change, and the project
//
// An account is what it is at the moment of the question, so nobody keeps one: who is asked again finds out again who asks.
//
// Invariants:
//   - What names no right is for nobody (TestTheTable): a row of a surface's table that was forgotten lets nobody in.
//   - A word that means nothing gives nothing, also beside words that mean something (TestTheTable).
//   - What is of another project or user is not there, whatever the account may do (TestTheTable).
//   - A right that was taken away is gone on every surface at the next request, and of what is open when it is next looked at
//     (app.TestARightTakenAwayIsGone, remoteconsole.TestWhoMayNoLonger, rapi.TestWatchEndsWithItsAccount, web.TestSessionsEnd, compute.TestWhoMayStill).
package rights

import "slices"

// Right is what something needs of whoever asks for it. The zero value is no right, and nobody has it.
type Right uint8

// The rights.
const (
	_ Right = iota
	// None is needed of nobody: whoever asks may.
	None
	// Known is needed where all who show who they are may.
	Known
	// Look is for seeing what there is.
	Look
	// Change is for having something done.
	Change
	// Administer is for keeping the accounts of the Compute API.
	Administer
)

// The words of RAPI's users file, and the roles of the Compute API.
const (
	Read  = "read"
	Write = "write"

	Reader = "reader"
	Member = "member"
	Admin  = "admin"
)

// The rights that words give.
var (
	listed = map[string][]Right{Read: {Look}, Write: {Look, Change}}
	roles  = map[string][]Right{Reader: {Look}, Member: {Look, Change}, Admin: {Look, Change, Administer}}
)

// IsListed tells whether a word of RAPI's users file gives a right.
func IsListed(word string) bool { return listed[word] != nil }

// Account is somebody who asks. The zero value is nobody: who has not shown who they are.
type Account struct {
	known bool
	has   []Right
	// everywhere: in all projects. Else it is in one, if in any.
	everywhere    bool
	user, project string
}

// Operator is who reaches the controller's socket: such a one may do everything.
func Operator() Account {
	return Account{known: true, everywhere: true, has: []Right{Look, Change, Administer}}
}

// Listed is an account of RAPI's users file, with its words.
func Listed(words []string) Account {
	return Account{known: true, everywhere: true, has: given(listed, words)}
}

// InProject is a user of the Compute API with roles in a project; without a project there are no roles.
func InProject(user, project string, has []string) Account {
	return Account{known: true, has: given(roles, has), user: user, project: project}
}

func given(by map[string][]Right, words []string) (all []Right) {
	for _, word := range words {
		all = append(all, by[word]...)
	}
	return all
}

// Of tells whose something is. The zero value is the cluster's, which is everybody's.
type Of struct {
	// Project is the id of the only one whose users may know of it.
	Project string
	// User is the id of the only one who may know of it: operators may not either.
	User string
}

// Answer is whether somebody may do something.
type Answer uint8

// The answers.
const (
	// Refused: the account has not the right.
	Refused Answer = iota
	// Unknown: who asks has to show first who they are.
	Unknown
	// NotThere: what is asked for is somebody else's, so this account is not to know that there is such a thing.
	NotThere
	// Allowed is the only answer on which anything is done.
	Allowed
)

// May answers whether the account may do something to what is somebody's.
func (a Account) May(do Right, of Of) Answer {
	switch {
	case do == None:
		return Allowed
	case !a.known:
		return Unknown
	case of.User != "" && of.User != a.user, of.Project != "" && of.Project != a.project && !a.everywhere:
		return NotThere
	case do == Known, slices.Contains(a.has, do):
		return Allowed
	}
	return Refused
}
