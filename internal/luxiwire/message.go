package luxiwire

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Request is one call. Args is the JSON text of the arguments; the server
// checks its form, because the text of the error depends on the method.
type Request struct {
	Method string
	Args   json.RawMessage
	// Revision is an addition of ours: the answer is to come from a state that is
	// not older. A request that has it, be it 0, is told in the answer which
	// revision to ask for next time to see what it changed. nil for other clients.
	Revision *int64
	// Stale is another: the client takes an answer of whichever controller it asks,
	// also if that follows the one that leads. The answer tells its revision.
	Stale bool
}

// ParseRequest reads a request from a frame. Keys other than "method", "args",
// "revision" and "stale" are ignored, among them the "version" that Ganeti's clients send. The
// error has the code fault.Invalid; its text is what follows ParsePrefix in
// the answer.
func ParseRequest(frame []byte) (Request, error) {
	if err := checkTop(frame); err != nil {
		return Request{}, err
	}
	var method, args, revision, stale json.RawMessage
	of := map[string]*json.RawMessage{"method": &method, "args": &args, "revision": &revision, "stale": &stale}
	for key, value := range members(frame) {
		part := of[key]
		for known := range of {
			if part == nil && strings.EqualFold(known, key) {
				return Request{}, fault.New(fault.Invalid, "the key '%s' is not written so", key).At(key).WithHint("it is '%s'", known)
			}
		}
		if part == nil {
			continue
		}
		if *part != nil {
			return Request{}, fault.New(fault.Invalid, "the key '%s' is there twice", key).At(key)
		}
		*part = value
	}
	switch {
	case method == nil:
		return Request{}, missing("method", frame)
	case args == nil:
		return Request{}, missing("args", frame)
	}
	req := Request{Args: args}
	if err := json.Unmarshal(method, &req.Method); err != nil || string(method) == "null" {
		return Request{}, fault.New(fault.Invalid, "Can't parse value for 'method': Unable to read String")
	}
	if revision != nil {
		if err := json.Unmarshal(revision, &req.Revision); err != nil || req.Revision == nil || *req.Revision < 0 {
			return Request{}, fault.New(fault.Invalid, "Can't parse value for 'revision': a whole number that is not negative is expected").At("revision")
		}
	}
	if stale != nil {
		if err := json.Unmarshal(stale, &req.Stale); err != nil || string(stale) == "null" {
			return Request{}, fault.New(fault.Invalid, "Can't parse value for 'stale': true or false is expected").At("stale")
		}
	}
	return req, nil
}

func missing(key string, frame []byte) error {
	return fault.New(fault.Invalid, "key '%s' not found, object contains only %s", key, keyList(frame))
}

// MaxValues is how many JSON values a message may hold.
const MaxValues = 1_000_000

// checkTop refuses a message that is no JSON object, or holds too much.
func checkTop(frame []byte) error {
	const where = "parsing top-level JSON message: "
	trimmed := bytes.TrimLeft(frame, " \t\r\n")
	if len(trimmed) == 0 || (trimmed[0] != '{' && trimmed[0] != '[') {
		return fault.New(fault.Invalid,
			where+"Invalid JSON: a JSON text a serialized object or array at the top level.")
	}
	if i := firstInvalidUTF8(frame); i >= 0 {
		return fault.New(fault.Invalid, where+"Malformed JSON: the byte at position %d is not valid UTF-8", i)
	}
	if err := intake.CheckValues(frame, MaxValues); err != nil {
		return fault.New(fault.TooLarge, where+"%w", err)
	}
	if err := intake.CheckText(frame); err != nil {
		return fault.New(fault.Invalid, where+"Malformed JSON: %w", err)
	}
	if !json.Valid(frame) {
		var v any
		return fault.New(fault.Invalid, where+"Malformed JSON: %v", json.Unmarshal(frame, &v))
	}
	if trimmed[0] != '{' {
		return fault.New(fault.Invalid, where+"Unable to read JSObject")
	}
	return nil
}

func firstInvalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// maxKeys is how many keys of an object an error repeats.
const maxKeys = 50

// keyList returns the keys of the object in the text as a JSON list, in the
// order they were written, each once, and not more than the first few.
func keyList(object []byte) string {
	keys := []string{}
	seen := map[string]bool{}
	for key := range members(object) {
		if seen[key] {
			continue
		}
		if len(keys) == maxKeys {
			break
		}
		seen[key], keys = true, append(keys, fault.Clip(key, maxKeyText))
	}
	text, err := json.Marshal(keys)
	if err != nil { // strings always encode
		return "[]"
	}
	return string(text)
}

const maxKeyText = 100

// Response is one answer. Fault is an addition of ours beside the two keys
// that every client reads: the code, field and hint of an error, for clients
// that can use them.
type Response struct {
	Success bool            `json:"success"`
	Result  json.RawMessage `json:"result"`
	Fault   *Fault          `json:"fault,omitempty"`
	// Revision is there for those who sent one: a state that is not older shows
	// what the request changed.
	Revision int64 `json:"revision,omitempty"`
}

// Fault is the part of an error that the pair [class, [arguments]] has no room
// for.
type Fault struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Field   string     `json:"field,omitempty"`
	Hint    string     `json:"hint,omitempty"`
}

// ParsePrefix begins the string that answers a request which was not
// understood.
const ParsePrefix = "Failed to parse request: "

// ResultFrame encodes a successful answer.
func ResultFrame(result any) ([]byte, error) { return ResultFrameAt(result, 0) }

// ResultFrameAt is ResultFrame with the revision for clients that asked for it; 0
// is left out.
func ResultFrameAt(result any, revision int64) ([]byte, error) {
	return encode(struct {
		Success  bool  `json:"success"`
		Result   any   `json:"result"`
		Revision int64 `json:"revision,omitempty"`
	}{true, result, revision})
}

// ParseFailureFrame encodes the answer to a request that was not understood: a
// text in the words that clients know, and beside it the error itself. The
// connection is to be closed after it.
func ParseFailureFrame(text string, err error) ([]byte, error) {
	return failureFrame(ParsePrefix+text, err)
}

// ErrorFrame encodes the answer to a request that failed.
func ErrorFrame(pair Error, err error) ([]byte, error) { return failureFrame(pair, err) }

func failureFrame(result any, err error) ([]byte, error) {
	return encode(struct {
		Success bool   `json:"success"`
		Result  any    `json:"result"`
		Fault   *Fault `json:"fault"`
	}{false, result, FaultOf(err)})
}

// encode is json.Marshal without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	enc := json.NewEncoder(&buffer)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
