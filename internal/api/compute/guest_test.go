package compute_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

const (
	publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBSlNqpjSJ7CsHz+lzPz4LkyhLl0wMWPBfQUcTdtMtL6 me@here"
	disk      = "5b7c7f7e-1111-4c8b-9a52-0d1f6c0e5a02" // an image that takes keys
)

// furnish shows an image that takes keys and user data, and puts by the key "mine" of who asks.
func (r *rig) furnish() {
	r.Helper()
	r.wired()
	if a := r.ask(http.MethodPost, nova+"/os-keypairs", `{"keypair":{"name":"mine","public_key":"`+publicKey+`"}}`); a.status != http.StatusCreated && a.status != http.StatusConflict {
		r.Fatalf("%d %s", a.status, a.text)
	}
	if r.group == "" {
		r.group = r.groupOf(`{"name":"any","policy":"soft-affinity"}`)
	}
}

// filled is a value with the group that furnish has made.
func (r *rig) filled(value string) string { return strings.ReplaceAll(value, "GROUP", r.group) }

// into is what a creation has to say besides for a key to be done.
func into(key string) map[string]any {
	if key == "key_name" || key == "user_data" {
		return map[string]any{"imageRef": disk, "flavorRef": "1"}
	}
	return map[string]any{}
}

// TestGuests: a machine is told its key and its user data by its creation; what may hold secrets is shown to nobody, and not kept when the machine was told.
func TestGuests(t *testing.T) {
	r := newRig(t)
	r.furnish()
	const told = "#!/bin/sh\necho hunter2-hunter2\n"
	body := into("user_data")
	body["key_name"], body["user_data"] = "mine", base64.StdEncoding.EncodeToString([]byte(told))
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(body))
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	if s := r.settled(id); s == nil || s.Status() != server.Active {
		t.Fatalf("%d %s: %+v", a.status, a.text, s)
	}
	op := r.cloud.newest()
	if op.Map("osparams")["ssh_keys"] != publicKey || len(op.Map("osparams")) != 1 {
		t.Errorf("osparams are %v", op.Map("osparams"))
	}
	private, err := json.Marshal(op.Params["osparams_private"])
	r.check(err)
	if !strings.Contains(string(private), "hunter2") {
		t.Errorf("the machine is told %s", private)
	}
	for _, path := range []string{"/servers/" + id, "/servers/detail"} {
		if shown := r.ask(http.MethodGet, nova+path, ""); strings.Contains(shown.text, "hunter2") || !strings.Contains(shown.text, `"key_name":"mine"`) {
			t.Errorf("%s shows %s", path, shown.text)
		}
	}
	for query, found := range map[string]bool{"key_name=mine": true, "key_name=other": false} {
		if list := r.ask(http.MethodGet, nova+"/servers?"+query, ""); strings.Contains(list.text, id) != found {
			t.Errorf("%s: %s", query, list.text)
		}
	}
	r.until(id, "forgets", func(s *server.Server) bool { return s.Guest.UserData == "" })
	kept, err := r.store.Get(t.Context(), store.Key{Kind: tagsync.KindServer, ID: id})
	r.check(err)
	if strings.Contains(string(kept.Value), "hunter2") || !strings.Contains(string(kept.Value), `"key_name":"mine"`) {
		t.Errorf("kept is %s", kept.Value)
	}
	for _, c := range []struct{ key, value, image, want string }{
		{"key_name", "nosuch", disk, "Invalid key_name provided"}, {"key_name", "mine", noop, "takes no key_name"}, {"user_data", "IyEvYmluL3No", noop, "takes no user_data"},
		{"user_data", "no base64: hunter2", disk, "is not a 'base64'"}, {"user_data", strings.Repeat("AAAA", 20000), disk, "longer than 65535"},
	} {
		a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": c.image, "flavorRef": "1", c.key: c.value}))
		if r.explained(c.want, a, http.StatusBadRequest); !strings.Contains(a.text, c.want) || strings.Contains(a.text, "hunter2") {
			t.Errorf("%s %.40s: %s", c.key, c.value, a.text)
		}
	}
	// One whose creation fails forgets it, too: m1.medium does not fit.
	body["flavorRef"] = "3"
	a = r.ask(http.MethodPost, nova+"/servers", r.creationOf(body))
	id, _ = a.read(r)["server"].(map[string]any)["id"].(string)
	if s := r.settled(id); s.Status() != server.Failed || s.Guest.UserData != "" {
		t.Errorf("one that failed is %s and knows %q", s.Status(), s.Guest.UserData)
	}
}
