package compute_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/upload"
)

// The roots of the flavours.
const (
	nova     = "/compute/v2.1"
	cyclades = "/compute/v2.0"
)

// cloud is a cluster in memory: its jobs end at once.
type cloud struct {
	mu        sync.Mutex
	changed   func(server.Ref)
	instances map[string]server.Sight
	jobs      map[string]job.ID // by key
	ended     map[job.ID]servertag.Outcome
	asked     []*opcode.Opcode // by the jobs, the newest last
	broken    string           // why no disk is installed; empty for one that is
	held      bool             // jobs are taken, and nobody hears of their end
}

// hold has the ends of jobs held back, or told.
func (c *cloud) hold(held bool) {
	c.mu.Lock()
	c.held = held
	changed := c.changed
	c.mu.Unlock()
	changed(server.Ref{})
}

func newCloud() *cloud {
	return &cloud{instances: map[string]server.Sight{}, jobs: map[string]job.ID{}, ended: map[job.ID]servertag.Outcome{}}
}

func (*cloud) Newest(context.Context) (job.ID, bool, error) { return 0, true, nil }

func (*cloud) Find(context.Context, job.ID, ...*opcode.Opcode) (job.ID, error) { return 0, nil }

func (c *cloud) Submit(_ context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, again := c.jobs[key]; again {
		return id, nil
	}
	id := job.ID(len(c.jobs) + 1)
	c.jobs[key], c.asked = id, append(c.asked, ops...)
	name := ops[0].Str("instance_name") + ops[0].Str("name")
	for _, op := range ops {
		if c.ended[id] = c.run(op, name); !c.ended[id].OK {
			break
		}
	}
	if c.changed != nil {
		go c.changed(server.Ref{Name: name})
	}
	return id, nil
}

func (c *cloud) run(op *opcode.Opcode, name string) servertag.Outcome {
	sight, there := c.instances[name]
	if !there && op.ID != "OP_INSTANCE_CREATE" {
		return servertag.Outcome{Text: "there is no instance " + name, Missing: true}
	}
	switch op.ID {
	case "OP_INSTANCE_CREATE":
		if fmt.Sprint(op.Map("beparams")["vcpus"]) == "2" { // m1.medium
			return servertag.Outcome{Text: "not enough memory", Final: true}
		}
		sight.Instance, sight.Name, sight.UUID, sight.Tags = true, name, testkit.NewUUID(), op.Strings("tags")
	case "OP_INSTANCE_REMOVE":
		delete(c.instances, name)
		return servertag.Outcome{OK: true}
	case "OP_INSTANCE_SHUTDOWN":
		sight.Stopped = true
	case "OP_INSTANCE_STARTUP":
		sight.Stopped = false
	case "OP_INSTANCE_REINSTALL":
		if c.broken != "" {
			return servertag.Outcome{Text: c.broken}
		}
	case "OP_TAGS_SET":
		sight.Tags = slices.Concat(sight.Tags, op.Strings("tags"))
	case "OP_TAGS_DEL":
		sight.Tags = slices.DeleteFunc(slices.Clone(sight.Tags), func(tag string) bool { return slices.Contains(op.Strings("tags"), tag) })
	}
	c.instances[name] = sight
	return servertag.Outcome{OK: true}
}

func (c *cloud) Creation(context.Context, string, *server.Server) (servertag.Outcome, bool, error) {
	return servertag.Outcome{}, false, nil
}

func (c *cloud) Look(_ context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sight := c.instances[instance.Name]
	sight.Ended = map[job.ID]servertag.Outcome{}
	for _, id := range jobs {
		if !c.held {
			sight.Ended[id] = c.ended[id]
		}
	}
	return sight, nil
}

func (c *cloud) Has(instance string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instances[instance].Instance
}

func (*cloud) Met() tagsync.Met { return tagsync.Met{} }

func (c *cloud) Follow(ctx context.Context, changed func(server.Ref)) error {
	c.mu.Lock()
	c.changed = changed
	c.mu.Unlock()
	changed(server.Ref{})
	<-ctx.Done()
	return nil
}

