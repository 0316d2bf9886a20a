package rapi

import (
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/rollout"
)

// deployResources are our own: environments, task graphs and deployments. How far a deployment is, tell its resource,
// and the changes of its jobs.
var deployResources = []route{
	{"/2/environments", methods{get: deploying(func(_ *request, e *rollout.Reader) (any, error) { return e.Environments(), nil })}},
	{"/2/environments/{name}", methods{
		get: deploying(getEnvironment, "show-secrets"),
		put: changing(queryBody, putEnvironment),
		del: changing(0, func(r *request, e *rollout.Engine) (any, error) {
			return nil, e.DeleteEnvironment(r.Context(), r.variables["name"], r.who())
		}),
	}},
	{"/2/environments/{name}/nodes/{uid}", methods{
		put: changing(queryBody, putNode),
		del: changing(0, func(r *request, e *rollout.Engine) (any, error) {
			return nil, e.DeleteNode(r.Context(), r.variables["name"], r.variables["uid"], r.who())
		}),
	}},
	{"/2/environments/{name}/nodes/{uid}/forget", methods{put: changing(0, func(r *request, e *rollout.Engine) (any, error) {
		return e.Forget(r.Context(), r.variables["name"], r.variables["uid"], r.who())
	})}},
	{"/2/task-graphs", methods{get: deploying(func(r *request, e *rollout.Reader) (any, error) { return e.Graphs(r.Context()) })}},
	{"/2/task-graphs/{name}", methods{
		get: deploying(func(r *request, e *rollout.Reader) (any, error) { return e.Graph(r.Context(), r.variables["name"]) }),
		put: changing(queryBody, putGraph),
		del: changing(0, func(r *request, e *rollout.Engine) (any, error) {
			return nil, e.DeleteGraph(r.Context(), r.variables["name"], r.who())
		}),
	}},
	{"/2/deployments", methods{
		get:  deploying(func(r *request, e *rollout.Reader) (any, error) { return e.Deployments(r.Context()) }),
		post: changing(opcodeBody, planDeployment),
	}},
	{"/2/deployments/{id}", methods{
		get: ofDeployment(func(r *request, e *rollout.Reader, id int64) (any, error) { return e.Progress(r.Context(), id) }),
		del: toDeployment(func(r *request, e *rollout.Engine, id int64) (any, error) {
			return e.Delete(r.Context(), []int64{id}, false, r.who())
		}),
	}},
	{"/2/deployments/{id}/tasks", methods{get: ofDeployment(func(r *request, e *rollout.Reader, id int64) (any, error) { return e.Tasks(r.Context(), id) })}},
	{"/2/deployments/{id}/outline", methods{get: ofDeployment(func(r *request, e *rollout.Reader, id int64) (any, error) { return e.Outline(r.Context(), id) })}},
	{"/2/deployments/{id}/tasks/{node}/{task}", methods{get: ofDeployment(func(r *request, e *rollout.Reader, id int64) (any, error) {
		return e.Explain(r.Context(), id, r.variables["task"], r.variables["node"])
	})}},
	{"/2/deployments/{id}/begin", methods{put: toDeployment(func(r *request, e *rollout.Engine, id int64) (any, error) { return e.Begin(r.Context(), id, r.who()) })}},
	{"/2/deployments/{id}/stop", methods{put: toDeployment(func(r *request, e *rollout.Engine, id int64) (any, error) { return e.Stop(r.Context(), id, r.who()) })}},
	{"/2/deployments/{id}/resume", methods{put: toDeployment(func(r *request, e *rollout.Engine, id int64) (any, error) {
		return e.Resume(r.Context(), id, false, r.who())
	})}},
	{"/2/deployments/{id}/retry", methods{put: toDeployment(func(r *request, e *rollout.Engine, id int64) (any, error) {
		return e.Resume(r.Context(), id, true, r.who())
	})}},
}

// deploying answers a question about deployments, of whoever has an account: what is deployed is for those who are in charge of it.
// Further parameters of the query string are named.
func deploying(f func(*request, *rollout.Reader) (any, error), parameters ...string) handler {
	return handler{needs: rights.Look, stored: true, serve: func(r *request) (any, error) {
		if err := r.aboutDeployments(parameters...); err != nil {
			return nil, err
		}
		return f(r, r.Querier.Deployments)
	}}
}

