package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/version"
)

const (
	// keptLog is how much of its own log a controller keeps for those who look for what went wrong, in bytes.
	keptLog = 4 << 20
	// bundlePath is where a controller tells another what it has for that.
	bundlePath = "/peer/bundle"
	// bundleTime bounds how long that may take, and profileTime is how long processors are watched for it.
	bundleTime  = 8 * time.Second
	profileTime = time.Second
	// maxGoroutines bounds what is told of goroutines, in bytes.
	maxGoroutines = 4 << 20
	// maxBundle bounds what another controller answers, in bytes: its log and its goroutines, in Base64, and as much for the rest.
	maxBundle = 32 << 20
)

// bundleParts are what a controller tells of itself: one entry adds one file.
var bundleParts = []struct {
	file string
	tell func(ctx context.Context, m *member) ([]byte, error)
}{
	{"version.json", func(_ context.Context, m *member) ([]byte, error) {
		build := version.Current()
		return json.MarshalIndent(map[string]any{"version": build.Version, "commit": build.Commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			"processors": runtime.GOMAXPROCS(0), "started": m.started, "now": time.Now().UTC()}, "", "  ")
	}},
	{"settings.toml", func(_ context.Context, m *member) ([]byte, error) { return []byte(m.settings), nil }},
	{"health.json", func(ctx context.Context, m *member) ([]byte, error) {
		return json.MarshalIndent(m.tellHealth(ctx), "", "  ")
	}},
	{"ready.json", func(_ context.Context, m *member) ([]byte, error) { return json.MarshalIndent(m.health(), "", "  ") }},
	{"metrics.txt", func(_ context.Context, m *member) ([]byte, error) { return m.figuresText() }},
	{"log.txt", func(_ context.Context, m *member) ([]byte, error) { return m.recent.Text(), nil }},
	{"goroutines.txt", func(context.Context, *member) ([]byte, error) {
		var out bytes.Buffer
		err := pprof.Lookup("goroutine").WriteTo(&out, 2)
		return out.Bytes()[:min(out.Len(), maxGoroutines)], err
	}},
	{"heap.pb.gz", func(context.Context, *member) ([]byte, error) {
		var out bytes.Buffer
		err := pprof.Lookup("heap").WriteTo(&out, 0)
		return out.Bytes(), err
	}},
	{"cpu.pb.gz", func(ctx context.Context, _ *member) ([]byte, error) {
		var out bytes.Buffer
		if err := pprof.StartCPUProfile(&out); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
		select {
		case <-time.After(profileTime):
		case <-ctx.Done():
		}
		pprof.StopCPUProfile()
		return out.Bytes(), nil
	}},
}

// figuresText are all figures, as they are scraped.
func (m *member) figuresText() ([]byte, error) {
	families, err := m.figures.all.Gather()
	var out bytes.Buffer
	for _, f := range families {
		if _, wrong := expfmt.MetricFamilyToText(&out, f); wrong != nil {
			return nil, wrong
		}
	}
	return out.Bytes(), err
}

// ownBundle is what this controller tells of itself.
func (m *member) ownBundle(ctx context.Context) []health.File {
	files := make([]health.File, len(bundleParts))
	var all sync.WaitGroup
	for i, part := range bundleParts {
		all.Go(func() { files[i] = bundleFile(ctx, m, part.file, part.tell) })
	}
	all.Wait()
	return files
}

// bundleFile is one file, which says so where its content cannot be told.
func bundleFile(ctx context.Context, m *member, name string, tell func(context.Context, *member) ([]byte, error)) health.File {
	text, err := tell(ctx, m)
	if err != nil {
		text = fmt.Appendf(text, "cannot be told: %v\n", err)
	}
	return health.File{Name: name, Data: text}
}

// bundle is what all controllers tell of themselves, and how the cluster is. Those that do not answer are named.
func (m *member) bundle(ctx context.Context) health.Bundle {
	out := health.Bundle{Files: []health.File{bundleFile(ctx, m, "health.json", func(ctx context.Context, m *member) ([]byte, error) {
		return json.MarshalIndent(m.clusterHealth(ctx), "", "  ")
	})}, Silent: []string{}}
	if m.group == nil {
		out.Files = append(out.Files, within("controller", m.ownBundle(ctx))...)
		return out
	}
	m.group.bundles(ctx, &out)
	return out
}

// within are files in a directory.
func within(dir string, files []health.File) []health.File {
	for i := range files {
		files[i].Name = dir + "/" + files[i].Name
	}
	return files
}

// bundles adds what each controller of the group tells.
func (g *group) bundles(ctx context.Context, out *health.Bundle) {
	peers, _ := g.known(ctx) // what the store says of itself is in the report
	told, wrong := make([][]health.File, len(peers)), make([]error, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() {
			if p.Instance == g.self.Instance {
				told[i] = g.m.ownBundle(ctx)
				return
			}
			wrong[i] = g.askMuch(ctx, p, http.MethodGet, bundlePath, bundleTime, maxBundle, &told[i])
		})
	}
	asked.Wait()
	for i, p := range peers {
		if wrong[i] != nil {
			out.Silent = append(out.Silent, p.Name+": "+wrong[i].Error())
			continue
		}
		out.Files = append(out.Files, within(dirOfMember(p.Name), told[i])...)
	}
}

// dirOfMember is the directory of a controller in a bundle: its name, as far as that can be part of a path.
func dirOfMember(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, "controller-"+name)
}

// known are the controllers of the group in the order of their names: those that are remembered where the store does not tell, which is the
// error.
func (g *group) known(ctx context.Context) (peers []peerRecord, err error) {
	limit, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if peers, err = g.peers(limit); err != nil {
		peers = g.roster.others("")
	}
	if !slices.ContainsFunc(peers, func(p peerRecord) bool { return p.Instance == g.self.Instance }) {
		peers = append(peers, g.self)
	}
	slices.SortFunc(peers, func(a, b peerRecord) int { return strings.Compare(a.Name, b.Name) })
	return peers, err
}

// tellBundle answers another controller.
func (g *group) tellBundle(w http.ResponseWriter, r *http.Request) {
	if err := json.NewEncoder(w).Encode(g.m.ownBundle(r.Context())); err != nil {
		g.m.log.Debug("another controller did not wait for the answer", "error", err)
	}
}
