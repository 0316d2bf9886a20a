// Package openstack is a client of the Compute and Identity APIs of OpenStack, as
// far as the command line uses them: servers with tags, users, projects and
// roles. It knows clouds in the way that OpenStack's own clients do, by the
// variables OS_* and by clouds.yaml.
//
// Invariants:
//   - No error holds a password, a secret or a token.
//   - A path is built from escaped names, and no redirect is followed.
package openstack

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/fault"
)

// Cloud says where a cloud is, and as whom to log in there.
type Cloud struct {
	AuthURL, Region, Interface string
	// Username and Password, or an application credential.
	Username, UserID, Password           string
	CredentialID, CredentialName, Secret string
	Project, ProjectID                   string
	// Domains are those of the user and the project.
	UserDomain, UserDomainID       string
	ProjectDomain, ProjectDomainID string
	Certificate                    string
	// Insecure takes any certificate.
	Insecure bool
	// Source is where all that was read, in words.
	Source string
}

// variables are what the fields are called in the environment, and in
// clouds.yaml below auth or beside it.
var variables = []struct {
	field func(*Cloud) *string
	names []string
	key   string
}{
	{func(c *Cloud) *string { return &c.AuthURL }, []string{"OS_AUTH_URL"}, "auth_url"},
	{func(c *Cloud) *string { return &c.Username }, []string{"OS_USERNAME"}, "username"},
	{func(c *Cloud) *string { return &c.UserID }, []string{"OS_USER_ID"}, "user_id"},
	{func(c *Cloud) *string { return &c.Password }, []string{"OS_PASSWORD"}, "password"},
	{func(c *Cloud) *string { return &c.Project }, []string{"OS_PROJECT_NAME", "OS_TENANT_NAME"}, "project_name"},
	{func(c *Cloud) *string { return &c.ProjectID }, []string{"OS_PROJECT_ID", "OS_TENANT_ID"}, "project_id"},
	{func(c *Cloud) *string { return &c.UserDomain }, []string{"OS_USER_DOMAIN_NAME"}, "user_domain_name"},
	{func(c *Cloud) *string { return &c.UserDomainID }, []string{"OS_USER_DOMAIN_ID"}, "user_domain_id"},
	{func(c *Cloud) *string { return &c.ProjectDomain }, []string{"OS_PROJECT_DOMAIN_NAME"}, "project_domain_name"},
	{func(c *Cloud) *string { return &c.ProjectDomainID }, []string{"OS_PROJECT_DOMAIN_ID"}, "project_domain_id"},
	{func(c *Cloud) *string { return &c.CredentialID }, []string{"OS_APPLICATION_CREDENTIAL_ID"}, "application_credential_id"},
	{func(c *Cloud) *string { return &c.CredentialName }, []string{"OS_APPLICATION_CREDENTIAL_NAME"}, "application_credential_name"},
	{func(c *Cloud) *string { return &c.Secret }, []string{"OS_APPLICATION_CREDENTIAL_SECRET"}, "application_credential_secret"},
	{func(c *Cloud) *string { return &c.Region }, []string{"OS_REGION_NAME"}, "region_name"},
	{func(c *Cloud) *string { return &c.Interface }, []string{"OS_INTERFACE"}, "interface"},
	{func(c *Cloud) *string { return &c.Certificate }, []string{"OS_CACERT"}, "cacert"},
}

// Find finds the cloud that the environment means: the one of clouds.yaml that
// OS_CLOUD names, else that of the variables OS_*. NotFound if it means none.
func Find(getenv func(string) string) (*Cloud, error) {
	if name := getenv("OS_CLOUD"); name != "" {
		return named(name, getenv)
	}
	c := &Cloud{Source: "the variables OS_*"}
	c.take(getenv)
	if c.AuthURL == "" {
		return nil, fault.New(fault.NotFound, "the environment names no cloud").WithHint("set OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME, or OS_CLOUD")
	}
	return c, nil
}

