package tagsync_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

// empty is a cluster without instances, on which nothing happens.
type empty struct{ tagsync.Backend }

func (empty) Has(string) bool { return false }

// TestNumbersBeginBehindTheFloor and not below the first number of the settings; what cannot be read is no reason to give one again.
func TestNumbersBeginBehindTheFloor(t *testing.T) {
	for what, c := range map[string]struct {
		newest, floor string
		first, want   int64
		aside         string
	}{
		"a new cluster":               {"", "", 0, 1, ""},
		"one with a first number":     {"", "", 700, 700, ""},
		"the first number is past":    {"900", "", 700, 901, ""},
		"a restored cluster":          {"7", `{"number":1000007}`, 0, 1000008, ""},
		"one that went on":            {"1000010", `{"number":1000007}`, 0, 1000011, ""},
		"restored, without servers":   {"", `{"number":1000000}`, 1, 1000001, ""},
		"a floor that cannot be read": {"7", `[]`, 0, 1000008, "the floor of the numbers of servers cannot be read"},
	} {
		t.Run(what, func(t *testing.T) {
			s := stores.Open(t, "")
			defer func() { _ = s.Close() }()
			for key, text := range map[store.Key]string{tagsync.NumberKey: c.newest, tagsync.FloorKey: c.floor} {
				if text == "" {
					continue
				}
				if _, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: key, Value: []byte(text)}}}); err != nil {
					t.Fatal(err)
				}
			}
			e, err := tagsync.Open(t.Context(), tagsync.Config{Store: s, Picture: picture.New(), Backends: map[string]tagsync.Backend{"": empty{}},
				Policy: servertag.DefaultPolicy(), Images: server.DefaultImages, Prefix: "snf-", First: c.first, NewUUID: testkit.NewUUID, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if aside := strings.Join(e.Unreadable(), "\n"); !strings.HasPrefix(aside, c.aside) || (aside == "") != (c.aside == "") {
				t.Errorf("set aside is %q", aside)
			}
			e.Close() // so that nothing is done about the server
			made, err := e.Create(t.Context(), &tagsync.Wish{Name: "web", Flavor: server.DefaultFlavors()[0], Image: e.Images()[0]})
			if err != nil || made.Number != c.want || made.Instance != server.InstanceName("snf-", c.want) {
				t.Errorf("its first server is %+v, %v; want number %d", made, err, c.want)
			}
		})
	}
}
