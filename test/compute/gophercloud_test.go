package compute

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/tags"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/drover-project/drover/internal/testkit"
)

// patience is how long a server may take to get to a status.
var patience = 4 * testkit.Patience()

// stack is a running cluster as gophercloud sees it.
type stack struct {
	*testing.T
	compute       *gophercloud.ServiceClient
	flavor, image string
}

func (s *stack) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// account is what a ready file says of where to log in, and as whom.
type account struct {
	Identity string `json:"identity"`
	User     string `json:"os_username"`
	Password string `json:"os_password"`
	Project  string `json:"os_project"`
}

func readAccount(t *testing.T, readyFile string) (a account) {
	t.Helper()
	text, err := os.ReadFile(readyFile)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// logIn logs in with what the ready file says, and nothing else.
func logIn(t *testing.T, readyFile string) *stack {
	t.Helper()
	return logInAs(t, readAccount(t, readyFile), http.DefaultTransport)
}

func logInAs(t *testing.T, a account, transport http.RoundTripper) *stack {
	t.Helper()
	s := &stack{T: t}
	provider, err := openstack.NewClient(a.Identity)
	s.check(err)
	provider.HTTPClient = http.Client{Transport: transport}
	s.check(openstack.Authenticate(t.Context(), provider, gophercloud.AuthOptions{IdentityEndpoint: a.Identity, DomainName: "Default",
		Username: a.User, Password: a.Password, TenantName: a.Project, AllowReauth: true}))
	s.compute, err = openstack.NewComputeV2(provider, gophercloud.EndpointOpts{Region: "RegionOne"})
	s.check(err)
	s.compute.Microversion = "2.52"
	glance, err := openstack.NewImageV2(provider, gophercloud.EndpointOpts{Region: "RegionOne"})
	s.check(err)
	for _, image := range all(s, images.List(glance, images.ListOpts{Name: "noop"}), images.ExtractImages) {
		s.image = image.ID
	}
	for _, flavor := range all(s, flavors.ListDetail(s.compute, nil), flavors.ExtractFlavors) {
		if flavor.Name == "m1.diskless" {
			s.flavor = flavor.ID
		}
	}
	return s
}

// all reads all pages of a list.
func all[T any](s *stack, pager pagination.Pager, extract func(pagination.Page) ([]T, error)) []T {
	s.Helper()
	pages, err := pager.AllPages(s.Context())
	s.check(err)
	found, err := extract(pages)
	s.check(err)
	return found
}

// create makes a server and waits until it runs.
func (s *stack) create(name string, with ...string) string {
	s.Helper()
	made, err := servers.Create(s.Context(), s.compute, servers.CreateOpts{Name: name, FlavorRef: s.flavor, ImageRef: s.image, Networks: "none", Tags: with}, nil).Extract()
	s.check(err)
	s.until(made.ID, "ACTIVE")
	return made.ID
}

func (s *stack) until(id, status string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	s.check(servers.WaitForStatus(ctx, s.compute, id, status))
}

// names lists the servers that a filter leaves.
func (s *stack) names(opts servers.ListOpts) string {
	s.Helper()
	var names []string
	for _, server := range all(s, servers.List(s.compute, opts), servers.ExtractServers) {
		names = append(names, server.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestGophercloud(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	dev := testkit.StartDev(t, testkit.Build(t), data)
	defer func() {
		if dev.Terminate(); dev.Gone() != nil {
			t.Error("drover dev did not end in good order")
		}
	}()
	s := logIn(t, filepath.Join(data, "ready.json"))
	t.Run("tags", func(t *testing.T) { (&stack{t, s.compute, s.flavor, s.image}).tags() })
	t.Run("lists", func(t *testing.T) { (&stack{t, s.compute, s.flavor, s.image}).lists() })
	t.Run("power", func(t *testing.T) { (&stack{t, s.compute, s.flavor, s.image}).power() })
	t.Run("rebuild", func(t *testing.T) { (&stack{t, s.compute, s.flavor, s.image}).rebuild() })
}

// tags makes every call about tags.
func (s *stack) tags() {
	ctx, id := s.Context(), s.create("tagged", "t1", "a b")
	list := func(want ...string) {
		s.Helper()
		if names, err := tags.List(ctx, s.compute, id).Extract(); err != nil || !slices.Equal(names, append([]string{}, want...)) {
			s.Errorf("the tags are %q, %v, want %q", names, err, want)
		}
	}
	list("a b", "t1")
	s.check(tags.Add(ctx, s.compute, id, "νέο").ExtractErr())
	s.check(tags.Add(ctx, s.compute, id, "νέο").ExtractErr())
	if has, err := tags.Check(ctx, s.compute, id, "νέο").Extract(); !has || err != nil {
		s.Errorf("checking: %v %v", has, err)
	}
	s.check(tags.Delete(ctx, s.compute, id, "νέο").ExtractErr())
	if has, err := tags.Check(ctx, s.compute, id, "νέο").Extract(); has {
		s.Errorf("checking what is gone: %v %v", has, err)
	}
	if err := tags.Delete(ctx, s.compute, id, "νέο").ExtractErr(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		s.Errorf("deleting what is gone: %v", err)
	}
	// This client sends such paths as they are. On a router that cleans them the
	// second deletes the server.
	for _, tag := range []string{"..", ".", "x/.."} {
		if err := tags.Delete(ctx, s.compute, id, tag).ExtractErr(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			s.Errorf("deleting %q: %v", tag, err)
		}
		if err := tags.Add(ctx, s.compute, id, tag).ExtractErr(); err == nil {
			s.Errorf("adding %q succeeds", tag)
		}
	}
	list("a b", "t1")
	replaced, err := tags.ReplaceAll(ctx, s.compute, id, tags.ReplaceAllOpts{Tags: []string{"y", "x"}}).Extract()
	if s.check(err); !slices.Equal(replaced, []string{"x", "y"}) {
		s.Errorf("replaced: %q", replaced)
	}
	server, err := servers.Get(ctx, s.compute, id).Extract()
	if s.check(err); server.Tags == nil || !slices.Equal(*server.Tags, []string{"x", "y"}) {
		s.Errorf("the server shows %v", server.Tags)
	}
	s.check(tags.DeleteAll(ctx, s.compute, id).ExtractErr())
	list()
	s.check(servers.Delete(ctx, s.compute, id).ExtractErr())
}

// lists filters and reads page by page.
func (s *stack) lists() {
	for _, name := range []string{"p1", "p2", "p3"} {
		s.create(name, "all", name)
	}
	for want, opts := range map[string]servers.ListOpts{
		"p1 p2 p3": {Tags: "all", Limit: 1}, "p1": {Tags: "all,p1"}, "p1 p2": {TagsAny: "p1,p2"}, "p2 p3": {Tags: "all", NotTags: "p1"},
		"p3": {Tags: "all", NotTagsAny: "p1,p2"}, "p2": {Name: "^p2$"}, "": {Tags: "none"},
	} {
		if got := s.names(opts); got != want {
			s.Errorf("%+v: %q, want %q", opts, got, want)
		}
	}
}

// resize gives a server another size, which it does not keep at first.
func (s *stack) resize(id string) {
	ctx := s.Context()
	larger, err := flavors.Create(ctx, s.compute, flavors.CreateOpts{Name: "larger", RAM: 256, VCPUs: 2, Disk: new(0)}).Extract()
	s.check(err)
	for _, settle := range []func(context.Context, *gophercloud.ServiceClient, string) servers.ActionResult{servers.RevertResize, servers.ConfirmResize} {
		s.check(servers.Resize(ctx, s.compute, id, servers.ResizeOpts{FlavorRef: larger.ID}).ExtractErr())
		s.until(id, "VERIFY_RESIZE")
		s.check(settle(ctx, s.compute, id).ExtractErr())
		s.until(id, "ACTIVE")
	}
	kept, err := servers.Get(ctx, s.compute, id).Extract()
	if s.check(err); kept.Flavor["original_name"] != "larger" && kept.Flavor["id"] != larger.ID {
		s.Errorf("its size is %v", kept.Flavor)
	}
}

// rebuild installs a server anew, which keeps what it is.
func (s *stack) rebuild() {
	ctx := s.Context()
	made, err := servers.Create(ctx, s.compute, servers.CreateOpts{Name: "anew", ImageRef: s.image, FlavorRef: "1", Networks: "none"}, nil).Extract()
	s.check(err)
	s.until(made.ID, "ACTIVE")
	now, err := servers.Rebuild(ctx, s.compute, made.ID, servers.RebuildOpts{ImageRef: s.image, Name: "renewed", Metadata: map[string]string{"a": "b"}}).Extract()
	if s.check(err); now.ID != made.ID || now.Status != "REBUILD" || now.Name != "renewed" || now.Metadata["a"] != "b" {
		s.Errorf("it is %+v", now)
	}
	s.until(made.ID, "ACTIVE")
	if _, err := servers.Rebuild(ctx, s.compute, made.ID, servers.RebuildOpts{ImageRef: "11111111-2222-3333-4444-555555555555"}).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
		s.Errorf("from an image that there is not: %v", err)
	}
}

// power stops, starts, reboots, renames and deletes.
func (s *stack) power() {
	ctx, id := s.Context(), s.create("power")
	s.check(servers.Stop(ctx, s.compute, id).ExtractErr())
	s.until(id, "SHUTOFF")
	s.check(servers.Start(ctx, s.compute, id).ExtractErr())
	s.until(id, "ACTIVE")
	s.check(servers.Reboot(ctx, s.compute, id, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	s.until(id, "ACTIVE")
	s.resize(id)
	renamed, err := servers.Update(ctx, s.compute, id, servers.UpdateOpts{Name: "renamed"}).Extract()
	if s.check(err); renamed.Name != "renamed" {
		s.Errorf("it is called %q", renamed.Name)
	}
	s.check(servers.Delete(ctx, s.compute, id).ExtractErr())
	gone, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.check(gophercloud.WaitFor(gone, func(ctx context.Context) (bool, error) {
		_, err := servers.Get(ctx, s.compute, id).Extract()
		return gophercloud.ResponseCodeIs(err, http.StatusNotFound), nil
	}))
}
