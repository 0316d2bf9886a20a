package debug

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/openstack"
)

const burninHelp = `Test a deployment from outside, as its users see it: make a server with tags, and
add, list, check, delete, replace and clear tags, with names of all kinds, up to the
limits and beyond, and with tags that exclude one another. What was made is
deleted at the end, also when a test fails. The cloud is found as by drover
server.

Exit statuses: 0 all tests passed; 1 some failed.`

// BurninCommand returns the command "burnin".
func BurninCommand(sh *shell.Shell) *cobra.Command {
	b := &burnin{sh: sh}
	cmd := shell.Heeding(servers.AsUser, &cobra.Command{
		Use: "burnin", Short: "Test a deployment of the Compute API from outside", Long: burninHelp, Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if b.cloud, err = servers.Cloud(cmd.Context(), sh); err != nil {
				return err
			}
			if err := b.choose(cmd.Context()); err != nil {
				return err
			}
			return b.run(cmd.Context())
		},
	})
	cmd.Flags().StringVar(&b.flavor, "flavor", "", "name or id of the flavor (default: the smallest)")
	cmd.Flags().StringVar(&b.image, "image", "", "name or id of the image (default: the first)")
	cmd.Flags().StringVar(&b.zone, "availability-zone", "", "where the server is made (default: wherever the cloud likes)")
	cmd.Flags().DurationVar(&b.patience, "timeout", 5*time.Minute, "how long a test may wait for what is to come")
	return cmd
}

// burnin is a run of the tests.
type burnin struct {
	sh            *shell.Shell
	cloud         *openstack.Client
	flavor, image string
	zone          string
	patience      time.Duration
	name, id      string // of the server
	results       []burninResult
}

