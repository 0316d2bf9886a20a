package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
)

// The targets of tags, and how much is measured.
const (
	tagAddTarget    = 6
	tagChangeTarget = 500
	tagListTarget   = 50 * time.Millisecond
	taggedServers   = 200 // at most: that get the tags of the sustained rate
	tagsPerServer   = 10
)

func tagsCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "tags",
		Short: "measure how fast tags of servers are",
		Long: `tags creates small servers over the Compute API until there are --servers, which
stay. It measures how long adding one tag takes until it is acknowledged, how
many changes a second several clients bring through until all of them are in
force on the cluster, and how long listing all servers with their tags takes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd, o, ofTags) },
	}
	o.flags(cmd, 200)
	cmd.Flags().IntVar(&o.servers, "servers", 1000, "create servers until there are so many")
	return cmd
}

// ofTags are the measurements of tags.
var ofTags = []measurement{(*runner).tags}

// compute is a client of the Compute API.
type compute struct {
	*controller
	http  http.Client
	token string
}

// do sends a request and reads the answer into a value, if that is wanted.
func (c *compute) do(ctx context.Context, method, address string, body, into any, want int) (http.Header, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, fault.New(fault.Internal, "writing a request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the address of the Compute API is wrong: %w", err)
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Openstack-Api-Version", "compute 2.52")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the Compute API does not answer: %w", err)
	}
	answer, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil || resp.StatusCode != want {
		return nil, fault.New(fault.Failed, "the Compute API answered %d to %s %s: %.200s %v", resp.StatusCode, method, address, answer, err)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			return nil, fault.New(fault.Failed, "an answer of the Compute API cannot be read: %w", err)
		}
	}
	return resp.Header, nil
}

// login connects with the account that the ready file names.
func (r *runner) login(ctx context.Context) (*compute, error) {
	if r.Compute == "" {
		return nil, fault.New(fault.Invalid, "the controller serves no Compute API").WithHint("start it with --compute")
	}
	c := &compute{controller: &r.controller, http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	domain := map[string]any{"id": "default"}
	header, err := c.do(ctx, http.MethodPost, c.Identity+"/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": c.OSUser, "domain": domain, "password": c.OSPassword}}},
		"scope": map[string]any{"project": map[string]any{"name": c.OSProject, "domain": domain}},
	}}, nil, http.StatusCreated)
	if err == nil {
		c.token = header.Get("X-Subject-Token")
	}
	return c, err
}

// page is a page of the list of servers.
type page struct {
	Servers []struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags"`
	} `json:"servers"`
}

