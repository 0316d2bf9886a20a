package hostile

import (
	"net/http"
	"strings"
)

// Servers, and the accounts of those who have them: the Compute API in both of
// its flavours and the Identity API.

// of is a request to one of their surfaces.
func of(a api, method, path, body string) request {
	return request{api: a, method: method, path: path, body: body}
}

// versioned is a request to the Compute API under a microversion.
func versioned(version string) request {
	return request{api: compute, method: http.MethodGet, path: "/servers", header: http.Header{"Openstack-Api-Version": {version}}}
}

// bodies are requests with one body for everything of the Compute API that takes one.
func bodies(body string) []request {
	return []request{
		of(compute, http.MethodPost, "/servers", body), of(cyclades, http.MethodPost, "/servers", body),
		of(compute, http.MethodPut, "/servers/{server}", body), of(compute, http.MethodPost, "/servers/{server}/action", body),
		of(compute, http.MethodPut, "/servers/{server}/tags", body), of(cyclades, http.MethodPost, "/servers/{server}/metadata", body),
	}
}

// creation asks for a server with further members.
func creation(more string) request {
	return request{api: compute, method: http.MethodPost, path: "/servers", header: http.Header{"Openstack-Api-Version": {"compute latest"}},
		body: `{"server":{"name":"a","flavorRef":"{flavor}","imageRef":"{image}","networks":"none"` + more + `}}`}
}

// metadata are so many pairs.
func metadata(n int, value string) string {
	return `{` + strings.TrimSuffix(strings.Repeat(`"k":`+value+",", n), ",") + `}`
}

const kib = 1 << 10

// serverAttacks are tried as attacks are.
var serverAttacks = []attack{
	{"bodies about servers that are too large", append(
		bodies(`{"server":{"name":`+quote(strings.Repeat("<", 256*kib))+`}}`),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":`+quote(strings.Repeat("<", 64*kib))+`}`),
		request{api: compute, method: http.MethodPost, path: "/servers", body: strings.Repeat("[", 20*mib), unread: true},
		request{api: identity, method: http.MethodPost, path: "/auth/tokens", body: strings.Repeat("[", 20*mib), anonymous: true, unread: true},
	), nil},
	{"bodies about servers that are deep, or of many values", append(append(append(
		bodies(strings.Repeat("[", 200*kib)), bodies(strings.Repeat(`{"server":`, 9000)+"1"+strings.Repeat("}", 9000))...),
		bodies(`{"server":{"metadata":`+metadata(20_000, `"v"`)+`}}`)...),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":`+strings.Repeat("[", 60*kib)),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":{"identity":{"methods":[`+times(10_000, `"password"`)+`]}}}`),
	), nil},
	{"bodies about servers of other types", []request{
		creation(`,"metadata":{"a":1}`), creation(`,"metadata":[[]]`), creation(`,"tags":{"a":1}`), creation(`,"tags":[1,null,{}]`),
		creation(`,"networks":` + "[" + times(2000, "{}") + "]"), creation(`,"min_count":1e300`), creation(`,"flavorRef":{"a":[]}`), creation(`,"imageRef":-1`),
		creation(`,"tags":[` + times(4000, `"t"`) + `]`), creation(`,"tags":[` + quote(strings.Repeat("😀", 40*kib)) + `]`), creation(`,"description":"\u0000"`),
		creation(`,"name":` + quote(strings.Repeat("\u202e", 200))), creation(`,"name":"\ud800"`), creation(`,"user_data":` + quote(strings.Repeat("A", 200*kib))),
		of(compute, http.MethodPost, "/servers", `[]`), of(compute, http.MethodPost, "/servers", `{"server":[]}`), of(compute, http.MethodPost, "/servers", `null`),
		of(compute, http.MethodPost, "/servers", ``), of(compute, http.MethodPost, "/servers", "\xff"), of(compute, http.MethodPost, "/servers", `{"server":{"name":"a"},"server":1}`),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":{"identity":{"methods":{"a":1}}}}`), of(identity, http.MethodPost, "/auth/tokens", `null`),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":{"identity":{"methods":["password"],"password":{"user":[]}}}}`),
		of(identity, http.MethodPost, "/auth/tokens", `{"auth":{"identity":{"methods":["token"],"token":{"id":`+quote(strings.Repeat("t", 40*kib))+`}}}}`),
		of(identity, http.MethodPost, "/users", `{"user":{"name":`+quote(strings.Repeat("u", 50*kib))+`,"password":`+quote(strings.Repeat("p", 10*kib))+`}}`),
		of(identity, http.MethodPost, "/projects", `{"project":{"name":"\u0000"}}`),
	}, nil},
	{"paths of servers that are long, or name nothing", []request{
		of(compute, http.MethodGet, "/servers/"+strings.Repeat("a", 50*kib), ""), of(compute, http.MethodGet, strings.Repeat("/a", 20*kib), ""),
		of(cyclades, http.MethodGet, "/servers/99999999999999999999999", ""), of(cyclades, http.MethodGet, "/servers/-0", ""),
		of(compute, http.MethodPut, "/servers/{server}/tags/"+strings.Repeat("%F0%9F%98%80", 4*kib), ""), of(compute, http.MethodGet, "/servers/%ff%00", ""),
		of(compute, http.MethodGet, "/servers/../../../identity/v3/users", ""), of(compute, http.MethodGet, "//servers//", ""),
		of(identity, http.MethodGet, "/users/"+strings.Repeat("%2f", 15*kib), ""), of(identity, http.MethodGet, "/users/%ff", ""),
		of(compute, http.MethodGet, "/servers?limit=-1&marker="+strings.Repeat("m", 50*kib), ""), of(compute, http.MethodGet, "/servers?limit=1e300&sort_key="+strings.Repeat("s,", 10*kib), ""),
		of(compute, http.MethodGet, "/servers?tags="+strings.Repeat("t,", 20*kib), ""), of(cyclades, http.MethodGet, "/servers?changes-since=%00", ""),
		of(compute, http.MethodGet, "/servers/detail?"+strings.Repeat("a=b&", 12*kib), ""), of(compute, http.MethodGet, "/servers?name=(a*)*b", ""),
		of(compute, "BREW", "/servers", ""), of(identity, http.MethodTrace, "/users", ""), of(compute, http.MethodOptions, "/servers/{server}/tags", ""),
	}, nil},
	{"headers about servers", []request{
		versioned("compute 2.999"), versioned("compute 3.1"), versioned("compute 2.0"), versioned("compute 99999999999999999999.1"), versioned("compute latest latest"),
		versioned("compute 2." + strings.Repeat("9", 50*kib)), versioned(strings.Repeat("compute 2.1,", 4*kib)), versioned("\xff"),
		{api: compute, method: http.MethodGet, path: "/servers", header: http.Header{"X-Auth-Token": {strings.Repeat("t", 50*kib)}}},
		{api: identity, method: http.MethodGet, path: "/auth/tokens", header: http.Header{"X-Subject-Token": {strings.Repeat("t", 50*kib)}}},
		{api: identity, method: http.MethodGet, path: "/auth/tokens", header: http.Header{"X-Subject-Token": {"\xff"}}},
		{api: compute, method: http.MethodGet, path: "/servers", header: http.Header{"X-Flood": strings.Split(strings.Repeat("x ", 10*kib), " ")}, unread: true},
		{api: compute, method: http.MethodPost, path: "/servers", body: "{}", header: http.Header{"Content-Type": {strings.Repeat("a/b;", 10*kib)}}},
		{api: compute, method: http.MethodGet, path: "/servers", anonymous: true},
	}, []string{"406", "406", "406", "400", "400", "*"}},
}

