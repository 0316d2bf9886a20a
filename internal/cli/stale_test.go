package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/luxiwire"
)

// answering serves one connection on a socket: each request is answered with no tags,
// as of a revision, and told.
func answering(t *testing.T) (path string, asked <-chan luxiwire.Request) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "luxi")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests := make(chan luxiwire.Request, 1)
	go func() {
		defer close(requests)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		frame, err := luxiwire.NewFrameReader(conn, luxiwire.MaxFrame).Next()
		if err != nil {
			return
		}
		req, err := luxiwire.ParseRequest(frame)
		if err != nil {
			return
		}
		if frame, err = luxiwire.ResultFrameAt([]string{"a"}, 17); err == nil {
			_ = luxiwire.WriteFrame(conn, frame)
		}
		requests <- req
	}()
	return path, requests
}

// What a controller that stands by may answer is what the user said, and the user is
// told how old that is.
func TestStaleIsAskedFor(t *testing.T) {
	for args, want := range map[string]struct {
		stale bool
		said  string
	}{
		"tag list cluster":         {said: ""},
		"tag list cluster --stale": {stale: true, said: "not older than revision 17\n"},
	} {
		path, asked := answering(t)
		status, out, said := runWithout(t, append([]string{"drover", "--luxi", path}, strings.Fields(args)...)...)
		if status != shell.ExitOK || out != "a\n" || said != want.said {
			t.Errorf("%s: status %d, %q, %q", args, status, out, said)
		}
		if req := <-asked; req.Stale != want.stale {
			t.Errorf("%s asked with stale %v", args, req.Stale)
		}
	}
}