// list returns the newest servers, as many as the API gives at once.
func (c *compute) list(ctx context.Context) (ids []string, err error) {
	var p page
	_, err = c.do(ctx, http.MethodGet, c.Compute+"/servers/detail", nil, &p, http.StatusOK)
	for _, s := range p.Servers {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// tags measures tags.
func (r *runner) tags(ctx context.Context) error {
	c, err := r.login(ctx)
	if err != nil {
		return err
	}
	watch, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer watch.close()
	servers, err := r.furnishServers(ctx, c, watch)
	if err != nil {
		return err
	}
	if err := r.addOneByOne(ctx, c, watch, servers[0]); err != nil {
		return err
	}
	if err := r.changeMany(ctx, c, watch, servers[:min(taggedServers, len(servers))]); err != nil {
		return err
	}
	took := make([]time.Duration, r.rounds)
	for i := range took {
		start := time.Now()
		if _, err := c.list(ctx); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	r.within(fmt.Sprintf("list %d servers with their tags", len(servers)), took, tagListTarget)
	return nil
}

// furnishServers creates servers until there are enough, and returns them.
func (r *runner) furnishServers(ctx context.Context, c *compute, watch *client) ([]string, error) {
	have, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	var images struct {
		Images []struct {
			ID string `json:"id"`
		} `json:"images"`
	}
	root, err := url.Parse(c.Compute)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the address of the Compute API is wrong: %w", err)
	}
	if _, err := c.do(ctx, http.MethodGet, root.ResolveReference(&url.URL{Path: "/image/v2/images"}).String(), nil, &images, http.StatusOK); err != nil {
		return nil, err
	}
	if len(images.Images) == 0 {
		return nil, fault.New(fault.Failed, "there is no image to make servers of")
	}
	const small = "4" // a flavor without a disk
	err = inParallel(max(r.servers-len(have), 0), func(i int) error {
		_, err := c.do(ctx, http.MethodPost, c.Compute+"/servers", map[string]any{"server": map[string]any{"name": "bench" + strconv.Itoa(i),
			"imageRef": images.Images[0].ID, "flavorRef": small, "networks": "none"}}, nil, http.StatusAccepted)
		return err
	})
	if err == nil {
		err = watch.none(ctx, []any{"=", "status", "BUILD"})
	}
	if err != nil {
		return nil, err
	}
	return c.list(ctx)
}

// inParallel does something n times, by several clients.
func inParallel(n int, do func(i int) error) error {
	next := make(chan int)
	failed := make(chan error, clients)
	var working sync.WaitGroup
	for range clients {
		working.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	defer working.Wait()
	defer close(next)
	for i := range n {
		select {
		case next <- i:
		case err := <-failed:
			return err
		}
	}
	return nil
}

// none waits until no server is left that a filter lets through.
func (c *client) none(ctx context.Context, filter []any) error {
	rows := map[string]bool{}
	var news struct {
		Revision int64 `json:"revision"`
		Reset    bool  `json:"reset"`
		Events   []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		} `json:"events"`
	}
	for {
		if err := c.call(ctx, "Query", &news, "server", []string{}, filter, map[string]any{"watch": news.Revision}); err != nil {
			return err
		}
		if news.Reset {
			clear(rows)
		}
		for _, e := range news.Events {
			if e.Type == "leave" {
				delete(rows, e.ID)
			} else {
				rows[e.ID] = true
			}
		}
		if len(rows) == 0 {
			return nil
		}
		news.Events, news.Reset = nil, false
	}
}

func (c *compute) put(ctx context.Context, server, tag string) error {
	_, err := c.do(ctx, http.MethodPut, c.Compute+"/servers/"+server+"/tags/"+tag, nil, nil, http.StatusCreated)
	return err
}

// clear takes all tags of a server away.
func (c *compute) clear(ctx context.Context, server string) error {
	_, err := c.do(ctx, http.MethodDelete, c.Compute+"/servers/"+server+"/tags", nil, nil, http.StatusNoContent)
	return err
}

// pending lets through the servers that have changes of tags to come.
var pending = []any{">", "pending", 0}

// addOneByOne measures one client that adds one tag after the other.
func (r *runner) addOneByOne(ctx context.Context, c *compute, watch *client, server string) error {
	const most = 40 // tags of a server, below its limit
	took := make([]time.Duration, r.rounds)
	for i := range took {
		if i%most == 0 {
			if err := c.clear(ctx, server); err != nil {
				return err
			}
			if err := watch.none(ctx, pending); err != nil {
				return err
			}
		}
		start := time.Now()
		if err := c.put(ctx, server, "one"+strconv.Itoa(i%most)); err != nil {
			return err
		}
		took[i] = time.Since(start)
	}
	r.latency("add one tag", took, tagAddTarget)
	return watch.none(ctx, pending)
}

// changeMany measures several clients that add tags to many servers, until all
// of them are on the cluster.
func (r *runner) changeMany(ctx context.Context, c *compute, watch *client, servers []string) error {
	if err := inParallel(len(servers), func(i int) error { return c.clear(ctx, servers[i]) }); err != nil {
		return err
	}
	if err := watch.none(ctx, pending); err != nil {
		return err
	}
	n := len(servers) * tagsPerServer
	start := time.Now()
	err := inParallel(n, func(i int) error { return c.put(ctx, servers[i%len(servers)], "many"+strconv.Itoa(i/len(servers))) })
	if err == nil {
		err = watch.none(ctx, pending)
	}
	if err != nil {
		return err
	}
	r.rate(fmt.Sprintf("%d tags on %d servers until they are ACTIVE", n, len(servers)), n, time.Since(start), tagChangeTarget)
	return nil
}
