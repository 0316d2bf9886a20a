// Package ganeti reaches a cluster for servers over Ganeti's remote API: that of
// a stock Ganeti, or of another Drover.
//
// Invariants:
//   - Every request has a bound in time, and the cluster's certificate is checked.
//   - A job is handed in with its submission key, so that a Drover makes no second
//     one when it is handed in again. A stock Ganeti knows no such keys; each job
//     of servers does no harm there when it runs twice, and of two creations the
//     first counts.
//   - A job about an instance that is meant by its UUID is not handed in while another one has its name.
//   - Only an answer in the form of the remote API is the cluster's own verdict:
//     what stands in between, a proxy for one, has none.
//   - Passwords are in no error and in no log.
//   - Whatever a cluster answers, a bounded amount of memory is taken by it (answer.go).
package ganeti

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// Config is how a cluster is reached.
type Config struct {
	// URL is where its remote API is, for example https://cluster.example:5080.
	URL string
	// User and Password are an account that may write.
	User, Password string
	// CA holds certificates in PEM of which one signed the cluster's, or is it; nil
	// for those of this machine.
	CA []byte
	// Every is how often jobs of servers are asked for while there are any, and All
	// how often all instances are; zero for a second, and half a minute.
	Every, All time.Duration
	Log        *slog.Logger
}

const (
	requestTimeout = 30 * time.Second
	defaultEvery   = time.Second
	defaultAll     = 30 * time.Second
)

// Cluster is a cluster that is reached over its remote API. It implements
// tagsync.Backend, and is safe for concurrent use.
type Cluster struct {
	cfg    Config
	client *http.Client
	// reading is the memory of all answers that are being read.
	reading *intake.Budget

	mu sync.Mutex
	// jobs are those of servers that are not known to have ended, with the instances
	// that they are about.
	jobs map[job.ID]server.Ref
	// known are the instances when all were asked for last, by name.
	known map[string]*remoteInstance
	// news is closed when there is another one.
	news chan struct{}
	met  tagsync.Met
}

// Met implements tagsync.Backend. Whoever refuses is there.
func (c *Cluster) Met() tagsync.Met {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met
}

// meet notes how a request ended; one that was given up says nothing.
func (c *Cluster) meet(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if _, answered := errors.AsType[*answeredError](err); answered {
		err = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = c.met.Then(time.Now(), err)
}

// Open takes in how a cluster is reached. It asks nothing yet.
func Open(cfg Config) (*Cluster, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fault.New(fault.Invalid, "the address of a cluster is a URL such as https://cluster.example:5080, without an account").At("url")
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if cfg.CA != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(cfg.CA) {
			return nil, fault.New(fault.Invalid, "there is no certificate in the file for cluster %s", cfg.URL).At("ca")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if cfg.Every == 0 {
		cfg.Every = defaultEvery
	}
	if cfg.All == 0 {
		cfg.All = defaultAll
	}
	return &Cluster{cfg: cfg, client: newClient(transport), reading: intake.NewBudget(maxReading), jobs: map[job.ID]server.Ref{}, news: make(chan struct{})}, nil
}

// newClient follows no redirect: the password would go with it, also to where nothing
// is encrypted.
func newClient(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// request is one request to the cluster.
type request struct {
	method, path string
	query        url.Values
	body         map[string]any
	key          string
	// limit is how many bytes the answer may have, or of a list one thing in it; zero for maxSmall.
	limit int64
}

// do sends a request and reads the answer into a value. fault.NotFound and
// fault.Invalid are the cluster's own verdict about the request; any other error
// says nothing about it.
func (c *Cluster) do(ctx context.Context, q request, into any) error {
	return c.send(ctx, q, func(body io.Reader) error {
		text, done, err := c.read(body, cmp.Or(q.limit, maxSmall))
		defer done()
		if err != nil {
			return err
		}
		return c.decode(text, into)
	})
}

// each is do for a list: take is handed one thing after the other. errEnough of it ends the
// list.
func each[T any](ctx context.Context, c *Cluster, q request, take func(T) error) error {
	return c.send(ctx, q, func(body io.Reader) error { return list(c, body, cmp.Or(q.limit, maxSmall), take) })
}

// send sends a request, and has a good answer read.
func (c *Cluster) send(ctx context.Context, q request, read func(io.Reader) error) (err error) {
	defer func() { c.meet(ctx, err) }()
	var body io.Reader = http.NoBody
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return fault.New(fault.Internal, "writing a request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	address := c.cfg.URL + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, address, body)
	if err != nil {
		return fault.New(fault.Internal, "making a request: %w", err)
	}
	r.SetBasicAuth(c.cfg.User, c.cfg.Password)
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fault.New(fault.Unavailable, "cluster %s cannot be reached: %w", c.cfg.URL, err)
	}
	defer func() { _ = answer.Body.Close() }() // what is left of it is not wanted
	if answer.StatusCode == http.StatusOK {
		return read(answer.Body)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return c.unfinished(err)
	}
	return c.refusal(answer.StatusCode, text)
}

// answeredError is a refusal of a cluster: somebody is there.
type answeredError struct{ error }

// Unwrap returns what was answered.
func (e *answeredError) Unwrap() error { return e.error }

// verdicts are the statuses that are about the request itself.
var verdicts = map[int]fault.Code{http.StatusBadRequest: fault.Invalid, http.StatusNotFound: fault.NotFound, http.StatusNotImplemented: fault.Invalid}

func (c *Cluster) refusal(status int, text []byte) error {
	var said struct {
		Code    int     `json:"code"`
		Message string  `json:"message"`
		Explain *string `json:"explain"`
	}
	_ = json.Unmarshal(text, &said) // what says nothing says nothing
	code, about := verdicts[status]
	own := said.Code == status && said.Message != "" && said.Explain != nil // and no proxy's word
	if !about || !own {
		code = fault.Unavailable
	}
	explain := ""
	if said.Explain != nil {
		explain = *said.Explain
	}
	var err error = fault.New(code, "cluster %s answered %d: %s", c.cfg.URL, status, fault.Clip(html.UnescapeString(strings.TrimSpace(said.Message+" "+explain)), 500))
	if own && (status < http.StatusInternalServerError || status == http.StatusServiceUnavailable) {
		err = &tagsync.UntakenError{Err: err} // it does not take this request, or its queue takes no jobs
	}
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // nobody is there behind whoever said so
		return err
	}
	return &answeredError{err}
}

// number is a job's id, which old versions write as a text.
type number job.ID

// UnmarshalJSON reads an id.
func (n *number) UnmarshalJSON(text []byte) error {
	id, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*n = number(id)
	return err
}
