package identity

import "github.com/drover-project/drover/internal/intake"

// Bodies are the tables of the keys of requests, by their outer key.
var Bodies = map[string]intake.Object{"project": bodyOfProject, "user": bodyOfUser, "application_credential": bodyOfCredential}
