package compute

import (
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
)

// ActName is the word of the history for what is done to servers.
func ActName(do server.Do) string { return actNames[do] }

// Tasks are all that can be done to servers and lasts.
func Tasks() (all []server.Do) {
	for do := range taskStates {
		all = append(all, do)
	}
	return all
}

// Bodies are the tables of the keys of requests, by what is asked.
var Bodies = map[string]intake.Object{"creation": bodyOfCreation, "update": bodyOfUpdate, "metadata": bodyOfMetadata, "item": bodyOfItem, "tags": bodyOfTags, "rebuild": bodyOfRebuild}

// Arguments are those that actions have.
func Arguments() map[string]intake.Object {
	out := map[string]intake.Object{}
	for name, a := range actions {
		out[name] = a.arguments
	}
	return out
}
