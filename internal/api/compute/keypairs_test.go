package compute_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestKeyPairs(t *testing.T) {
	r := newRig(t)
	old := []string{"X-Openstack-Nova-Api-Version", "2.1"}
	made := r.ask(http.MethodPost, nova+"/os-keypairs", `{"keypair":{"name":"made"}}`, old...)
	if made.status != http.StatusOK || !strings.Contains(made.text, "PRIVATE KEY") || strings.Contains(made.text, `"type"`) {
		t.Errorf("a new one, before 2.2: %d %s", made.status, made.text)
	}
	brought := r.ask(http.MethodPost, nova+"/os-keypairs", `{"keypair":{"name":"brought","type":"ssh","public_key":"`+publicKey+`"}}`)
	if brought.status != http.StatusCreated || strings.Contains(brought.text, "private_key") || !strings.Contains(brought.text, `"type":"ssh"`) {
		t.Errorf("one that is brought: %d %s", brought.status, brought.text)
	}
	for body, status := range map[string]int{
		`{"keypair":{"name":"made"}}`: 409, `{"keypair":{"name":"a/b"}}`: 400, `{"keypair":{"name":""}}`: 400, `{"keypair":{"name":"x","public_key":""}}`: 400,
		`{"keypair":{"name":"x","public_key":"mine"}}`: 400, `{"keypair":{"name":"x","type":"x509"}}`: 400, `{"keypair":{"name":"x","user_id":"other"}}`: 403, `{}`: 400,
		`{"keypair":{"name":"x","more":1}}`: 400,
	} {
		r.explained(body, r.ask(http.MethodPost, nova+"/os-keypairs", body, "X-Openstack-Nova-Api-Version", "2.91"), status)
	}
	list := r.ask(http.MethodGet, nova+"/os-keypairs", "")
	if strings.Count(list.text, `"name"`) != 2 || strings.Contains(list.text, "PRIVATE") {
		t.Errorf("the list: %s", list.text)
	}
	if page := r.ask(http.MethodGet, nova+"/os-keypairs?limit=1", ""); !strings.Contains(page.text, `"brought"`) || !strings.Contains(page.text, "marker=brought") || strings.Contains(page.text, `"made"`) {
		t.Errorf("a page: %s", page.text)
	}
	if next := r.ask(http.MethodGet, nova+"/os-keypairs?marker=brought", ""); strings.Contains(next.text, `"brought"`) || !strings.Contains(next.text, `"made"`) {
		t.Errorf("the next page: %s", next.text)
	}
	if one := r.ask(http.MethodGet, nova+"/os-keypairs/made", ""); !strings.Contains(one.text, `"fingerprint"`) || !strings.Contains(one.text, `"created_at"`) || !strings.Contains(one.text, `"id":`) || strings.Contains(one.text, "PRIVATE") {
		t.Errorf("one: %s", one.text)
	}
	_, theirs := r.join("bob", "theirs", "member")
	if a := r.ask(http.MethodGet, nova+"/os-keypairs/made", "", "X-Auth-Token", theirs); a.status != http.StatusNotFound {
		t.Errorf("another user sees %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodDelete, nova+"/os-keypairs/made", "", "X-Auth-Token", theirs); a.status != http.StatusNotFound {
		t.Errorf("another user's removal: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodDelete, nova+"/os-keypairs/made", ""); a.status != http.StatusNoContent {
		t.Errorf("a removal: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodDelete, nova+"/os-keypairs/brought", "", old...); a.status != http.StatusAccepted {
		t.Errorf("a removal before 2.2: %d %s", a.status, a.text)
	}
	if list := r.ask(http.MethodGet, nova+"/os-keypairs", ""); list.text != `{"keypairs":[]}` {
		t.Errorf("left are %s", list.text)
	}
}
