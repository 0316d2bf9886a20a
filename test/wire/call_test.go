package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

// call is one request that both are sent. Texts in it may hold {job:ID} and
// {rule:ID}: the job or the rule that the call of that id made.
type call struct {
	ID string `json:"id"`
	// Class says what kind of request it is, for the account of a run.
	Class string `json:"class"`
	// Prepare is a request that sets the scene: its answer is not compared.
	Prepare bool `json:"prepare,omitempty"`
	// Mends is one that makes both alike again after they did different things.
	Mends bool `json:"mends,omitempty"`
	// Follows marks a further call of those that belong together.
	Follows bool `json:"follows,omitempty"`
	// State asks what has become of the cluster, after a call that changed something.
	State bool `json:"state,omitempty"`
	// Holds says that something may keep its jobs from running.
	Holds bool      `json:"holds,omitempty"`
	LUXI  *luxiCall `json:"luxi,omitempty"`
	RAPI  *rapiCall `json:"rapi,omitempty"`
}

// luxiCall is a message; Raw is one that is not made of a method and arguments.
type luxiCall struct {
	Method string          `json:"method,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Raw    *string         `json:"raw,omitempty"`
}

type rapiCall struct {
	Method string `json:"method"`
	Path   string `json:"path"` // with the query
	Type   string `json:"type,omitempty"`
	Body   string `json:"body,omitempty"`
}

// answer is what came back, as it was given.
type answer struct {
	LUXI   json.RawMessage `json:"luxi,omitempty"`
	Status int             `json:"status,omitempty"`
	Type   string          `json:"type,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"` // a text where it is no JSON
	// Jobs are those that it made, when they had ended or were held.
	Jobs []ended `json:"jobs,omitempty"`
	// Rule is the UUID of the filter rule that it made.
	Rule string `json:"rule,omitempty"`
}

// ended is a job when it is over.
type ended struct {
	ID       int64           `json:"id"`
	Status   string          `json:"status"`
	OpStatus json.RawMessage `json:"opstatus"`
	Results  json.RawMessage `json:"results"`
	Logs     json.RawMessage `json:"logs"`
}

// held tells whether the job did not run.
func (e ended) held() bool {
	return e.Status != "success" && e.Status != "error" && e.Status != "canceled"
}

// String is the call on a line.
func (c *call) String() string {
	switch {
	case c.RAPI != nil && c.RAPI.Body != "":
		return fmt.Sprintf("RAPI %s %s %s", c.RAPI.Method, c.RAPI.Path, c.RAPI.Body)
	case c.RAPI != nil:
		return fmt.Sprintf("RAPI %s %s", c.RAPI.Method, c.RAPI.Path)
	case c.LUXI.Raw != nil:
		return fmt.Sprintf("LUXI %q", *c.LUXI.Raw)
	}
	return fmt.Sprintf("LUXI %s %s", c.LUXI.Method, c.LUXI.Args)
}

// memory is what one side calls the jobs and rules that calls made.
type memory struct {
	jobs  map[string]int64 // {job:ID} to its number
	named map[int64]string // and back
	rules map[string]string
}

func newMemory() *memory {
	return &memory{jobs: map[string]int64{}, named: map[int64]string{}, rules: map[string]string{}}
}

// note remembers what a call made: the first job is ID, further ones ID.1 and so on.
func (m *memory) note(id string, a *answer) {
	for i, e := range a.Jobs {
		name := id
		if i > 0 {
			name += "." + strconv.Itoa(i)
		}
		m.jobs[name], m.named[e.ID] = e.ID, name
	}
	if a.Rule != "" {
		m.rules[id] = a.Rule
	}
}

// noJob and noRule stand for what a side does not have.
const (
	noJob  = 987654321
	noRule = "00000000-0000-4000-8000-000000000000"
)

var (
	placeholder = regexp.MustCompile(`\{(job|rule):([0-9.]+)\}`)
	jobNumber   = regexp.MustCompile(`"\{job:[0-9.]+\}"`)
)

// fill puts the numbers and UUIDs of one side into a text.
func (m *memory) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		parts := placeholder.FindStringSubmatch(p)
		if parts[1] == "rule" {
			if uuid, ok := m.rules[parts[2]]; ok {
				return uuid
			}
			return noRule
		}
		id, ok := m.jobs[parts[2]]
		if !ok {
			id = noJob
		}
		return strconv.FormatInt(id, 10)
	})
}

// fillJSON is fill for JSON, where a text that is nothing but a job is its number.
func (m *memory) fillJSON(text string) string {
	return m.fill(jobNumber.ReplaceAllStringFunc(text, func(p string) string { return p[1 : len(p)-1] }))
}

// decode reads JSON with its numbers as they are written.
func decode(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one JSON value in %.200q", text)
	}
	return v, nil
}

// asJSON returns the body as JSON: as it is, or as a text.
func asJSON(body []byte) json.RawMessage {
	if json.Valid(body) {
		return bytes.TrimSpace(body)
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		return json.RawMessage(`"a text that cannot be shown"`)
	}
	return text
}
