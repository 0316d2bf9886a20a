package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// side is one of the two that are asked.
type side struct {
	*memory

	socket             string
	rapi               string // https://ADDRESS:PORT
	user, password     string
	client             *http.Client
	patience, holdTime time.Duration
}

// newSide is a side that is reached by a socket and an address. dial may be nil.
func newSide(socket, rapi, user, password string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *side {
	return &side{memory: newMemory(), socket: socket, rapi: rapi, user: user, password: password, patience: 15 * time.Minute, holdTime: 8 * time.Second,
		client: &http.Client{Timeout: 15 * time.Minute, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

// ask sends a call, follows the jobs that it makes to their ends, and remembers them.
// Jobs that are expected to be held are given little time.
func (s *side) ask(ctx context.Context, c *call, held bool) (*answer, error) {
	a, err := s.send(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, id := range made(c, a) {
		e, err := s.follow(ctx, id, c.Holds, held)
		if err != nil {
			return nil, err
		}
		a.Jobs = append(a.Jobs, e)
	}
	a.Rule = madeRule(c, a)
	s.note(c.ID, a)
	return a, nil
}

func (s *side) send(ctx context.Context, c *call) (*answer, error) {
	if c.RAPI != nil {
		return s.http(ctx, c.RAPI)
	}
	if c.LUXI.Raw != nil {
		return s.message(ctx, []byte(s.fill(*c.LUXI.Raw)))
	}
	return s.message(ctx, fmt.Appendf(nil, `{"method":%q,"args":%s,"version":3000000}`, c.LUXI.Method, s.fillJSON(string(c.LUXI.Args))))
}

// message sends one message over a connection of its own.
func (s *side) message(ctx context.Context, text []byte) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.socket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write(append(text, 3)); err != nil && !closed(err) {
		return nil, err // what was answered before it was closed can be read
	}
	var got bytes.Buffer
	for chunk := make([]byte, 1<<16); !bytes.HasSuffix(got.Bytes(), []byte{3}); {
		n, err := conn.Read(chunk)
		got.Write(chunk[:n])
		if closed(err) {
			return &answer{LUXI: asJSON(got.Bytes())}, nil // without an answer, or within it
		}
		if err != nil {
			return nil, fmt.Errorf("%.300s: %w", text, err)
		}
	}
	return &answer{LUXI: asJSON(bytes.TrimSuffix(got.Bytes(), []byte{3}))}, nil
}

// closed tells whether the other end has closed the connection. That is an answer too:
// that of one who does not want to talk about what was sent.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

func (s *side) http(ctx context.Context, c *rapiCall) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, c.Method, s.rapi+s.fill(c.Path), strings.NewReader(s.fillJSON(c.Body)))
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth(s.user, s.password)
	if c.Type != "" {
		req.Header.Set("Content-Type", c.Type)
	}
	resp, err := s.client.Do(req)
	if closed(err) {
		return &answer{Body: asJSON(nil)}, nil // without an answer
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &answer{Status: resp.StatusCode, Type: resp.Header.Get("Content-Type"), Body: asJSON(body)}, nil
}

// luxi asks something on behalf of the test itself.
func (s *side) luxi(ctx context.Context, into any, method string, args ...any) error {
	text, err := json.Marshal(map[string]any{"method": method, "args": args})
	if err != nil {
		return err
	}
	a, err := s.message(ctx, text)
	if err != nil {
		return err
	}
	var got struct {
		Success bool            `json:"success"`
		Result  json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(a.LUXI, &got); err != nil || !got.Success {
		return fmt.Errorf("%s %v: %.500s (%w)", method, args, a.LUXI, err)
	}
	return json.Unmarshal(got.Result, into)
}

// follow waits until a job has ended, or is held for as long as that takes to see.
func (s *side) follow(ctx context.Context, id int64, holds, held bool) (ended, error) {
	deadline := time.Now().Add(s.patience)
	if held {
		deadline = time.Now().Add(s.holdTime / 16)
	} else if holds {
		deadline = time.Now().Add(s.holdTime)
	}
	for {
		var rows [][]json.RawMessage
		if err := s.luxi(ctx, &rows, "QueryJobs", []int64{id}, []string{"status", "opstatus", "opresult", "oplog"}); err != nil {
			return ended{}, err
		}
		if len(rows) != 1 || len(rows[0]) != 4 {
			return ended{}, fmt.Errorf("job %d: %v", id, rows)
		}
		e := ended{ID: id, OpStatus: rows[0][1], Results: rows[0][2], Logs: rows[0][3]}
		if err := json.Unmarshal(rows[0][0], &e.Status); err != nil {
			return ended{}, err
		}
		left := time.Until(deadline)
		if !e.held() || left <= 0 && (held || holds) {
			return e, nil
		}
		if left <= 0 {
			return ended{}, fmt.Errorf("job %d is %s after %v", id, e.Status, s.patience)
		}
		var news any
		wait := max(1, min(10, int(left/time.Second)))
		if held {
			wait = 0
		}
		if err := s.luxi(ctx, &news, "WaitForJobChange", id, []string{"status"}, []string{e.Status}, nil, wait); err != nil {
			return ended{}, err
		}
	}
}

// made returns the jobs that a call made.
func made(c *call, a *answer) []int64 {
	if c.RAPI != nil {
		var id int64
		if a.Status == http.StatusOK && !strings.HasPrefix(c.RAPI.Path, "/version") && json.Unmarshal(a.Body, &id) == nil && id > 0 {
			return []int64{id}
		}
		return nil
	}
	var got struct {
		Success bool            `json:"success"`
		Result  json.RawMessage `json:"result"`
	}
	if json.Unmarshal(a.LUXI, &got) != nil || !got.Success {
		return nil
	}
	switch c.LUXI.Method {
	case "SubmitJob", "SubmitJobToDrainedQueue":
		var id int64
		if json.Unmarshal(got.Result, &id) == nil {
			return []int64{id}
		}
	case "SubmitManyJobs":
		var rows [][]json.RawMessage
		if json.Unmarshal(got.Result, &rows) != nil {
			return nil
		}
		var ids []int64
		for _, row := range rows {
			var id int64
			if len(row) == 2 && json.Unmarshal(row[1], &id) == nil {
				ids = append(ids, id)
			}
		}
		return ids
	}
	return nil
}

// madeRule returns the filter rule that a call made or replaced.
func madeRule(c *call, a *answer) string {
	text := a.Body
	switch {
	case c.RAPI != nil && (!strings.HasPrefix(c.RAPI.Path, "/2/filters") || a.Status != http.StatusOK || c.RAPI.Method == http.MethodGet || c.RAPI.Method == http.MethodDelete):
		return ""
	case c.LUXI != nil && c.LUXI.Method != "ReplaceFilter":
		return ""
	case c.LUXI != nil:
		var got struct {
			Success bool            `json:"success"`
			Result  json.RawMessage `json:"result"`
		}
		if json.Unmarshal(a.LUXI, &got) != nil || !got.Success {
			return ""
		}
		text = got.Result
	}
	var uuid string
	_ = json.Unmarshal(text, &uuid)
	return uuid
}
