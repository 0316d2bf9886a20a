package wire

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestAClosedConnectionIsAnAnswer: who closes the connection over a message, read or
// not, has answered it; that is compared like any other answer.
func TestAClosedConnectionIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		message string
		read    bool // at the other end, before it closes
		says    string
		want    string
	}{
		"read":               {message: "x", read: true, want: `""`},
		"read, in an answer": {message: "x", read: true, says: "half", want: `"half"`},
		"not read":           {message: "x", want: `""`},
		"not read to an end": {message: strings.Repeat("x", 4<<20), want: `""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(t.TempDir(), "s")
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				if tc.read {
					_, _ = conn.Read(make([]byte, 8))
				}
				_, _ = conn.Write([]byte(tc.says))
				_ = conn.Close()
			}()
			got, err := newSide(socket, "", "", "", nil).message(t.Context(), []byte(tc.message))
			if err != nil || string(got.LUXI) != tc.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