// account names who is to log in.
func (c *Cloud) account() string {
	switch {
	case c.CredentialID != "" || c.CredentialName != "":
		return "the application credential " + cmp.Or(c.CredentialName, c.CredentialID)
	case c.Project != "" || c.ProjectID != "":
		return "the user " + cmp.Or(c.Username, c.UserID) + " in the project " + cmp.Or(c.Project, c.ProjectID)
	}
	return "the user " + cmp.Or(c.Username, c.UserID)
}

// lacking is what must be known of an account before anybody is asked, nil if all is there.
func (c *Cloud) lacking() error {
	credential := c.CredentialID != "" || c.CredentialName != ""
	switch {
	case credential && c.Secret == "":
		return fault.New(fault.Invalid, "%s: no secret for %s", c.Source, c.account()).WithHint("set OS_APPLICATION_CREDENTIAL_SECRET, or application_credential_secret of the cloud")
	case !credential && c.Username == "" && c.UserID == "":
		return fault.New(fault.Invalid, "%s: no user is named", c.Source).WithHint("set OS_USERNAME, or username of the cloud")
	case !credential && c.Password == "":
		return fault.New(fault.Invalid, "%s: no password for %s", c.Source, c.account()).WithHint("set OS_PASSWORD, or password of the cloud")
	}
	return nil
}

// take sets what the environment says.
func (c *Cloud) take(getenv func(string) string) {
	for _, v := range variables {
		for _, name := range v.names {
			if text := getenv(name); text != "" {
				*v.field(c) = text
				break
			}
		}
	}
	c.Insecure = c.Insecure || slices.Contains([]string{"1", "true", "yes"}, strings.ToLower(getenv("OS_INSECURE")))
}

// places are where clouds.yaml may be.
func places(getenv func(string) string) []string {
	if file := getenv("OS_CLIENT_CONFIG_FILE"); file != "" {
		return []string{file}
	}
	config := cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(getenv("HOME"), ".config"))
	return []string{"clouds.yaml", filepath.Join(config, "openstack", "clouds.yaml"), "/etc/openstack/clouds.yaml"}
}

// entry is one cloud of the file.
type entry struct {
	Auth   map[string]string `yaml:"auth"`
	Region string            `yaml:"region_name"`
	Face   string            `yaml:"interface"`
	CACert string            `yaml:"cacert"`
	Verify *bool             `yaml:"verify"`
}

// named reads a cloud from clouds.yaml, with what secure.yaml beside it adds.
func named(name string, getenv func(string) string) (*Cloud, error) {
	for _, place := range places(getenv) {
		found, err := readClouds(place)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		e, known := found[name]
		if !known {
			return nil, fault.New(fault.NotFound, "%s has no cloud %q", place, name).WithHint("it has %s", strings.Join(slices.Sorted(maps.Keys(found)), ", "))
		}
		secure, err := readClouds(filepath.Join(filepath.Dir(place), "secure.yaml"))
		if err != nil {
			return nil, err
		}
		c := e.cloud(secure[name].Auth)
		c.Source = "the cloud " + name + " of " + place
		return c, nil
	}
	return nil, fault.New(fault.NotFound, "OS_CLOUD names the cloud %q, and there is no clouds.yaml", name).WithHint("looked at %s", strings.Join(places(getenv), ", "))
}

// readClouds reads a file; nil if it is not there.
func readClouds(path string) (map[string]entry, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var file struct {
		Clouds map[string]entry `yaml:"clouds"`
	}
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "cannot read %s: %w", path, err)
	}
	return file.Clouds, nil
}

// cloud is what an entry and its secrets say.
func (e *entry) cloud(secrets map[string]string) *Cloud {
	c := &Cloud{Region: e.Region, Interface: e.Face, Certificate: e.CACert, Insecure: e.Verify != nil && !*e.Verify}
	for _, v := range variables {
		if text := cmp.Or(secrets[v.key], e.Auth[v.key]); text != "" {
			*v.field(c) = text
		}
	}
	return c
}
