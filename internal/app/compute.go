package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/api/compute"
	identityapi "github.com/drover-project/drover/internal/api/identity"
	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/api/remoteconsole"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/identity/keystone"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/systems"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/upload"
	"github.com/drover-project/drover/internal/wholefile"
)

// firstProject and firstUser are whom a cluster begins with.
const (
	firstProject = "demo"
	firstUser    = "demo"
)

// instancePrefix begins the names of the instances of servers, as programs expect
// that listen to events.
const instancePrefix = "snf-"

// reconcileEvery is how often all servers are looked at for what no event told
// of.
const reconcileEvery = time.Minute

// openServers opens the servers of users, and the accounts.
func (c *controller) openServers(ctx context.Context, o Options) (err error) {
	policy := servertag.DefaultPolicy()
	if policy.Effects, err = readEffects(o.ServerEffects); err != nil {
		return err
	}
	if err := policy.CheckEffects(); err != nil {
		return err
	}
	if c.remotes, err = readClusters(o.ServerClusters, c.log); err != nil {
		return err
	}
	c.accounts, err = identity.Open(ctx, identity.Config{Store: c.store, Epoch: c.lease.Epoch, Now: time.Now, NewUUID: c.newUUID, Log: c.log,
		Servers: func(project string) int { return c.servers.Owns(project) }, Images: c.uploads.Count})
	if err != nil {
		return err
	}
	if c.keystone, err = openKeystone(o); err != nil {
		return err
	}
	c.quotas, err = quota.Open(ctx, quota.Config{Store: c.store, Epoch: c.lease.Epoch, Picture: c.picture, Note: c.queue.Note, Format: c.format.Format, Log: c.log,
		Used: c.takenBy})
	if err != nil {
		return err
	}
	c.systems = systems.Open(systems.Config{Clusters: c.systemsOf(), Now: time.Now, Log: c.log})
	c.servers, err = tagsync.Open(ctx, tagsync.Config{
		Store: c.store, Epoch: c.lease.Epoch, Life: c.life, Picture: c.picture, Format: c.format.Format, Note: c.queue.Note, Backends: c.serversOn(),
		Policy: policy, Room: func(project string) server.Amount { return c.quotas.Of(project).Servers() }, Images: c.systems.Images, Prefix: instancePrefix, First: o.FirstServerNumber, Now: time.Now, NewUUID: c.newUUID, Log: c.log,
	})
	if err != nil {
		return err
	}
	c.flavors, err = flavor.Open(ctx, flavor.Config{Store: c.store, Epoch: c.lease.Epoch, Picture: c.picture, Note: c.queue.Note, First: server.DefaultFlavors(), NewUUID: c.newUUID, Log: c.log})
	if err != nil {
		return err
	}
	if c.keyPairs, err = keypair.Open(ctx, keypair.Config{Store: c.store, Epoch: c.lease.Epoch, Now: time.Now, Log: c.log}); err != nil {
		return err
	}
	for _, text := range c.servers.Unreadable() {
		c.log.Error("an object cannot be read and is set aside; restore it from a backup", "object", text)
	}
	c.servers.Run()
	c.uploads.Run()
	return nil
}

// uploadsName is the directory in the data directory with the images that users upload.
const uploadsName = "uploads"

// openUploads opens the images that users upload. Before the servers are open nothing is asked of them but what nodes need.
func (c *controller) openUploads(ctx context.Context, o Options) (err error) {
	dir, why := uploadsDir(o, c.ground != nil)
	c.uploads, err = upload.Open(ctx, upload.Config{
		Store: c.store, Epoch: c.lease.Epoch, Format: c.format.Format, Dir: dir, Why: why,
		Do: func(ctx context.Context, key string, op *opcode.Opcode) (servertag.Outcome, error) {
			return tagsync.Local{Queue: c.queue, Picture: c.picture, Store: c.store}.Do(ctx, key, op)
		},
		Has: func(id string) bool { return c.servers.HasUpload(id) },
		Told: func(of upload.Capture, failed string) error {
			_, err := c.servers.Change(of.Server, func(s *server.Server) (*server.Server, error) {
				return s.Captured(compute.CaptureOf(&of), of.Asked, job.At(time.Now()), failed), nil
			})
			return err
		},
		Limits: func(project string) upload.Limits { return limitsOfImages(c.quotas.Of(project)) },
		Now:    func() job.Time { return job.At(time.Now()) }, NewUUID: c.newUUID, Log: c.log,
	})
	return err
}

// uploadsDir is the directory of their files; without one, why there is none. Files of a controller alone would not be there when another leads.
func uploadsDir(o Options, within bool) (dir, why string) {
	switch {
	case o.Uploads != "":
		return o.Uploads, ""
	case isPostgres(o.Store) || within:
		return "", "their files need a directory that all controllers share, which the operator names by the setting uploads"
	}
	return filepath.Join(o.Data, uploadsName), ""
}

