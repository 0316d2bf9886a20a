package tagsync_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// TestEffectsComeAndGoWithTheirTags: a tag sets a backend parameter, another one
// puts a label on the instance, each by a job that says why, and both are taken
// back with their tags, also by a controller that was started since.
func TestEffectsComeAndGoWithTheirTags(t *testing.T) {
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil)), effects: []servertag.Effect{
		{Namespace: user, Tag: "stay", Parameter: "always_failover", Value: true},
		{Namespace: servertag.System, Tag: "smtp", Label: "firewall:smtp_open"}}}
	r.start()
	s := r.create("stay")
	if _, err := r.engine.Want(s.ID, servertag.System, []string{"smtp"}, r.asked()); err != nil {
		t.Fatal(err)
	}
	inForce := func(n int) func(*server.Server) bool {
		return func(s *server.Server) bool {
			return atRest(s) && len(s.Tags.Effects) == n && !slices.ContainsFunc(s.Tags.Effects, func(a servertag.Applied) bool { return !a.InForce })
		}
	}
	r.until(s.ID, "has both effects", inForce(2))
	inst := r.shown.Load().Inventory.InstanceNamed(s.Instance)
	if inst.BEParams["always_failover"] != true || !slices.Contains(inst.Tags, "firewall:smtp_open") {
		t.Errorf("the instance has %v and %q", inst.BEParams, inst.Tags)
	}
	if got := reasonsOf(r, "OP_INSTANCE_SET_PARAMS"); !strings.Contains(got, `apply parameter always_failover=true of tag "stay"`) || !strings.Contains(got, "req-7") {
		t.Errorf("the job's reason is %q", got)
	}
	r.stop()
	r.start()
	t.Cleanup(r.stop)
	for ns, name := range map[servertag.Namespace]string{user: "stay", servertag.System: "smtp"} {
		if _, err := r.engine.Unwant(s.ID, ns, name, r.asked()); err != nil {
			t.Fatal(err)
		}
	}
	r.until(s.ID, "has no effects", inForce(0))
	inst = r.shown.Load().Inventory.InstanceNamed(s.Instance)
	if _, set := inst.BEParams["always_failover"]; set || len(inst.Tags) != 0 {
		t.Errorf("afterwards the instance has %v and %q", inst.BEParams, inst.Tags)
	}
}

// reasonsOf are the reason trails of the jobs of an opcode.
func reasonsOf(r *rig, id string) string {
	r.Helper()
	var out []string
	for j := range r.queue.Jobs().All() {
		whole, err := r.queue.Wait(r.ctx, j.ID, (*job.Job).Final)
		r.check(err)
		if whole.Ops[0].Input.ID == id {
			out = append(out, whole.Ops[0].Input.Reason.Text())
			for _, e := range whole.Ops[0].Input.Reason {
				out = append(out, e.Reason)
			}
		}
	}
	return strings.Join(out, "; ")
}