// newest is what the newest job asks for.
func (c *cloud) newest() *opcode.Opcode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[len(c.asked)-1]
}

// tagsOf are those of an instance.
func (c *cloud) tagsOf(instance string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.instances[instance].Tags)
}

// since tells what the jobs ask for behind so many of them, with these parameters, and how many there are.
func (c *cloud) since(before int, params ...string) (said string, now int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, op := range c.asked[before:] {
		text := op.ID
		for _, p := range params {
			if v, given := op.Params[p]; given {
				text += fmt.Sprint(" ", p, "=", v)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", "), len(c.asked)
}

// remove takes an instance away behind everybody's back.
func (c *cloud) remove(name string) {
	c.mu.Lock()
	delete(c.instances, name)
	changed := c.changed
	c.mu.Unlock()
	changed(server.Ref{Name: name})
}

// rig is the API over a real store and engine, and a cluster in memory.
type rig struct {
	*testing.T
	api      *compute.API
	accounts *identity.Service
	engine   *tagsync.Engine
	flavors  *flavor.Service
	quotas   *quota.Service
	uploads  *upload.Service
	// takenIn are the images that were uploaded and that the cluster has, refused why it takes none.
	takenIn sync.Map
	refused string
	// captures holds up the jobs that take disks of servers; nil for none.
	captures chan struct{}
	// group is the id of the server group that furnish has made.
	group string
	// noted are the events of changes.
	noted []audit.Event
	store *faultstore.Store
	shown *picture.Picture
	cloud *cloud
	clock struct {
		sync.Mutex
		ahead  time.Duration
		stands time.Time // zero while it goes
	}
	log *logged
	// kept is how many requests keep a project from being removed.
	kept atomic.Int64
	// consoles is why there are none, and granted the one that was asked for last.
	consoles error
	granted  console.Grant
	// printed is what each machine printed.
	printed string
	// waits is what jobs wait for.
	waits string
	// away: the identity service does not answer.
	away bool
	// anyProject: nobody knows which projects there are.
	anyProject bool
	// token is that of a member of the project home, root that of an administrator, where a test has made one.
	token, root string
	home        identity.Project
}

func (r *rig) now() time.Time {
	r.clock.Lock()
	defer r.clock.Unlock()
	if !r.clock.stands.IsZero() {
		return r.clock.stands
	}
	return time.Now().Add(r.clock.ahead)
}

func (r *rig) keep(project string) (func(), error) {
	release, err := r.accounts.Keep(project)
	if err != nil {
		return nil, err
	}
	r.kept.Add(1)
	return func() {
		r.kept.Add(-1)
		release()
	}, nil
}

// note is the log of events.
func (r *rig) note(_ *store.Tx, e audit.Event) *audit.Event {
	r.noted = append(r.noted, e)
	return &e
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// logged is a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	beneath, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	kept := faultstore.New(beneath)
	r := &rig{T: t, store: kept, shown: picture.New(), log: &logged{}, cloud: newCloud()}
	r.check(err)
	log := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, t.Output()), &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.accounts, err = identity.Open(t.Context(), identity.Config{Store: kept, Now: r.now, NewUUID: testkit.NewUUID, Log: log,
		Servers: func(project string) int { return r.engine.Owns(project) }})
	r.check(err)
	r.quotas, err = quota.Open(t.Context(), quota.Config{Store: kept, Picture: r.shown, Note: r.note, Log: log,
		Used: func(project string) quota.Limits {
			used := quota.Used(r.engine.Taken(project))
			used[quota.ServerGroups] = int64(len(r.engine.Groups(project)))
			return used
		}})
	r.check(err)
	r.engine, err = tagsync.Open(t.Context(), tagsync.Config{Store: kept, Picture: r.shown, Backends: map[string]tagsync.Backend{"": r.cloud, "far": newCloud()},
		Policy: servertag.DefaultPolicy(), Room: func(project string) server.Amount { return r.quotas.Of(project).Servers() }, Images: server.DefaultImages, Prefix: "snf-", Now: r.now, NewUUID: testkit.NewUUID, Log: log})
	r.check(err)
	r.engine.Run()
	t.Cleanup(func() {
		r.engine.Close()
		r.check(kept.Close())
	})
	keys, err := keypair.Open(t.Context(), keypair.Config{Store: kept, Now: r.now, Log: log})
	r.check(err)
	r.flavors, err = flavor.Open(t.Context(), flavor.Config{Store: kept, Picture: r.shown, Note: r.note, First: server.DefaultFlavors(), NewUUID: testkit.NewUUID, Log: log})
	r.check(err)
	r.uploads, err = upload.Open(t.Context(), upload.Config{Store: kept, Dir: t.TempDir(), Room: plenty, Now: func() job.Time { return job.At(r.now()) }, NewUUID: testkit.NewUUID, Log: log,
		Has: func(id string) bool { _, has := r.takenIn.Load(id); return has },
		Limits: func(project string) upload.Limits {
			images, bytes := r.quotas.Of(project).Images()
			return upload.Limits{Images: images, Bytes: bytes}
		},
		Told: func(of upload.Capture, failed string) error {
			_, err := r.engine.Change(of.Server, func(s *server.Server) (*server.Server, error) {
				return s.Captured(compute.CaptureOf(&of), of.Asked, job.At(r.now()), failed), nil
			})
			return err
		},
		Do: func(ctx context.Context, _ string, op *opcode.Opcode) (servertag.Outcome, error) {
			switch {
			case r.refused != "":
				return servertag.Outcome{Text: r.refused}, nil
			case op.ID == "OP_IMAGE_CAPTURE":
				if r.captures != nil {
					<-r.captures
				}
				return servertag.Outcome{OK: true}, r.uploads.TakeDisk(ctx, op.Str("image_name"), "raw", strings.NewReader(strings.Repeat("disk", 150)))
			case op.ID == "OP_IMAGE_ADD":
				r.takenIn.Store(op.Str("image_name"), op)
			default:
				r.takenIn.Delete(op.Str("image_name"))
			}
			return servertag.Outcome{OK: true}, nil
		}})
	r.check(err)
	r.uploads.Run()
	t.Cleanup(r.uploads.Close)
	r.api = compute.New(compute.Config{Engine: r.engine, Uploads: r.uploads, Flavors: r.flavors, Keys: keys, Quotas: r.quotas, Keep: r.keep, Now: r.now, Log: log,
		HasProject: func(id string) bool {
			p, err := r.accounts.FindProject(id)
			return r.anyProject || err == nil && p.ID == id
		},
		Session: func(_ context.Context, token string) (*identity.Session, error) {
			if r.away {
				return nil, fault.New(fault.Unavailable, "the identity service cannot be reached")
			}
			return r.accounts.Session(token)
		},
		Console: func(_ context.Context, of console.Grant) (string, error) {
			r.granted = of
			return "/console/" + string(of.Kind) + "/" + of.Of + "?token=of-" + of.By.Account.Name, r.consoles
		},
		Printed: func(_ context.Context, instance string) ([]byte, error) {
			if s := r.engine.Servers().At("", instance); s == nil {
				return nil, fault.New(fault.NotFound, "there is no instance %s", instance)
			}
			return []byte(r.printed), r.consoles
		},
		Waits: func(context.Context, job.ID) string { return r.waits }})
	r.home, r.token = r.join("alice", "home", identity.Member)
	return r
}

// join makes a user of a new project, and returns it with a token.
func (r *rig) join(user, project, role string) (identity.Project, string) {
	r.Helper()
	p, err := r.accounts.AddProject(r.Context(), identity.ProjectEdit{Name: new(project)})
	r.check(err)
	u, err := r.accounts.AddUser(r.Context(), identity.UserEdit{Name: new(user), Password: new("opensesame")})
	r.check(err)
	r.check(r.accounts.SetRole(r.Context(), u.ID, p.ID, role, true))
	_, token, err := r.accounts.Log(r.Context(), identity.Login{User: user, Password: "opensesame"})
	r.check(err)
	return p, token
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
}

// read decodes the body.
func (a answer) read(r *rig) map[string]any {
	r.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.text), &out); err != nil {
		r.Fatalf("%d %q: %v", a.status, a.text, err)
	}
	return out
}