// serverRequest is a random one of somebody who has servers.
func (h hostility) serverRequest() request {
	a := pick(h, compute, compute, compute, cyclades, identity)
	r := request{api: a, method: pick(h, http.MethodGet, http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPost, http.MethodDelete, "PATCH"), header: http.Header{}, anonymous: h.IntN(10) == 0}
	if h.IntN(2) == 0 {
		r.header["Openstack-Api-Version"] = []string{"compute 2." + h.number()}
	}
	if a == identity {
		r.path = pick(h, "/auth/tokens", "/auth/catalog", "/auth/projects", "/users", "/users/x", "/users/x/projects", "/projects", "/projects/x", "/roles", "/domains/default",
			"/role_assignments?user.id="+h.number(), "/users/x/application_credentials", "/projects/x/users/y/roles/z", "/nosuch")
		r.body = `{` + pick(h, `"auth"`, `"user"`, `"project"`, `"application_credential"`, h.text()) + `:` + pick(h, h.value(4), `{"identity":`+h.value(4)+`,"scope":`+h.value(2)+`}`,
			`{"name":`+h.text()+`,"password":`+h.text()+`,"enabled":`+h.value(1)+`}`) + `}`
		return r
	}
	r.path = pick(h, "/servers", "/servers", "/servers", "/servers/detail", "/servers?limit="+h.number(), "/servers?status="+h.number()+"&tags=a,b", "/servers/{server}", "/servers/1", "/servers/{server}/action",
		"/servers/{server}/tags", "/servers/{server}/tags/y", "/servers/{server}/metadata", "/servers/{server}/metadata/k", "/flavors", "/flavors/detail", "/flavors/1", "/images", "/limits", "/extensions", "/nosuch")
	member := func() string {
		return pick(h, `"name"`, `"flavorRef"`, `"imageRef"`, `"networks"`, `"metadata"`, `"tags"`, `"description"`, `"min_count"`, `"availability_zone"`, `"personality"`, h.text()) + ":" + h.value(3)
	}
	switch h.IntN(4) {
	case 0:
		r.body = h.value(4)
	case 1:
		r.body = `{` + pick(h, `"reboot"`, `"os-start"`, `"os-stop"`, `"resize"`, `"tags"`, `"metadata"`, `"meta"`, h.text()) + `:` + h.value(3) + `}`
	default:
		r.body = `{"server":{"name":` + h.text() + `,"flavorRef":"{flavor}","imageRef":"{image}","networks":` + pick(h, `"none"`, `"auto"`, h.value(2)) + `,` + member() + `,` + member() + `}}`
	}
	return r
}
