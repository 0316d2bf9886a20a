package compute_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// wish asks for something by one key of a body.
type wish struct {
	value string // as JSON
	// done reports whether a server is as was asked; nil for what is refused.
	done func(*server.Server) bool
}

func refused(value string) wish { return wish{value: value} }

func named(name string) func(*server.Server) bool {
	return func(s *server.Server) bool { return s.Name == name }
}

// wishes ask for something by each key that Nova's schemas have had from 2.1 to
// 2.96, and Cyclades' own, of requests that make a server.
var wishes = map[string]wish{
	"name":              {`"web7"`, named("web7")},
	"description":       {`"mine"`, func(s *server.Server) bool { return s.Description == "mine" }},
	"imageRef":          {`"http:\/\/here\/images\/` + noop + `"`, func(s *server.Server) bool { return s.Image.ID == noop }},
	"flavorRef":         {`2`, func(s *server.Server) bool { return s.Flavor.ID == "2" }},
	"metadata":          {`{"a":"b"}`, func(s *server.Server) bool { return s.Metadata["a"] == "b" }},
	"tags":              {`["a"]`, func(s *server.Server) bool { return s.Tags.Has(servertag.User, "a") }},
	"availability_zone": {`"nova"`, func(s *server.Server) bool { return s.Backend == "" }},
	"accessIPv4":        {`"192.0.2.7"`, func(s *server.Server) bool { return s.Told.IPv4 == "192.0.2.7" }},
	"accessIPv6":        {`"2001:db8:0::7"`, func(s *server.Server) bool { return s.Told.IPv6 == "2001:db8::7" }},
	"OS-DCF:diskConfig": {`"AUTO"`, func(s *server.Server) bool { return s.Told.Disk == "AUTO" }},
	"networks":          {`"auto"`, func(s *server.Server) bool { return s.NICs == 1 }},
	"min_count":         {`1`, func(*server.Server) bool { return true }},
	"max_count":         {`"1"`, func(*server.Server) bool { return true }},
	"project":           refused(`"other"`),

	"security_groups":            refused(`[{"name":"no-such-group"}]`),
	"config_drive":               refused(`true`),
	"adminPass":                  refused(`"secret"`),
	"key_name":                   {`"mine"`, func(s *server.Server) bool { return s.KeyName() == "mine" && s.Guest.PublicKey == publicKey }},
	"user_data":                  {`"IyEvYmluL3No"`, func(s *server.Server) bool { return s.Guest != nil }}, // it is forgotten soon: TestGuests
	"personality":                refused(`[{"path":"/etc/x","contents":""}]`),
	"trusted_image_certificates": refused(`["x"]`),
	"block_device_mapping":       refused(`[{"volume_id":"x"}]`),
	"block_device_mapping_v2":    refused(`[{"uuid":"x"}]`),
	"host":                       refused(`"node1"`),
	"hypervisor_hostname":        refused(`"node1"`),
	"hostname":                   refused(`"web"`),
	"return_reservation_id":      refused(`true`),
	"shared_to_project":          refused(`true`),
	"SNF:key_names":              refused(`["mine"]`),
	"somethingNew":               refused(`1`),
	"Name":                       refused(`"web8"`), // a key is as it is written
	"networks ":                  refused(`"none"`),
	"os:scheduler_hints":         {`{"group":"GROUP"}`, func(s *server.Server) bool { return len(s.Groups()) == 1 }},
	"OS-SCH-HNT:scheduler_hints": {`{"group":"GROUP"}`, func(s *server.Server) bool { return len(s.Groups()) == 1 }},
}

const noop = "5d7d4e4c-6f4c-4c8b-9a52-0d1f6c0e5a01"

// beside are the keys that stand beside the server.
var beside = []string{"os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"}

// TestDoneOrRefused: whatever a request asks for by whatever key is done, or else
// refused with the key's name, and nothing is made.
func TestDoneOrRefused(t *testing.T) {
	r := newRig(t)
	r.furnish()
	table := compute.Bodies["creation"]
	for _, key := range append(slices.Collect(maps.Keys(table["server"].In)), slices.Collect(maps.Keys(table))...) {
		if _, known := wishes[key]; !known && key != "server" {
			t.Errorf("no test asks by the key %s", key)
		}
	}
	for key, w := range wishes {
		before := r.engine.Servers().Len()
		a := r.ask(http.MethodPost, nova+"/servers", with(r.creationOf(into(key)), key, r.filled(w.value)))
		if w.done == nil {
			if r.explained(key, a, http.StatusBadRequest); !strings.Contains(a.text, strings.TrimSpace(key)) && key != "project" || r.engine.Servers().Len() != before {
				t.Errorf("%s: %s", key, a.text)
			}
			continue
		}
		made, _ := a.read(r)["server"].(map[string]any)["id"].(string)
		if s := r.engine.Servers().Get(made); s == nil || !w.done(s) {
			t.Errorf("%s: %d %s, and the server is %+v", key, a.status, a.text, s)
		}
	}
}

// with puts a value under a key of a body.
func with(body, key, value string) string {
	var whole, inner map[string]json.RawMessage
	_ = json.Unmarshal([]byte(body), &whole)
	_ = json.Unmarshal(whole["server"], &inner)
	if slices.Contains(beside, key) {
		whole[key] = json.RawMessage(value)
	} else if inner[key] = json.RawMessage(value); inner != nil {
		whole["server"], _ = json.Marshal(inner) //nolint:errchkjson // it was read before
	}
	out, _ := json.Marshal(whole) //nolint:errchkjson // it was read before
	return string(out)
}

