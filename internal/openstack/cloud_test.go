package openstack_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

const clouds = `clouds:
  lab:
    auth: {auth_url: "http://lab/v3", username: alice, project_name: home, user_domain_name: Users}
    region_name: north
    verify: false
  ci:
    auth: {auth_url: "http://lab/v3", application_credential_id: c1}
`

const secrets = `clouds:
  lab: {auth: {password: opensesame}}
  ci: {auth: {application_credential_secret: hidden}}
`

func TestCloudsAreFoundAsByOtherClients(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"clouds.yaml": clouds, "secure.yaml": secrets, "broken.yaml": "clouds: ["} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "clouds.yaml")
	for what, c := range map[string]struct {
		env  map[string]string
		want openstack.Cloud
		code fault.Code
	}{
		"variables": {map[string]string{"OS_AUTH_URL": "http://a", "OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_TENANT_NAME": "t", "OS_INSECURE": "True"},
			openstack.Cloud{AuthURL: "http://a", Username: "u", Password: "p", Project: "t", Insecure: true, Source: "the variables OS_*"}, ""},
		"ids beside names": {map[string]string{"OS_AUTH_URL": "http://a", "OS_PROJECT_NAME": "n", "OS_TENANT_NAME": "t", "OS_PROJECT_ID": "i", "OS_USER_ID": "u", "OS_USER_DOMAIN_ID": "d", "OS_PROJECT_DOMAIN_ID": "e"},
			openstack.Cloud{AuthURL: "http://a", Project: "n", ProjectID: "i", UserID: "u", UserDomainID: "d", ProjectDomainID: "e", Source: "the variables OS_*"}, ""},
		"a cloud of the file, with its secrets": {map[string]string{"OS_CLOUD": "lab", "OS_CLIENT_CONFIG_FILE": file, "OS_AUTH_URL": "http://other"},
			openstack.Cloud{AuthURL: "http://lab/v3", Username: "alice", Password: "opensesame", Project: "home", UserDomain: "Users", Region: "north", Insecure: true, Source: "the cloud lab of " + file}, ""},
		"an application credential": {map[string]string{"OS_CLOUD": "ci", "OS_CLIENT_CONFIG_FILE": file},
			openstack.Cloud{AuthURL: "http://lab/v3", CredentialID: "c1", Secret: "hidden", Source: "the cloud ci of " + file}, ""},
		"none":                {map[string]string{"OS_USERNAME": "u"}, openstack.Cloud{}, fault.NotFound},
		"an unknown cloud":    {map[string]string{"OS_CLOUD": "x", "OS_CLIENT_CONFIG_FILE": file}, openstack.Cloud{}, fault.NotFound},
		"no file":             {map[string]string{"OS_CLOUD": "x", "OS_CLIENT_CONFIG_FILE": file + "x"}, openstack.Cloud{}, fault.NotFound},
		"a file that is none": {map[string]string{"OS_CLOUD": "x", "OS_CLIENT_CONFIG_FILE": filepath.Join(dir, "broken.yaml")}, openstack.Cloud{}, fault.Invalid},
	} {
		got, err := openstack.Find(func(name string) string { return c.env[name] })
		if fault.CodeOf(err) != c.code || err == nil && *got != c.want {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%s: the error holds a password", what)
		}
	}
}

// TestAnswersThatSayNo become errors with the words of the cloud, and no
// redirect is followed.
func TestAnswersThatSayNo(t *testing.T) {
	var last string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r.Method + " " + r.URL.EscapedPath()
		status, body := http.StatusOK, ""
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("X-Subject-Token", "t")
			status, body = http.StatusCreated, `{"token":{"catalog":[{"type":"compute","endpoints":[{"interface":"public","region":"r","url":"http://`+r.Host+`/compute/"}]}]}}`
		case strings.HasSuffix(r.URL.Path, "/gone"):
			status, body = http.StatusNotFound, `{"itemNotFound":{"code":404,"message":"it is gone"}}`
		case strings.HasSuffix(r.URL.Path, "/moved"):
			w.Header().Set("Location", "/compute/servers")
			status = http.StatusTemporaryRedirect
		case strings.HasSuffix(r.URL.Path, "/odd"):
			body = "<html>"
		case strings.HasSuffix(r.URL.Path, "/detail"):
			body = `{"servers":[]}`
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // to ourselves
	}))
	defer server.Close()
	client, err := openstack.LogIn(t.Context(), &openstack.Cloud{AuthURL: server.URL, Username: "u", Password: "p", Region: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]struct {
		code fault.Code
		text string
	}{
		"gone": {fault.NotFound, "it is gone"}, "moved": {fault.Failed, "Temporary Redirect"}, "odd": {fault.Unavailable, "cannot be understood"},
	} {
		_, err := client.Server(t.Context(), id)
		if fault.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) || last != "GET /compute/servers/"+id {
			t.Errorf("%s: %v after %s", id, err, last)
		}
	}
	for key, want := range map[string]fault.Code{"gone": fault.NotFound, "odd": fault.Unavailable} { // of neither is there one of the name
		if _, err := client.FindServer(t.Context(), key); fault.CodeOf(err) != want {
			t.Errorf("looking for %s: %v", key, err)
		}
	}
	if _, err := client.Tag(t.Context(), http.MethodDelete, "s", ".."); !fault.Is(err, fault.Invalid) || strings.HasPrefix(last, http.MethodDelete) {
		t.Errorf("a tag that is another path: %v after %s", err, last)
	}
	if _, err := client.Tag(t.Context(), http.MethodDelete, "s", "a/b c?"); err != nil || last != "DELETE /compute/servers/s/tags/a%2Fb%20c%3F" {
		t.Errorf("a tag that has to be escaped: %v after %s", err, last)
	}
	if _, err := client.Users(t.Context()); err == nil {
		t.Error("an empty answer is a list")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Server(ended, "x"); err == nil {
		t.Error("a request goes on when nobody waits for it")
	}
}

