package ganeti

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// What is taken of answers, in bytes: a cluster that is another's, or not well, may send without end. What is asked for says
// how much its answer may be.
const (
	maxSmall = 1 << 20  // an instance, an id, a name
	maxJob   = 16 << 20 // a job with its results and log
	maxList  = 64 << 20 // a list, of which one thing at a time is in memory
	// maxRefusal is how much of a refusal is read.
	maxRefusal = 64 << 10
	// maxReading is how much of all answers of a cluster that are being read may be in memory.
	maxReading = 32 << 20
	// maxValues is how many values one thing may have: small ones take many times their length when they are decoded.
	maxValues = 100_000
	// maxThings is how many things a list may have, and maxKept how much is kept of a list of instances.
	maxThings = 1_000_000
	maxKept   = 32 << 20
)

// tooLarge is the error of an answer over a limit. It is none about the request.
func (c *Cluster) tooLarge(what string, limit int64) error {
	return fault.New(fault.Unavailable, "%w", fault.New(fault.TooLarge, "cluster %s answers with %s of more than %d bytes", c.cfg.URL, what, limit))
}

// lasting is the error of an answer, or, of one that comes again however often it is asked for, one that says so: fault.TooLarge for what is over a
// limit, fault.Invalid for JSON of another shape. What is no JSON may be a proxy's, for a time.
func lasting(err error) error {
	if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
		return fault.New(fault.Invalid, "%w", err)
	}
	if fault.Is(errors.Unwrap(err), fault.TooLarge) {
		return fault.New(fault.TooLarge, "%w", err)
	}
	return err
}

// read reads an answer of at most so many bytes; done gives back the memory that is counted for it.
func (c *Cluster) read(from io.Reader, limit int64) (text []byte, done func(), err error) {
	taken := int64(0)
	done = func() { c.reading.Give(taken) }
	const first = 4 << 10
	text = make([]byte, 0, first)
	var beyond [1]byte
	for {
		if have := int64(cap(text)); int64(len(text)) == have && have < limit {
			more := min(2*have, limit)
			if err := c.reading.Take(more); err != nil {
				return nil, done, fault.New(fault.Unavailable, "cluster %s has too many answers under way that are long", c.cfg.URL)
			}
			c.reading.Give(taken)
			taken = more
			text = append(make([]byte, 0, more), text...)
		}
		into := text[len(text):cap(text)]
		if len(into) == 0 {
			into = beyond[:]
		}
		n, err := from.Read(into)
		if int64(len(text)+n) > limit {
			return nil, done, c.tooLarge("something", limit)
		}
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return text, done, nil
		case err != nil:
			return nil, done, c.unfinished(err)
		}
	}
}

func (c *Cluster) unfinished(err error) error {
	return fault.New(fault.Unavailable, "cluster %s does not finish its answer: %w", c.cfg.URL, err)
}

// decode reads a value from a text of JSON that is not too much.
func (c *Cluster) decode(text []byte, into any) error {
	if err := intake.CheckValues(text, maxValues); err != nil {
		return fault.New(fault.Unavailable, "the answer of cluster %s is refused: %w", c.cfg.URL, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fault.New(fault.Unavailable, "the answer of cluster %s cannot be read: %w", c.cfg.URL, err)
	}
	return nil
}

// errEnough ends a list of which no more is wanted.
var errEnough = errors.New("enough")

// list reads a list, and hands over one thing after the other, of at most so many bytes each.
func list[T any](c *Cluster, from io.Reader, limit int64, take func(T) error) error {
	in := &measured{from: io.LimitReader(from, maxList+1), limit: limit}
	decoder := json.NewDecoder(in)
	begin, err := decoder.Token()
	if err == nil && begin != json.Delim('[') {
		err = errors.New("it is no list")
	}
	for n := 0; err == nil && decoder.More(); n++ {
		if n == maxThings {
			return fault.New(fault.Unavailable, "cluster %s answers with a list of more than %d things", c.cfg.URL, maxThings)
		}
		var text json.RawMessage
		if err = decoder.Decode(&text); err != nil {
			break
		}
		in.since = 0
		var one T
		if err := c.decode(text, &one); err != nil {
			return err
		}
		switch err := take(one); {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return err
		}
	}
	if err == nil {
		_, err = decoder.Token()
	}
	switch {
	case err == nil:
		return nil
	case in.over:
		return c.tooLarge("a thing in a list", limit)
	case in.all > maxList:
		return c.tooLarge("a list", maxList)
	case in.failed != nil:
		return c.unfinished(in.failed)
	}
	return fault.New(fault.Unavailable, "the answer of cluster %s cannot be read: %w", c.cfg.URL, err)
}

// measured is a reader that gives up when a thing in a list is too long.
type measured struct {
	from   io.Reader
	limit  int64
	since  int64 // bytes since the last thing ended; what was read ahead counts for the one after
	all    int64
	over   bool
	failed error
}

// Read implements io.Reader.
func (m *measured) Read(p []byte) (int, error) {
	if m.since > m.limit {
		m.over = true
		return 0, errors.New("it is too long")
	}
	n, err := m.from.Read(p)
	m.since += int64(n)
	m.all += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.failed = err
	}
	return n, err
}