func limitsOfImages(l quota.Limits) upload.Limits {
	images, bytes := l.Images()
	return upload.Limits{Images: images, Bytes: bytes}
}

// takenBy is what a project has of what is limited.
func (c *controller) takenBy(project string) quota.Limits {
	used := quota.Used(c.servers.Taken(project)).UsedByImages(c.uploads.Used(project))
	used[quota.ServerGroups] = int64(len(c.servers.Groups(project)))
	return used
}

// systemsOf asks the clusters of servers for their operating systems.
func (c *controller) systemsOf() map[string]systems.Cluster {
	all := map[string]systems.Cluster{"": func(ctx context.Context) ([]string, error) { return items.OSNames(c.querier.Source(ctx)) }}
	for name, remote := range c.remotes {
		all[name] = remote.Systems
	}
	return all
}

// openKeystone opens the identity service that judges tokens in place of this
// program; nil without one.
func openKeystone(o Options) (*keystone.Keystone, error) {
	if o.Keystone == "" {
		return nil, nil
	}
	var ca []byte
	if o.KeystoneCA != "" {
		var err error
		if ca, err = os.ReadFile(o.KeystoneCA); err != nil {
			return nil, fault.New(fault.Environment, "cannot read the certificate of the identity service: %w", err)
		}
	}
	return keystone.Open(keystone.Config{URL: o.Keystone, CA: ca, Now: time.Now})
}

// osPasswordName is the file in the data directory with the first user's password.
const osPasswordName = "os_password"

// firstAccount is the account that a cluster comes with. Its password is kept in
// the data directory, readable by its owner only, so that it stays the same;
// empty if it has another by now.
func (c *controller) firstAccount(ctx context.Context, dir string) (password string, err error) {
	path := filepath.Join(dir, osPasswordName)
	text, err := os.ReadFile(path)
	if err == nil {
		password = strings.TrimSpace(string(text))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Environment, "cannot read the password of the first user: %w", err)
	}
	if len(c.accounts.Users()) > 0 {
		if !c.accounts.Verify(firstUser, password) {
			password = ""
		}
		return password, nil
	}
	if password == "" {
		password = newPassword()
		if err := wholefile.Write(path, []byte(password+"\n")); err != nil {
			return "", fault.New(fault.Environment, "cannot keep the password of the first user: %w", err)
		}
	}
	project, err := c.accounts.FindProject(firstProject)
	if fault.Is(err, fault.NotFound) { // there is one without users, after a crash
		project, err = c.accounts.AddProject(ctx, identity.ProjectEdit{Name: new(firstProject)})
	}
	if err != nil {
		return "", err
	}
	user, err := c.accounts.AddUser(ctx, identity.UserEdit{Name: new(firstUser), Password: &password})
	if err != nil {
		return "", err
	}
	for _, role := range []string{identity.Member, identity.Admin} {
		if err := c.accounts.SetRole(ctx, user.ID, project.ID, role, true); err != nil {
			return "", err
		}
	}
	return password, nil
}

// openAccounts makes the first account where there is none, for the clients of
// the Compute API if that is served.
func (c *controller) openAccounts(ctx context.Context, s *surfaces, o Options) error {
	if s.computeListener == nil || c.keystone != nil {
		return nil
	}
	password, err := c.firstAccount(ctx, o.Data)
	if password != "" && c.group == nil { // another member may have made it, with another password
		s.ready.OSUsername, s.ready.OSPassword, s.ready.OSProject = firstUser, password, firstProject
	}
	return err
}

// listenCompute opens the address of the Compute API with what belongs to it:
// identity and images. Without an address there is none.
func (s *surfaces) listenCompute(ctx context.Context, o Options) (err error) {
	if o.Compute == "" {
		return nil
	}
	if s.computeListener, err = listen(ctx, gate.Compute, o.Compute, o); err != nil {
		return fault.New(fault.Environment, "cannot listen for the Compute API: %w", err).WithHint("choose another address with --compute; port 0 picks a free one")
	}
	if o.ComputeTLS {
		s.computeCert = s.cert
	}
	base := computeScheme(o) + "://" + s.computeListener.Addr().String()
	s.ready.Compute, s.ready.Identity = base+"/compute/v2.1", cmp.Or(o.Keystone, base+identityPrefix+"/v3")
	return nil
}

// computeScheme is how clients reach the Compute API.
func computeScheme(o Options) string {
	if o.ComputeTLS {
		return "https"
	}
	return "http"
}

// serveCompute serves the Compute API until ctx ends, with the limits of RAPI.
func (s *surfaces) serveCompute(ctx context.Context, h http.Handler, log *slog.Logger) error {
	if s.computeListener == nil {
		return nil
	}
	return rapi.ServeHandler(ctx, gate.Compute, s.computeListener, s.computeCert, h, log)
}

