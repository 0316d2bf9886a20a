package secret

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
	"github.com/drover-project/drover/yaql/yaqljson"
	"pgregory.net/rapid"
)

// the keys of real environments that hold secrets, and some that do not.
func TestUsualSecrets(t *testing.T) {
	rules := rulesOf(t)
	for path, want := range map[string]bool{
		"db.password": true, "database.passwd": true, "keystone.admin_token": true, "cinder.fixed_key": true, "heat.auth_encryption_key": true,
		"ironic.swift_tempurl_key": true, "storage.radosgw_key": true, "public_ssl.cert_data": true, "ssh.private_key": true, "KEYSTONE.Admin_Password": true,
		"credentials.user": true, "x.passphrase": true, "shared_secret": true,
		"db.host": false, "keys": false, "key": false, "pass": false, "cert": false, "monkey": false,
	} {
		if got := isSecret(rules, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func isSecret(r *Rules, path string) bool {
	is := false
	words := strings.Split(path, ".")
	for i := range words {
		is = r.secret(words[:i+1], is)
	}
	return is
}

func rulesOf(t testing.TB, own ...string) *Rules {
	t.Helper()
	r, err := NewRules(own)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The last rule that fits counts; what is below a secret is one, unless it is taken back.
func TestOwnRules(t *testing.T) {
	rules := rulesOf(t, "db.pin", "!storage.mon_key", "vault", "!vault.address", "a.*.b", "!PUBLIC_KEY", "ssh.public_key")
	for path, want := range map[string]bool{
		"db.pin": true, "x.db.pin": false, "storage.mon_key": false, "other.mon_key": true, "vault.x.y": true, "x.vault": true, "vault.address": false,
		"a.1.b": true, "a.1.2.b": false, "deep.public_key": false, "ssh.public_key": true,
	} {
		if got := isSecret(rules, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for _, wrong := range []string{"", "!", "a..b", ".a"} {
		if _, err := NewRules([]string{wrong}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, x := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*a*", "bab", true}, {"*_key", "x_key", true}, {"*_key", "x_keys", false},
		{"a*b*c", "aXbYbc", true}, {"a*b*c", "acb", false}, {"a*a", "a", false},
	} {
		if got := fits(x.pattern, x.text); got != x.want {
			t.Errorf("%s on %s: %v", x.pattern, x.text, got)
		}
	}
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := yaqljson.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func veilOf(t testing.TB, v any, own ...string) *Veil {
	t.Helper()
	rules := rulesOf(t, own...)
	var texts []string
	rules.Collect(nil, v, func(s string) { texts = append(texts, s) })
	return NewVeil(rules, texts)
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	text, err := yaqljson.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestValuesAreHidden(t *testing.T) {
	v := decoded(t, `{"db":{"password":"hun\"ter2","host":"h","pin":1234,"use_password":true,"old_passwords":["one-two","three"]},`+
		`"url":"mysql://x:hun\"ter2@h","json":"{\"p\":\"hun\\\"ter2\"}","three":"three","n":[{"token":""},{"token":null}]}`)
	veil := veilOf(t, v, "db.pin")
	want := `{"db":{"password":"<redacted>","host":"h","pin":"<redacted>","use_password":true,"old_passwords":["<redacted>","<redacted>"]},` +
		`"url":"mysql://x:<redacted>@h","json":"{\"p\":\"<redacted>\"}","three":"three","n":[{"token":""},{"token":null}]}`
	if got := encoded(t, veil.Value(nil, v)); got != encoded(t, decoded(t, want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	set, err := yaql.NewSet("one-two")
	if err != nil {
		t.Fatal(err)
	}
	if got := encoded(t, veil.Value(nil, []any{set, yaql.Tuple{"one-two"}})); strings.Contains(got, "one-two") {
		t.Error(got)
	}
	for _, x := range []struct{ expression, path string }{
		{"$.db.pin", ""}, {"$node.db.pin", ""}, {"$.db", ".pin"}, {"$.db[0]", ".pin"}, {"$.a.where($.b)", "[0].password"},
	} {
		if got := veil.Found(x.expression, x.path, "1"); got != Mark {
			t.Errorf("%s%s: %v", x.expression, x.path, got)
		}
	}
	if got := veil.Found("$.pin", "", "1"); got != "1" {
		t.Errorf("another path: %v", got)
	}
	var none *Veil
	if none.Text("x") != "x" || none.Value(nil, 1) != 1 || none.Found("$.password", "", "x") != "x" || none.Error(nil) != nil {
		t.Error("no veil hides something")
	}
}

// A key of several lines is written line by line.
func TestLinesAreHidden(t *testing.T) {
	veil := veilOf(t, decoded(t, `{"private_key":"-----BEGIN-----\nMIIEabcdef\n  xyz123xyz  \nshort\n-----END-----\n"}`))
	if got := veil.Text("a MIIEabcdef b xyz123xyz short"); got != "a <redacted> b <redacted> short" {
		t.Error(got)
	}
}

func TestErrorsHideSecrets(t *testing.T) {
	v := NewValues([]string{"correct-horse"})
	err := v.Error(fault.New(fault.Busy, "no correct-horse").At("x").WithHint("try correct-horse"))
	if err.Error() != "no <redacted> (try <redacted>)" || !fault.Is(err, fault.Busy) {
		t.Errorf("%v", err)
	}
	same := fault.New(fault.Busy, "no horse")
	if !errors.Is(v.Error(same), same) {
		t.Error("another error")
	}
}

// A stream that is cut where Cut says shows what it would show in one piece, also one in which secrets overlap.
func TestStreamsAreCutBesideSecrets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.StringMatching(`[ab]{6,9}`), 1, 4).Draw(t, "secrets")
		parts := append(secrets, "aaaaaaaaaa", "abababab", "b", "c")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 30).Draw(t, "text"), "")
		piece := rapid.IntRange(40, 60).Draw(t, "piece")
		v := NewValues(secrets)
		var shown strings.Builder
		rest := text
		for len(rest) > piece {
			at := v.Cut(rest[:piece])
			if at <= 0 {
				t.Fatalf("nothing of %q is let go", rest[:piece])
			}
			shown.WriteString(v.Text(rest[:at]))
			rest = rest[at:]
		}
		shown.WriteString(v.Text(rest))
		if whole := v.Text(text); shown.String() != whole {
			t.Fatalf("%q became %q, and is %q in one piece", text, shown.String(), whole)
		}
	})
}

// What overlaps itself without end is let go in pieces, and never in none.
func TestASecretThatOverlapsItself(t *testing.T) {
	v := NewValues([]string{"000000"})
	line := strings.Repeat("0", 8192)
	if at := v.Cut(line); at < len(line)-6 || at%6 != 0 {
		t.Errorf("it is cut at %d", at)
	}
}

// A secret without end is looked for in pieces.
func TestLongSecretsAreHidden(t *testing.T) {
	long := strings.Repeat("0123456789abcdefghijkl", 500)
	v := NewValues([]string{long})
	if got := strings.ReplaceAll(v.Text("<"+long+">"), Mark, ""); got != "<>" {
		t.Errorf("left: %d bytes", len(got))
	}
	if n := len(v.Texts()[0]); n >= 2*longest {
		t.Errorf("a piece of %d bytes", n)
	}
}

// TestLinesOfFiles hides by the key what nobody knows the value of.
func TestLinesOfFiles(t *testing.T) {
	for line, want := range map[string]string{
		"password = hunter2":       "password = <redacted>",
		`  "admin_token": "x",`:    `  "admin_token": <redacted>`,
		"export DB_PASSWORD=a b":   "export DB_PASSWORD=<redacted>",
		"- db.secret: x":           "- db.secret: <redacted>",
		"password =":               "password =",
		"user = password":          "user = password",
		"the password is not told": "the password is not told",
		"host: db.example":         "host: db.example",
		"":                         "",
	} {
		if got := Line(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