// burninResult is how a test went.
type burninResult struct {
	Test    string  `json:"test"`
	Passed  bool    `json:"passed"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// burninTests are run in this order. Each begins with what it needs of tags; if
// the first one fails there is no server to work with, and the others are not begun.
var burninTests = []struct {
	name string
	run  func(*burnin, context.Context) error
}{
	{"a server comes with its tags", (*burnin).create},
	{"tags reach the cluster", (*burnin).converges},
	{"tags of a server can be cleared", (*burnin).clears},
	{"an added tag is read at once", (*burnin).adds},
	{"a tag can be deleted right after it was added", (*burnin).deletes},
	{"replacing keeps what stays", (*burnin).replaces},
	{"names of all scripts come back as they were", (*burnin).unicode},
	{"lists can be filtered by tags", (*burnin).filters},
	{"names that are no tags are refused", (*burnin).refuses},
	{"there is a limit of tags", (*burnin).limits},
	{"tags that exclude one another are refused", (*burnin).clashes},
	{"no path reaches another resource", (*burnin).paths},
}

// choose takes the smallest flavor and the first image if none is named.
func (b *burnin) choose(ctx context.Context) error {
	if b.flavor == "" {
		flavors, err := b.cloud.Flavors(ctx)
		if err != nil {
			return err
		}
		if len(flavors) == 0 {
			return fault.New(fault.NotFound, "the cloud has no flavors")
		}
		b.flavor = slices.MinFunc(flavors, func(x, y openstack.Flavor) int { return x.RAM - y.RAM }).ID
	}
	if b.image == "" {
		images, err := b.cloud.Images(ctx)
		if err != nil {
			return err
		}
		if len(images) == 0 {
			return fault.New(fault.NotFound, "the cloud has no images")
		}
		b.image = images[0].ID
	}
	b.name = "burnin-" + strings.ToLower(rand.Text()[:10])
	return nil
}

func (b *burnin) run(ctx context.Context) error {
	for i, test := range burninTests {
		passed := b.test(ctx, test.name, test.run)
		if i == 0 && !passed || ctx.Err() != nil {
			break
		}
	}
	if b.id != "" {
		b.test(context.WithoutCancel(ctx), "the server can be deleted", (*burnin).remove)
	}
	if err := b.sh.Show(b.results, b.table); err != nil {
		return err
	}
	if slices.ContainsFunc(b.results, func(r burninResult) bool { return !r.Passed }) {
		return shell.ErrFailed
	}
	return nil
}

func (b *burnin) test(ctx context.Context, name string, run func(*burnin, context.Context) error) (passed bool) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	begun := b.sh.Now()
	err := run(b, ctx)
	result := burninResult{Test: name, Passed: err == nil, Seconds: b.sh.Now().Sub(begun).Seconds()}
	if err != nil {
		result.Error = err.Error()
	}
	b.results = append(b.results, result)
	return result.Passed
}

func (b *burnin) table() error {
	var lines strings.Builder
	passed := 0
	for _, r := range b.results {
		verdict := "failed"
		if r.Passed {
			verdict = "passed"
			passed++
		}
		lines.WriteString(strings.TrimSuffix(verdict+"  "+r.Test+": "+r.Error, ": ") + "\n")
	}
	return b.sh.Printf("%s%d of %d tests passed\n", &lines, passed, len(b.results))
}

func (b *burnin) create(ctx context.Context) error {
	var err error
	tags := []string{"burnin-1", "burnin 2"}
	if b.id, err = b.cloud.Create(ctx, &openstack.Wish{Name: b.name, Flavor: b.flavor, Image: b.image, Zone: b.zone, Tags: tags}); err != nil {
		return err
	}
	if _, err := servers.AwaitServer(ctx, b.cloud, b.id, "ACTIVE"); err != nil {
		return err
	}
	return b.has(ctx, tags...)
}

// has fails unless the server has exactly these tags, in each place that tells.
func (b *burnin) has(ctx context.Context, tags ...string) error {
	slices.Sort(tags)
	listed, err := b.cloud.Tags(ctx, b.id)
	if err != nil {
		return err
	}
	s, err := b.cloud.Server(ctx, b.id)
	if err != nil {
		return err
	}
	for where, got := range map[string][]string{"the list of tags": listed, "the server": s.Tags} {
		if slices.Sort(got); !slices.Equal(got, tags) {
			return fmt.Errorf("%s has the tags %q, want %q", where, got, tags)
		}
	}
	return nil
}

// converges waits until the cluster has the tags, where the deployment tells.
func (b *burnin) converges(ctx context.Context) error {
	tags, err := b.cloud.Tags(ctx, b.id)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		for {
			answer, err := b.cloud.Tag(ctx, http.MethodGet, b.id, tag)
			if err != nil {
				return err
			}
			if status := answer.Header.Get("Tag-Status"); status == "ACTIVE" || status == "" {
				break
			}
			const pause = 50 * time.Millisecond
			if err := servers.PauseFor(ctx, pause); err != nil {
				return fmt.Errorf("the tag %q is still %s", tag, answer.Header.Get("Tag-Status"))
			}
		}
	}
	return nil
}

func (b *burnin) clears(ctx context.Context) error {
	for range 2 { // also where there are none
		if err := b.cloud.Clear(ctx, b.id); err != nil {
			return err
		}
	}
	return b.has(ctx)
}

// answers fails unless a request about a tag is answered with a status.
func (b *burnin) answers(ctx context.Context, method, tag string, want int) error {
	answer, err := b.cloud.Tag(ctx, method, b.id, tag)
	got := openstack.StatusOf(answer, err)
	if got == 0 {
		return err
	}
	if got != want {
		return fmt.Errorf("%s of the tag %q is answered with %d, want %d", method, tag, got, want)
	}
	return nil
}

// step is a request about a tag, and the status of its answer.
type step struct {
	method, tag string
	want        int
}

func (b *burnin) steps(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		if err := b.answers(ctx, s.method, s.tag, s.want); err != nil {
			return err
		}
	}
	return nil
}

func (b *burnin) adds(ctx context.Context) error {
	err := b.steps(ctx, step{http.MethodGet, "added", 404}, step{http.MethodPut, "added", 201}, step{http.MethodPut, "added", 204}, step{http.MethodGet, "added", 204})
	if err == nil {
		err = b.has(ctx, "added")
	}
	if err != nil {
		return err
	}
	return b.clears(ctx)
}

func (b *burnin) deletes(ctx context.Context) error {
	if err := b.steps(ctx, step{http.MethodPut, "short", 201}, step{http.MethodDelete, "short", 204}, step{http.MethodGet, "short", 404},
		step{http.MethodDelete, "short", 404}, step{http.MethodPut, "short", 201}, step{http.MethodDelete, "short", 204}); err != nil {
		return err
	}
	return b.has(ctx)
}

func (b *burnin) replaces(ctx context.Context) error {
	for _, tags := range [][]string{{"a", "b"}, {"b", "c"}, {"c", "c", "b"}, {}} {
		want := slices.Compact(slices.Sorted(slices.Values(tags)))
		got, err := b.cloud.Replace(ctx, b.id, tags)
		if err != nil {
			return err
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("replaced by %q the server has %q", tags, got)
		}
		if err := b.has(ctx, want...); err != nil {
			return err
		}
	}
	return nil
}

// burninNames are names that must come back as they were; two are written with
// the same letters in different code points, and are different tags.
var burninNames = []string{"tag-νέο", "日本", "🙂", "caf\u00e9", "cafe\u0301", "a_b", "a*b", "a+b", "a b", "100%", "%41", "a~b", "k=v", "a::b", "a;b", "x?y", "h#h",
	"(x)", `a\b`, `"q"`, "web.json", "TAG", "tag"}

func (b *burnin) unicode(ctx context.Context) error {
	if _, err := b.cloud.Replace(ctx, b.id, burninNames); err != nil {
		return err
	}
	if err := b.has(ctx, slices.Clone(burninNames)...); err != nil {
		return err
	}
	if err := b.converges(ctx); err != nil {
		return err
	}
	for _, name := range burninNames {
		if err := b.steps(ctx, step{http.MethodGet, name, 204}, step{http.MethodDelete, name, 204}, step{http.MethodGet, name, 404}); err != nil {
			return err
		}
	}
	return b.has(ctx)
}

func (b *burnin) filters(ctx context.Context) error {
	own := b.name + "-tag" // no other server has it
	if _, err := b.cloud.Replace(ctx, b.id, []string{own, "common"}); err != nil {
		return err
	}
	for query, listed := range map[string]bool{
		"tags=" + own: true, "tags=" + own + ",common": true, "tags=" + own + ",x": false, "tags-any=" + own + ",x": true, "tags-any=x": false,
		"not-tags=" + own: false, "not-tags=" + own + ",x": true, "not-tags-any=" + own + ",x": false,
	} {
		values, err := url.ParseQuery(query + "&name=" + b.name)
		if err != nil {
			return err
		}
		found, err := b.cloud.Servers(ctx, values)
		if err != nil {
			return err
		}
		if got := len(found) == 1; got != listed {
			return fmt.Errorf("the list of %s has %d servers", query, len(found))
		}
	}
	return b.clears(ctx)
}

func (b *burnin) refuses(ctx context.Context) error {
	for _, tag := range []string{"a,b", "a/b", strings.Repeat("x", 61), strings.Repeat("日", 61)} {
		if err := b.answers(ctx, http.MethodPut, tag, http.StatusBadRequest); err != nil {
			return err
		}
	}
	for _, tags := range [][]string{{"a", ""}, {"a", "b,c"}, {"a", strings.Repeat("x", 61)}} {
		if _, err := b.cloud.Replace(ctx, b.id, tags); !fault.Is(err, fault.Invalid) {
			return fmt.Errorf("the tags %q are not refused: %w", tags, err)
		}
	}
	return b.has(ctx)
}

// maxServerTags is how many tags a server may have, in all of OpenStack.
const maxServerTags = 50

func (b *burnin) limits(ctx context.Context) error {
	var tags []string
	for i := range maxServerTags {
		tags = append(tags, "n"+strconv.Itoa(i))
	}
	if _, err := b.cloud.Replace(ctx, b.id, tags); err != nil {
		return err
	}
	if err := b.answers(ctx, http.MethodPut, "one-more", http.StatusBadRequest); err != nil {
		return err
	}
	if _, err := b.cloud.Replace(ctx, b.id, append(tags, "one-more")); !fault.Is(err, fault.Invalid) {
		return fmt.Errorf("%d tags are not refused: %w", maxServerTags+1, err)
	}
	if err := b.has(ctx, tags...); err != nil {
		return err
	}
	if err := b.clears(ctx); err != nil {
		return err
	}
	longest := strings.Repeat("x", 60)
	return b.steps(ctx, step{http.MethodPut, longest, 201}, step{http.MethodDelete, longest, 204})
}

func (b *burnin) clashes(ctx context.Context) error {
	one, other := "high-availability", "high-performance"
	if _, err := b.cloud.Replace(ctx, b.id, []string{one, other}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), one) || !strings.Contains(err.Error(), other) {
		return fmt.Errorf("two tags that exclude one another are not refused by their names: %w", err)
	}
	if err := b.steps(ctx, step{http.MethodPut, one, 201}, step{http.MethodPut, other, 409}); err != nil {
		return err
	}
	if err := b.has(ctx, one); err != nil {
		return err
	}
	if _, err := b.cloud.Replace(ctx, b.id, []string{other}); err != nil {
		return fmt.Errorf("what goes still excludes what comes: %w", err)
	}
	return b.clears(ctx)
}

// paths sends what URLs make dangerous; the server must be there afterwards.
func (b *burnin) paths(ctx context.Context) error {
	for _, below := range [][]string{{"tags", "a", ".."}, {"tags", ".."}, {"tags", "."}, {""}, {"tags", ""}, {"tags", "a/b"}, {"tags", "a", "b"}} {
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			answer, err := b.cloud.Do(ctx, method, "compute", slices.Concat([]string{"servers", b.id}, below), nil, nil, nil)
			if status := openstack.StatusOf(answer, err); status < 400 || status >= 500 {
				return fmt.Errorf("%s of %q is answered with %d", method, below, status)
			}
		}
	}
	return b.has(ctx)
}

func (b *burnin) remove(ctx context.Context) error {
	if err := b.cloud.Delete(ctx, b.id); err != nil {
		return err
	}
	return servers.AwaitGone(ctx, b.cloud, b.id)
}
