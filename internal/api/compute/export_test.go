package compute

import "github.com/drover-project/drover/internal/intake"

// Bodies are the tables of the keys of requests, by what is asked.
var Bodies = map[string]intake.Object{"creation": bodyOfCreation, "update": bodyOfUpdate, "metadata": bodyOfMetadata, "item": bodyOfItem, "tags": bodyOfTags}

// Arguments are those that actions have.
func Arguments() map[string]intake.Object {
	out := map[string]intake.Object{}
	for name, a := range actions {
		out[name] = a.arguments
	}
	return out
}
