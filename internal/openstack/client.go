package openstack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// microversion is the version of the Compute API that is asked for: the first
// that tells why servers are locked. Tags at the creation of servers it has, too.
const microversion = "2.73"

// requestTime bounds one request.
const requestTime = 2 * time.Minute

// Client is somebody who is logged in to a cloud.
type Client struct {
	http  *http.Client
	token string
	cloud *Cloud
	// services are the endpoints of the catalogue, by type, without a slash at
	// their ends.
	services map[string]string
	// self are the user and the project that the client is logged in as.
	self []thing
}

type object = map[string]any

// Over returns a client of an Identity API that is reached otherwise, and takes who
// reaches it for an administrator. carry takes a request, with its path as that API
// has it, to there.
func Over(carry http.RoundTripper) *Client {
	return &Client{http: &http.Client{Transport: carry}, services: map[string]string{identity: "http://controller/v3"}}
}

// LogIn logs in to a cloud. Denied when it does not know who asks.
func LogIn(ctx context.Context, c *Cloud) (*Client, error) {
	if err := c.lacking(); err != nil {
		return nil, err
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	client := &Client{cloud: c, services: map[string]string{}, http: &http.Client{Timeout: requestTime, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	base := strings.TrimRight(c.AuthURL, "/")
	if !strings.HasSuffix(base, "/v3") {
		base += "/v3"
	}
	var out struct {
		Token struct {
			Catalog       []service
			User, Project thing
		}
	}
	answer, err := client.send(ctx, http.MethodPost, base+"/auth/tokens", c.login(), &out)
	if StatusOf(answer, err) == http.StatusUnauthorized {
		return nil, fault.New(fault.Denied, "%s does not let %s log in: %w", c.AuthURL, c.account(), err).
			WithHint("the account is that of %s; its password is wrong, or it has no role there", c.Source)
	}
	if err != nil {
		return nil, err
	}
	client.self = []thing{out.Token.User, out.Token.Project}
	client.token = answer.Header.Get("X-Subject-Token")
	for _, s := range out.Token.Catalog {
		if at := s.at(c); at != "" {
			client.services[s.Type] = strings.TrimRight(at, "/")
		}
	}
	client.services["identity"] = base
	return client, nil
}

// thing is what has an id and a name.
type thing struct{ ID, Name string }

// service is an entry of the catalogue.
type service struct {
	Type      string
	Endpoints []struct{ Interface, Region, URL string }
}

// at is where a service is for a cloud; empty if it is nowhere.
func (s *service) at(c *Cloud) string {
	face := strings.TrimSuffix(cmp.Or(c.Interface, "public"), "URL")
	for _, e := range s.Endpoints {
		if e.Interface == face && (c.Region == "" || c.Region == e.Region) {
			return e.URL
		}
	}
	return ""
}

func (c *Cloud) transport() (*http.Transport, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure} //nolint:gosec // only when the user says so
	if c.Certificate != "" {
		text, err := os.ReadFile(c.Certificate)
		if err != nil {
			return nil, fault.New(fault.Environment, "cannot read the certificates: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(text) {
			return nil, fault.New(fault.Invalid, "%s holds no certificate", c.Certificate)
		}
	}
	return &http.Transport{TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment}, nil
}

// reference names something by its id, or else by its name in a domain. A user and
// a project without a domain are of that which is called Default.
func reference(id, name, domainID, domain string) object {
	switch {
	case id != "":
		return object{"id": id}
	case domainID != "":
		return object{"name": name, "domain": object{"id": domainID}}
	}
	return object{"name": name, "domain": object{"name": cmp.Or(domain, "Default")}}
}

// login is the body of a request for a token.
func (c *Cloud) login() object {
	user := reference(c.UserID, c.Username, c.UserDomainID, c.UserDomain)
	if c.CredentialID != "" || c.CredentialName != "" {
		credential := object{"id": c.CredentialID, "secret": c.Secret}
		if c.CredentialID == "" {
			credential = object{"name": c.CredentialName, "secret": c.Secret, "user": user}
		}
		return object{"auth": object{"identity": object{"methods": []string{"application_credential"}, "application_credential": credential}}}
	}
	user["password"] = c.Password
	auth := object{"identity": object{"methods": []string{"password"}, "password": object{"user": user}}}
	if c.Project != "" || c.ProjectID != "" {
		auth["scope"] = object{"project": reference(c.ProjectID, c.Project, c.ProjectDomainID, c.ProjectDomain)}
	}
	return object{"auth": auth}
}

// Response is what came back.
type Response struct {
	Status int
	Header http.Header
}

// Do sends a request to a service, with a body if in is not nil, and reads the
// answer into out if that is not nil. The parts of the path are escaped. An answer
// that says no is an error whose code tells why.
func (c *Client) Do(ctx context.Context, method, service string, path []string, query url.Values, in, out any) (Response, error) {
	base := c.services[service]
	if base == "" {
		return Response{}, fault.New(fault.NotFound, "the cloud has no service %s for the region and interface", service)
	}
	for _, part := range path {
		base += "/" + url.PathEscape(part)
	}
	if len(query) > 0 {
		base += "?" + query.Encode()
	}
	return c.send(ctx, method, base, in, out)
}

// maxAnswer bounds what is taken in of one answer.
const maxAnswer = 64 << 20

func (c *Client) send(ctx context.Context, method, at string, in, out any) (Response, error) {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return Response{}, fault.New(fault.Internal, "a request that cannot be written: %w", err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return Response{}, fault.New(fault.Invalid, "the address %s cannot be used", at)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Openstack-Api-Version", "compute "+microversion)
	r.Header.Set("X-Openstack-Nova-Api-Version", microversion)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("X-Auth-Token", c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return Response{}, err
		}
		return Response{}, fault.New(fault.Unavailable, "the cloud does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or is of no use
	told := Response{answer.StatusCode, answer.Header}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return told, fault.New(fault.Unavailable, "the answer of the cloud cannot be read: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return told, refusal(answer.StatusCode, text)
	}
	if out == nil {
		return told, nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return told, fault.New(fault.Unavailable, "the answer of the cloud cannot be understood: %w", err)
	}
	return told, nil
}

// codes are what statuses say.
var codes = map[int]fault.Code{
	http.StatusBadRequest: fault.Invalid, http.StatusUnauthorized: fault.Denied, http.StatusForbidden: fault.Denied,
	http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict, http.StatusRequestEntityTooLarge: fault.TooLarge,
	http.StatusServiceUnavailable: fault.Unavailable, http.StatusBadGateway: fault.Unavailable,
}

// refusal is the error that an answer tells, in its own words if it has some.
func refusal(status int, text []byte) error {
	var body map[string]struct {
		Message string `json:"message"`
	}
	said := http.StatusText(status)
	if json.Unmarshal(text, &body) == nil {
		for _, f := range body {
			said = cmp.Or(f.Message, said)
		}
	}
	code := codes[status]
	if code == "" {
		code = fault.Failed
	}
	return &RefusedError{Status: status, error: fault.New(code, "%s", said)}
}

// RefusedError is an answer that says no.
type RefusedError struct {
	Status int
	error
}

// Unwrap returns the error beneath, with its code.
func (r *RefusedError) Unwrap() error { return r.error }

// StatusOf is the status of an answer, also of one that says no; zero if there
// was none.
func StatusOf(r Response, err error) int {
	if no, ok := errors.AsType[*RefusedError](err); ok {
		return no.Status
	}
	return r.Status
}

// one picks the thing that a name or id means out of all that were found: those of that
// name, or all there are.
func one[T any](what, key string, all []T, id, name func(T) string) (T, error) {
	var none T
	if i := slices.IndexFunc(all, func(t T) bool { return id(t) == key }); i >= 0 {
		return all[i], nil
	}
	found := slices.DeleteFunc(slices.Clone(all), func(t T) bool { return name(t) != key })
	switch len(found) {
	case 0:
		err := fault.New(fault.NotFound, "there is no %s %q", what, key)
		if hint := others(key, all, name); hint != "" {
			return none, err.WithHint("%s", hint)
		}
		return none, err
	case 1:
		return found[0], nil
	}
	return none, fault.New(fault.Ambiguous, "%d %ss are called %q", len(found), what, key).WithHint("name it by its id, which is one of %s", ids(found, id))
}

// others says which thing may have been meant, or which there are if these are few.
func others[T any](key string, all []T, name func(T) string) string {
	const few = 10
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = name(t)
	}
	switch near := qlang.Suggest(key, slices.Values(names)); {
	case near != "":
		return "did you mean " + near + "?"
	case len(names) == 0 || len(names) > few:
		return ""
	}
	return "there are " + strings.Join(names, ", ")
}

func ids[T any](things []T, id func(T) string) string {
	var out []string
	for _, t := range things {
		out = append(out, id(t))
	}
	return strings.Join(out, ", ")
}