// changing carries out a change, with a body of at most so many bytes.
func changing(body int64, f func(*request, *rollout.Engine) (any, error)) handler {
	return handler{needs: rights.Change, body: body, serve: func(r *request) (any, error) {
		if err := r.aboutDeployments(); err != nil {
			return nil, err
		}
		return f(r, r.Rollout)
	}}
}

// aboutDeployments refuses parameters of the query string that mean nothing, dry-run among them: nothing here only checks.
func (r *request) aboutDeployments(parameters ...string) error {
	if err := r.checkParameters(append([]string{"reason"}, parameters...)...); err != nil {
		return err
	}
	if r.Querier.Deployments == nil {
		return fault.New(fault.NotFound, "this controller keeps no environments")
	}
	return nil
}

func withID[E any](f func(*request, E, int64) (any, error)) func(*request, E) (any, error) {
	return func(r *request, e E) (any, error) {
		id, err := job.ParseID(r.variables["id"]) // numbers of deployments look like those of jobs
		if err != nil {
			return nil, fault.New(fault.NotFound, "there is no deployment %s", r.variables["id"])
		}
		return f(r, e, int64(id))
	}
}

func ofDeployment(f func(*request, *rollout.Reader, int64) (any, error)) handler {
	return deploying(withID(f))
}

func toDeployment(f func(*request, *rollout.Engine, int64) (any, error)) handler {
	return changing(0, withID(f))
}

// into reads the body; what means nothing in it is refused.
func (r *request) into(x any) error {
	if err := intake.Read(r.rawBody, x); err != nil {
		return badRequest("The body cannot be read: %s", err)
	}
	return nil
}

// getEnvironment shows secrets to who may change them, and asks for it.
func getEnvironment(r *request, e *rollout.Reader) (any, error) {
	reveal, err := r.flag("show-secrets")
	switch {
	case err != nil:
		return nil, err
	case !reveal:
		return e.State(r.Context(), r.variables["name"])
	}
	if err := authorize(r.account, rights.Change); err != nil {
		return nil, err
	}
	if r.Rollout == nil { // that secrets were asked for is an event, which the one that leads writes
		return nil, live.ErrLed
	}
	return r.Rollout.Reveal(r.Context(), r.variables["name"], r.who())
}

// putEnvironment takes a file of YAML or JSON, with names of graphs; or the state itself, as it is shown.
func putEnvironment(r *request, e *rollout.Engine) (any, error) {
	var body struct {
		File   course.File `json:"file"`
		Graphs []string    `json:"graphs"`
	}
	if given, err := r.requiredObject(); err != nil {
		return nil, err
	} else if _, isFile := given["file"]; !isFile {
		body.File = course.File{Path: "body", Text: string(r.rawBody)}
	} else if err := r.into(&body); err != nil {
		return nil, err
	}
	return e.PutEnvironment(r.Context(), r.variables["name"], body.File, body.Graphs, r.who())
}

func putNode(r *request, e *rollout.Engine) (any, error) {
	var body struct {
		File course.File `json:"file"`
		Host string      `json:"host"`
	}
	if err := r.into(&body); err != nil {
		return nil, err
	}
	return e.PutNode(r.Context(), r.variables["name"], r.variables["uid"], body.File, body.Host, r.who())
}

func putGraph(r *request, e *rollout.Engine) (any, error) {
	var body struct {
		Files []course.File `json:"files"`
	}
	if err := r.into(&body); err != nil {
		return nil, err
	}
	return e.PutGraph(r.Context(), r.variables["name"], body.Files, r.who())
}

// planDeployment answers with the deployment, which is carried out by its resource begin.
func planDeployment(r *request, e *rollout.Engine) (any, error) {
	var wish rollout.Wish
	if err := r.into(&wish); err != nil {
		return nil, err
	}
	p, err := e.PlanAndTell(r.Context(), wish, r.who())
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"deployment": p.Deployment, "warnings": p.Warnings}
	if p.Drift != nil {
		answer["drift"] = p.Drift
	}
	return answer, nil
}