// ask sends a request, as a server would hand it on. Headers come in pairs.
func (r *rig) ask(method, path, body string, headers ...string) answer {
	r.Helper()
	in := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
	in.Header.Set("X-Auth-Token", r.token)
	in.Header.Set("X-Openstack-Nova-Api-Version", newest)
	for i := 0; i < len(headers); i += 2 {
		if in.Header.Del(headers[i]); headers[i+1] != "" {
			in.Header.Set(headers[i], headers[i+1])
		}
	}
	out := httptest.NewRecorder()
	r.api.ServeHTTP(out, in)
	return answer{out.Code, out.Header(), out.Body.String()}
}

// until waits until a condition holds for a server; nil is one that is gone.
func (r *rig) until(id, what string, holds func(*server.Server) bool) *server.Server {
	r.Helper()
	var s *server.Server
	testkit.Until(r, "the server "+what, r.shown.Changed, func() bool {
		s = r.engine.Servers().Get(id)
		return holds(s)
	}, func() any { return s })
	return s
}

// settled waits until nothing is left to do about a server.
func (r *rig) settled(id string) *server.Server {
	r.Helper()
	return r.until(id, "comes to rest", func(s *server.Server) bool {
		return s == nil || len(s.Tasks) == 0 && s.Tags.OldestPending() == 0 && len(s.Tags.Jobs) == 0
	})
}

