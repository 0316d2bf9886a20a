package rapi

import (
	"bytes"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// The limits of bodies, in bytes.
const (
	// opcodeBody is for resources that make a job or a rule, queryBody for
	// queries, whose filters name objects one by one.
	opcodeBody = opcode.MaxBytes
	queryBody  = 10 << 20
	// maxBodies is for all bodies together that are being read or worked on; one
	// of up to freeBody does not count.
	maxBodies = 16 << 20
	freeBody  = 16 << 10
	// bodyValues is how many values may be made of one.
	bodyValues = 100_000
)

// request is what a handler works on.
type request struct {
	*http.Request
	*Config
	// variables are the texts in the place of the segments in braces.
	variables map[string]string
	query     url.Values
	// body is the decoded body, in the shapes of opcode parameters; nil if
	// there was none, or null.
	body any
	// rawBody is the body as it came.
	rawBody []byte
	// charged is what the body took of the memory for all bodies.
	charged int64
	// answerHeader is the header of the answer.
	answerHeader http.Header
	// by is who sends the request, account the one that it was sent with; nil for none.
	by      reason.Account
	account *user
}

func (r *request) readQuery() error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("The query string cannot be read: %s", err)
	}
	for name, list := range values {
		if name == meantUUID && (len(list) != 1 || !isUUID(list[0])) { // an empty one would guard nothing
			return badRequest("The '%s' parameter must be one UUID", name)
		}
		kept := list[:0]
		for _, v := range list {
			if !utf8.ValidString(v) {
				return badRequest("The '%s' parameter is not valid UTF-8", name)
			}
			if v != "" {
				kept = append(kept, v)
			}
		}
		values[name] = kept
	}
	r.query = values
	given := reason.Trail{{Reason: r.text("reason")}}
	return reason.CheckOutside(given, nil)
}

// readBody reads the body, if there is one. A content type with parameters is
// taken too; the reference refuses it.
func (r *request) readBody(limit int64, memory *intake.Budget) error {
	raw, err := r.receive(limit, memory)
	if err != nil || len(raw) == 0 {
		return err
	}
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(parameters["charset"])
	if err != nil || kind != "application/json" || (charset != "" && charset != "utf-8") {
		return failure(http.StatusUnsupportedMediaType, "Unsupported Media Type")
	}
	if err := intake.CheckValues(raw, bodyValues); err != nil {
		return err
	}
	body, err := opcode.ParseValue(raw)
	if err != nil {
		return badRequest("Unable to parse JSON data: %s", err)
	}
	r.body, r.rawBody = body, raw
	return nil
}

// receive takes in the bytes of the body.
func (r *request) receive(limit int64, memory *intake.Budget) ([]byte, error) {
	length := r.ContentLength
	if length > limit {
		drop(r.Body)
		return nil, bodyTooLarge(limit)
	}
	if length < 0 { // it is told at the end only
		length = limit
	}
	if length > freeBody {
		if err := memory.Take(length); err != nil {
			drop(r.Body)
			return nil, err
		}
		r.charged = length
	}
	var raw bytes.Buffer
	if r.ContentLength >= 0 { // else it grows, and leaves behind what it was
		raw.Grow(int(length) + bytes.MinRead) // below the limit
	}
	_, err := raw.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		return nil, badRequest("The body cannot be read: %s", err)
	case int64(raw.Len()) > limit:
		drop(r.Body)
		return nil, bodyTooLarge(limit)
	}
	return raw.Bytes(), nil
}

// drop reads and forgets a while more of a body, so that a client that sends
// all of it before it reads gets to know why it is refused.
func drop(body io.Reader) {
	_, _ = io.CopyN(io.Discard, body, 4*queryBody) // what is wrong is known already
}

func bodyTooLarge(limit int64) error {
	return failure(http.StatusRequestEntityTooLarge, "The body is larger than %d bytes", limit)
}

// text returns a query parameter, empty if it was not given.
func (r *request) text(name string) string {
	if list := r.query[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// flag returns a query parameter that is 0 or 1; other integers count as 1.
func (r *request) flag(name string) (bool, error) {
	text := r.text(name)
	if text == "" {
		return false, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return false, badRequest("Invalid value for the '%s' parameter", name)
	}
	return n != 0, nil
}

// object returns the body as an object; empty if there was no body.
func (r *request) object() (map[string]any, error) {
	if r.body == nil {
		return map[string]any{}, nil
	}
	return r.requiredObject()
}

func (r *request) requiredObject() (map[string]any, error) {
	m, ok := r.body.(map[string]any)
	if !ok {
		return nil, badRequest("Body contents: Type is '%s', but 'dict' is expected", typeName(r.body))
	}
	return m, nil
}

// checkKeys refuses keys of a body that mean nothing.
func checkKeys(body map[string]any, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(body)) {
		if !slices.Contains(known, key) {
			return badRequest("The body has the key '%s', which means nothing here; it may have: %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// checkParameters refuses parameters of the query string that mean nothing.
func (r *request) checkParameters(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(r.query)) {
		if !slices.Contains(known, name) {
			return badRequest("The parameter '%s' means nothing here; there %s", name, choices(known))
		}
	}
	return nil
}

func choices(known []string) string {
	if len(known) == 0 {
		return "is none"
	}
	return "are: " + strings.Join(known, ", ")
}

// typeName is what clients' error texts call the type of a JSON value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case []any:
		return "list"
	}
	return "dict"
}

// jobID returns the job that the path names.
func (r *request) jobID() (job.ID, error) {
	id, err := job.ParseID(r.variables["id"])
	if err != nil {
		return 0, fault.New(fault.NotFound, "there is no job %s", r.variables["id"])
	}
	return id, nil
}

// trail is the reason trail of a request: the user's reason, if one was
// given, and the resource that carries it on.
func (r *request) trail(class string) reason.Trail {
	now := r.Now().UnixNano()
	var t reason.Trail
	if text := r.text("reason"); text != "" {
		t = append(t, reason.Entry{Source: reason.SourceUser, Reason: text, Time: now})
	}
	return append(t, reason.Entry{Source: sourceLibrary + class, Time: now})
}

// sourceLibrary begins the source of the trail entries of this interface; the
// name of the resource follows.
const sourceLibrary = "gnt:library:rlib2:"
