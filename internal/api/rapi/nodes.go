package rapi

import (
	"github.com/drover-project/drover/internal/query"
	"maps"
	"slices"
)

// roleNames are the roles of nodes by the letters of queries.
var roleNames = map[string]string{"M": "master", "C": "master-candidate", "D": "drained", "O": "offline", "R": "regular"}

func nodeRole(r *request) (any, error) {
	result, err := nodeItem.find(r, []string{"role"})
	if err != nil {
		return nil, err
	}
	row := make([]query.Cell, 1)
	result.Row(0, row)
	letter, _ := row[0].Value.(string)
	return roleNames[letter], nil
}

// roles are the flags that a node gets with a role.
var roles = map[string]parameters{
	"regular":          {"master_candidate": false, "offline": false, "drained": false},
	"master-candidate": {"master_candidate": true},
	"drained":          {"drained": true},
	"offline":          {"offline": true},
}

// roleFlags reads the role, which is the whole body: a JSON string.
func roleFlags(r *request, _ parameters) (parameters, error) {
	role, ok := r.body.(string)
	if !ok {
		return nil, badRequest("Body contents: Type is '%s', but 'str' is expected", typeName(r.body))
	}
	flags, ok := roles[role]
	if !ok {
		return nil, badRequest("Can't set '%s' role", role)
	}
	return flags, nil
}

// besideMode is what a body may say of a migration whose mode is in the query string: things about the job.
var besideMode = []string{"dry_run", "debug_level", "priority", "comment", "depends", "reason"}

// migrationMode serves old clients, which say in the query string how to
// migrate. The body says nothing of the migration then: the reference passes over what it does say.
func migrationMode(r *request, body parameters) (parameters, error) {
	if r.text("live") == "" && r.text("mode") == "" {
		return nil, nil
	}
	if r.text("live") != "" && r.text("mode") != "" {
		return nil, badRequest("Only one of 'live' and 'mode' should be passed")
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if !slices.Contains(besideMode, name) {
			return nil, badRequest("The body has the key '%s' beside 'mode' or 'live' in the query string: say all of it in the body", name)
		}
	}
	if mode := r.text("mode"); mode != "" {
		return parameters{"mode": mode}, nil
	}
	live, err := r.flag("live")
	if live {
		return parameters{"mode": "live"}, err
	}
	return parameters{"mode": "non-live"}, err
}

func storageFields(r *request, _ parameters) (parameters, error) {
	fields := splitFields(r.text("output_fields"))
	if fields == nil {
		return nil, badRequest("Missing the required 'output_fields' parameter")
	}
	return parameters{"nodes": []string{r.variables["name"]}, "output_fields": fields}, nil
}

func requireStorageName(r *request, _ parameters) (parameters, error) {
	if r.text("name") == "" {
		return nil, badRequest("Missing the required 'name' parameter")
	}
	return nil, nil
}

func storageChanges(r *request, body parameters) (parameters, error) {
	if _, err := requireStorageName(r, body); err != nil {
		return nil, err
	}
	changes := parameters{}
	if r.text("allocatable") != "" {
		on, err := r.flag("allocatable")
		if err != nil {
			return nil, err
		}
		changes["allocatable"] = on
	}
	return parameters{"changes": changes}, nil
}
