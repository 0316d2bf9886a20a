package rapi_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestInstanceLife(t *testing.T) {
	r := newRig(t, rigOptions{})
	const path = "/2/instances/web1.gntpeer.example"
	r.create("web1.gntpeer.example")
	r.succeed(http.MethodPut, path+"/shutdown", nil)
	r.succeed(http.MethodPut, path+"/startup", nil)
	r.succeed(http.MethodPost, path+"/reboot?type=hard", nil)
	r.succeed(http.MethodPut, path+"/tags?tag=a&tag=b", nil)
	var tags []string
	r.do(http.MethodGet, path+"/tags", nil).decode(t, &tags)
	if strings.Join(tags, ",") != "a,b" {
		t.Errorf("tags = %v", tags)
	}
	r.succeed(http.MethodDelete, path+"/tags?tag=a", nil)
	r.succeed(http.MethodDelete, path, nil)
	if a := r.do(http.MethodGet, path, nil); a.status != http.StatusNotFound {
		t.Errorf("removed instance: %d %s", a.status, a.text)
	}
}