// TestIDsAreSentAsIDs: as other clients do.
func TestIDsAreSentAsIDs(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // what is missing is seen below
		got = string(text)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{}`) // to ourselves
	}))
	defer server.Close()
	const password = `{"auth":{"identity":{"methods":["password"],"password":{"user":`
	for what, c := range map[string]struct {
		cloud openstack.Cloud
		want  string
	}{
		"names": {openstack.Cloud{Username: "u", Password: "p", Project: "n"},
			password + `{"domain":{"name":"Default"},"name":"u","password":"p"}}},"scope":{"project":{"domain":{"name":"Default"},"name":"n"}}}}`},
		"ids of domains": {openstack.Cloud{Username: "u", Password: "p", Project: "n", UserDomainID: "default", UserDomain: "x", ProjectDomainID: "default"},
			password + `{"domain":{"id":"default"},"name":"u","password":"p"}}},"scope":{"project":{"domain":{"id":"default"},"name":"n"}}}}`},
		"ids": {openstack.Cloud{UserID: "1", Username: "u", Password: "p", Project: "n", ProjectID: "2"},
			password + `{"id":"1","password":"p"}}},"scope":{"project":{"id":"2"}}}}`},
		"a credential": {openstack.Cloud{CredentialName: "ci", Secret: "s", UserID: "1", Password: "p"},
			`{"auth":{"identity":{"application_credential":{"name":"ci","secret":"s","user":{"id":"1"}},"methods":["application_credential"]}}}`},
	} {
		c.cloud.AuthURL = server.URL
		if _, err := openstack.LogIn(t.Context(), &c.cloud); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", what, got, err)
		}
	}
}

// TestWhoCannotLogInIsToldWhichAccountItWas: also when nobody needs to be asked.
func TestWhoCannotLogInIsToldWhichAccountItWas(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":401,"message":"who are you?","title":"Unauthorized"}}`) // to ourselves
	}))
	defer server.Close()
	for what, c := range map[string]struct {
		cloud      openstack.Cloud
		code       fault.Code
		text, hint string
	}{
		"a wrong password":   {openstack.Cloud{Username: "u", Password: "sesame", Project: "p"}, fault.Denied, "does not let the user u in the project p log in: who are you?", "that of the variables OS_*; its password is wrong"},
		"a wrong secret":     {openstack.Cloud{CredentialID: "c", Secret: "sesame"}, fault.Denied, "does not let the application credential c log in", "the variables OS_*"},
		"no password":        {openstack.Cloud{UserID: "u"}, fault.Invalid, "the variables OS_*: no password for the user u", "OS_PASSWORD"},
		"no secret":          {openstack.Cloud{CredentialName: "c", Username: "u", Password: "sesame"}, fault.Invalid, "no secret for the application credential c", "OS_APPLICATION_CREDENTIAL_SECRET"},
		"nobody in the file": {openstack.Cloud{Password: "sesame"}, fault.Invalid, "no user is named", "OS_USERNAME"},
	} {
		before := asked
		c.cloud.AuthURL, c.cloud.Source = server.URL, "the variables OS_*"
		_, err := openstack.LogIn(t.Context(), &c.cloud)
		f, isFault := errors.AsType[*fault.Error](err)
		if !isFault || f.Code != c.code || !strings.Contains(err.Error(), c.text) || !strings.Contains(f.Hint, c.hint) || strings.Contains(err.Error()+f.Hint, "sesame") {
			t.Errorf("%s: %v, hint %+v", what, err, f)
		}
		if (asked > before) != (c.code == fault.Denied) {
			t.Errorf("%s: the cloud was asked %d times", what, asked-before)
		}
	}
}

// TestImagesAreOfAllPages: Glance's are short.
func TestImagesAreOfAllPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := `{"token":{"catalog":[{"type":"image","endpoints":[{"interface":"public","region":"r","url":"http://` + r.Host + `/image"}]}]}}`
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("X-Subject-Token", "t")
			w.WriteHeader(http.StatusCreated)
		case r.URL.Query().Get("marker") == "":
			body = `{"images":[{"id":"1","name":"a"},{"id":"2","name":"b"}],"next":"/v2/images?marker=2"}`
		case r.URL.Query().Get("marker") == "2":
			body = `{"images":[{"id":"3","name":"c"}]}`
		default:
			body = `{}`
		}
		_, _ = io.WriteString(w, body) // to ourselves
	}))
	defer server.Close()
	client, err := openstack.LogIn(t.Context(), &openstack.Cloud{AuthURL: server.URL, Username: "u", Password: "p", Region: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if images, err := client.Images(t.Context()); err != nil || len(images) != 3 || images[2].ID != "3" {
		t.Errorf("they are %v, %v", images, err)
	}
}