// creationOf is a body that makes a server.
func (r *rig) creationOf(more map[string]any) string {
	r.Helper()
	in := map[string]any{"name": "web1", "flavorRef": "4", "imageRef": r.engine.Images()[0].ID, "networks": "none"}
	maps.Copy(in, more)
	text, err := json.Marshal(map[string]any{"server": in})
	r.check(err)
	return string(text)
}

// create makes a server with tags over the API, and waits until it is there.
func (r *rig) create(name string, tags ...string) *server.Server {
	r.Helper()
	a := r.ask("POST", nova+"/servers", r.creationOf(map[string]any{"name": name, "tags": append([]string{}, tags...)}))
	if a.status != http.StatusAccepted {
		r.Fatalf("creating a server: %d %s", a.status, a.text)
	}
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	return r.settled(id)
}

// at is the path of a server in a flavour.
func at(root string, s *server.Server) string {
	if root == cyclades {
		return root + "/servers/" + strconv.FormatInt(s.Number, 10)
	}
	return root + "/servers/" + s.ID
}

// wants fails the test unless a server has these tags, and is there.
func (r *rig) wants(id string, tags ...string) {
	r.Helper()
	s := r.engine.Servers().Get(id)
	if s == nil || s.Deleting() {
		r.Fatalf("the server is deleted")
	}
	if got := s.Tags.Names(servertag.User); !slices.Equal(got, append([]string{}, tags...)) {
		r.Errorf("the server has the tags %q, want %q", got, tags)
	}
}

// explained fails the test unless an answer has a status and says why.
func (r *rig) explained(what string, a answer, status int) {
	r.Helper()
	if a.status != status {
		r.Errorf("%s: status %d, want %d: %s", what, a.status, status, fault.Clip(a.text, 300))
		return
	}
	for _, value := range a.read(r) {
		if body, ok := value.(map[string]any); ok && body["code"] == float64(status) && body["message"] != "" {
			return
		}
	}
	r.Errorf("%s: the body does not say why: %q", what, a.text)
}

// plenty is the room for uploads, whatever the machine has.
func plenty() (size, free int64, err error) { return 1 << 40, 1 << 40, nil }
