package app

import (
	"bytes"
	"strings"
	"testing"
)

// TestPasswordsAreToldWhereAskedForAlone announces a controller to a person, and to what keeps all that it is told.
func TestPasswordsAreToldWhereAskedForAlone(t *testing.T) {
	ready := Ready{RAPI: "https://a:1", RAPIUser: "drover", RAPIPassword: "s3cret", LUXI: "/l", Identity: "http://a/identity/v3",
		OSUsername: "demo", OSPassword: "s3cret", OSProject: "demo"}
	for _, c := range []struct {
		what      announcement
		has, lack []string
	}{
		{announcement{Ready: ready, passwords: true, data: "/d"}, []string{"user drover   password s3cret", "OS_PASSWORD=s3cret", "OS_PROJECT_NAME=demo", "OS_COMPUTE_API_VERSION=2.73"}, nil},
		{announcement{Ready: ready, data: "/d"}, []string{"user drover   password in /d/rapi/password", "password in /d/os_password"}, []string{"s3cret", "console"}},
		{announcement{Ready: Ready{RAPI: "https://a:1"}, passwords: true, data: "/d", users: "/etc/drover/users"}, []string{"accounts in /etc/drover/users"}, []string{"password"}},
		{announcement{Ready: ready, guest: true}, []string{"instance console guest1"}, nil},
		{announcement{Ready: Ready{RAPI: "https://a:1"}, data: "/d"}, []string{"accounts in /d/rapi/users"}, []string{"password"}},
	} {
		var out bytes.Buffer
		if err := c.what.write(&out); err != nil {
			t.Fatal(err)
		}
		for _, text := range c.has {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%q is not told:\n%s", text, out.String())
			}
		}
		for _, text := range c.lack {
			if strings.Contains(out.String(), text) {
				t.Errorf("%q is told:\n%s", text, out.String())
			}
		}
	}
}