// TestWhatIsSoAnyway may be said: clients write it without being asked.
func TestWhatIsSoAnyway(t *testing.T) {
	r := newRig(t)
	for key, value := range map[string]string{
		"security_groups": `[{"name":"default"}]`, "config_drive": `false`, "return_reservation_id": `"False"`, "key_name": `null`, "user_data": `""`,
		"personality": `[ ]`, "block_device_mapping_v2": `[ ]`, "adminPass": `""`, "somethingNew": `{}`, "os:scheduler_hints": `{}`, "networks": `"n\u006fne"`,
		"project": `"` + r.home.ID + `"`, "accessIPv4": `""`, "availability_zone": `""`,
	} {
		if a := r.ask(http.MethodPost, nova+"/servers", with(r.creationOf(nil), key, value)); a.status != http.StatusAccepted {
			t.Errorf("%s %s: %d %s", key, value, a.status, a.text)
		}
	}
	for key, values := range map[string][]string{
		"networks":   {`[{"uuid":"11111111-2222-3333-4444-555555555555"}]`, `[{"uuid":"bad"}]`, `[{"port":"x"}]`, `[{"fixed_ip":"1.2.3.4"}]`, `[{}]`, `{}`, `1`},
		"accessIPv4": {`"not-an-ip"`, `"2001:db8::1"`, `1`}, "accessIPv6": {`"zz"`, `"192.0.2.1"`, `"fe80::1%eth0"`}, "OS-DCF:diskConfig": {`"auto"`, `1`},
	} {
		for _, value := range values {
			r.explained(key+" "+value, r.ask(http.MethodPost, nova+"/servers", with(r.creationOf(nil), key, value)), http.StatusBadRequest)
		}
	}
}

// TestChangesAreDoneOrRefused: also those of a server that is there.
func TestChangesAreDoneOrRefused(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	for key := range compute.Bodies["update"]["server"].In {
		w := wishes[key]
		a := r.ask(http.MethodPut, at(nova, s), `{"server":{"`+key+`":`+w.value+`}}`)
		if w.done == nil {
			r.explained(key, a, http.StatusBadRequest)
		} else if a.status != http.StatusOK || !w.done(r.engine.Servers().Get(s.ID)) {
			t.Errorf("%s: %d %s", key, a.status, a.text)
		}
	}
	shown := r.ask(http.MethodGet, at(nova, s), "").read(r)["server"].(map[string]any)
	if shown["accessIPv4"] != "192.0.2.7" || shown["accessIPv6"] != "2001:db8::7" || shown["OS-DCF:diskConfig"] != "AUTO" {
		t.Errorf("it is shown as %v", shown)
	}
	if a := r.ask(http.MethodPut, at(cyclades, s), `{"server":{"accessIPv4":""}}`); a.status != http.StatusNoContent || r.engine.Servers().Get(s.ID).Told.IPv4 != "" {
		t.Errorf("taking an address back: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodPut, at(nova, s), `{"server":{"description":null,"accessIPv6":null}}`); a.status != http.StatusOK || r.engine.Servers().Get(s.ID).Description != "" ||
		r.engine.Servers().Get(s.ID).Told.IPv6 == "" {
		t.Errorf("taking the description away: %d %s", a.status, a.text)
	}
	for _, c := range []struct{ method, below, body string }{
		{"PUT", "", `{"server":{"flavorRef":"2"}}`}, {"PUT", "", `{"server":{"description":7}}`}, {"PUT", "", `{"server":{"accessIPv4":"x"}}`}, {"PUT", "", `{"name":"x"}`},
		{"PUT", "", `{}`}, {"PUT", "", `{"server":null}`}, {"PUT", "", `{"server":{"name":null}}`},
		{"POST", "/metadata", `{"metadata":{"a":"b"},"more":1}`}, {"PUT", "/metadata/a", `{"meta":{"a":"b"},"more":1}`}, {"PUT", "/tags", `{"tags":["a"],"more":1}`},
	} {
		r.explained(c.body, r.ask(c.method, at(nova, s)+c.below, c.body), http.StatusBadRequest)
	}
	for name, keys := range compute.Arguments() {
		if _, has := keys["type"]; has {
			r.explained(name, r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":{"type":"SOFT","force":true}}`), http.StatusBadRequest)
			continue
		}
		for _, argument := range []string{`{"force":true}`, `"now"`, `1`} {
			r.explained(name+argument, r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":`+argument+`}`), http.StatusBadRequest)
		}
	}
	if s := r.engine.Servers().Get(s.ID); len(s.Tasks) > 0 || s.Stopped || s.Metadata["a"] != "" {
		t.Errorf("something was done: %+v", s)
	}
}

// TestARefusedBodyGivesItsRoomBack: more bodies that are too large than there is room for at once are followed by one that is not.
func TestARefusedBodyGivesItsRoomBack(t *testing.T) {
	r := newRig(t)
	s := r.create("web")
	large := `{"metadata":{"a":"` + strings.Repeat("x", 256<<10) + `"}}`
	for range 16<<20/(256<<10) + 1 {
		r.explained("a large body", r.ask("POST", at(nova, s)+"/metadata", large), http.StatusRequestEntityTooLarge)
	}
	if a := r.ask("POST", at(nova, s)+"/metadata", `{"metadata":{"a":"1"}}`); a.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", a.status, a.text)
	}
}