// identityPrefix is the path below which identity is served.
const identityPrefix = "/identity"

// newIdentity returns the Identity API.
func (c *controller) newIdentity() *identityapi.API {
	return identityapi.New(identityapi.Config{Accounts: c.accounts, Prefix: identityPrefix, Region: "RegionOne", Now: time.Now, Log: c.log,
		Catalog: func(r *http.Request) []identityapi.Service {
			base := forwarded.Base(r)
			return []identityapi.Service{
				{Type: "compute", Name: "drover", URL: base + "/compute/v2.1"},
				{Type: "cyclades_compute", Name: "cyclades_compute", URL: base + "/compute/v2.0"},
				{Type: "identity", Name: "drover", URL: base + identityPrefix + "/v3"},
				{Type: "image", Name: "drover", URL: base + "/image"},
				{Type: "network", Name: "drover", URL: base + "/network"},
			}
		}})
}

// newCompute returns the services of the Compute API, told apart by the
// beginnings of their paths. No path is cleaned or redirected.
func (c *controller) newCompute(o Options) http.Handler {
	session, keep, has := func(_ context.Context, token string) (*identity.Session, error) { return c.accounts.Session(token) }, c.accounts.Keep, c.hasProject
	if c.keystone != nil { // which asks nobody before it removes a project, and tells of one only who has a token for it
		session, keep, has = c.keystone.Session, func(string) (func(), error) { return func() {}, nil }, nil
	}
	consoles := c.newConsoles("server", remoteconsole.OfServers(func(id string) *server.Server { return c.servers.Servers().Get(id) }))
	servers := compute.New(compute.Config{Session: session, Keep: keep, Identity: o.Keystone, Engine: c.servers, Uploads: c.uploads, Flavors: c.flavors, Keys: c.keyPairs, Quotas: c.quotas, HasProject: has, Console: consoles.Issue, Printed: c.printed, Waits: c.waits, Now: time.Now, Log: c.log})
	trust := forwarded.Trust{Scheme: computeScheme(o), Public: o.PublicURL, Proxies: o.TrustedProxies}
	return trust.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.keystone == nil && ofIdentity(r) {
			c.accountsAPI.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.EscapedPath(), remoteconsole.Prefix) {
			consoles.ServeHTTP(w, r)
			return
		}
		servers.ServeHTTP(w, r)
	}))
}

// hasProject tells whether there is a project of an id.
func (c *controller) hasProject(id string) bool {
	p, err := c.accounts.FindProject(id)
	return err == nil && p.ID == id
}

// printed is what an instance printed on its serial line last.
func (c *controller) printed(ctx context.Context, instance string) ([]byte, error) {
	p, err := c.querier.ReadConsole(ctx, instance, 0, 0)
	return p.Text, err
}

// newConsoles returns the consoles of machines, of which find tells.
func (c *controller) newConsoles(thing string, find func(id string) (remoteconsole.Machine, error)) *remoteconsole.Consoles {
	return remoteconsole.New(remoteconsole.Config{
		Thing: thing, Find: find, Instances: c.querier, Keyboards: c.keyboards, Record: c.queue.Record,
		Count: func(outcome remoteconsole.Outcome) { c.figures.tickets.WithLabelValues(string(outcome)).Inc() }, Now: time.Now, Log: c.log,
	})
}

// ofIdentity tells requests of the Identity API from those of the others.
func ofIdentity(r *http.Request) bool {
	path := r.URL.EscapedPath()
	return path == identityPrefix || strings.HasPrefix(path, identityPrefix+"/")
}

// waits says what a job waits for.
func (c *controller) waits(ctx context.Context, id job.ID) string {
	x, err := c.queue.Explain(ctx, id)
	if err != nil {
		return "it is not known what job " + strconv.FormatInt(int64(id), 10) + " waits for: " + err.Error()
	}
	return x.Why
}

// clustersAway tells of clusters of servers that do not answer, if there are any. Everybody may read it, so it has no names.
func (c *controller) clustersAway() *Problem {
	if c.servers == nil {
		return nil
	}
	all, away, since := c.servers.Clusters(), 0, time.Time{}
	for _, cluster := range all {
		if cluster.Away.IsZero() {
			continue
		}
		if away++; since.IsZero() || cluster.Away.Before(since) {
			since = cluster.Away
		}
	}
	if away == 0 {
		return nil
	}
	return &Problem{Part: "cluster", Text: fmt.Sprintf("clusters of servers that do not answer: %d of %d (drover server cluster list names them)", away, len(all)), Since: since}
}

// reconcile has all servers looked at from time to time, until ctx ends.
func (c *controller) reconcile(ctx context.Context) error {
	return regularly(ctx, reconcileEvery, func() error {
		c.servers.Reconcile()
		return nil
	})
}
