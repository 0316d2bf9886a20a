package confd

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's; that texts can be made that have the same sum does not help who lacks the key
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Port is the one at which the reference's programs ask.
const Port = 1814

const (
	// magic begins each datagram.
	magic = "plj0"
	// version is that of the protocol.
	version = 1
	// MaxSkew is how far the clocks of who asks and who answers may be apart, and so how long a question counts.
	MaxSkew = 300 * time.Second
	// MaxQuestion is how many bytes a question has at most, as there, and maxAnswer what a datagram takes.
	MaxQuestion = 4096
	maxAnswer   = 65507
	// maxValues is how many values a question has at most: more than fit into it.
	maxValues = MaxQuestion
)

// signed is what a datagram has behind magic: a JSON text, and what it was signed with.
type signed struct {
	Msg  string `json:"msg"`
	Salt string `json:"salt"`
	HMAC string `json:"hmac"`
}

// question is what is asked.
type question struct {
	Protocol int    `json:"protocol"`
	Type     int    `json:"type"`
	Query    any    `json:"query"`
	Salt     string `json:"rsalt"`
}

// answer is what is answered.
type answer struct {
	Protocol int   `json:"protocol"`
	Status   int   `json:"status"`
	Answer   any   `json:"answer"`
	Serial   int64 `json:"serial"`
}

// sum signs a text with a key and a salt.
func sum(key []byte, salt, text string) string {
	h := hmac.New(sha1.New, key)
	h.Write([]byte(salt + text))
	return hex.EncodeToString(h.Sum(nil))
}

// read reads a question: fault.Denied if it was not signed with the key, or not at this time, and fault.Invalid if it is none.
func read(datagram, key []byte, now time.Time) (q question, err error) {
	text, ours := strings.CutPrefix(string(datagram), magic)
	if !ours {
		return q, fault.New(fault.Invalid, "the datagram does not begin with %s", magic)
	}
	var s signed
	if err := readText(text, &s); err != nil {
		return q, err
	}
	if !hmac.Equal([]byte(strings.ToLower(s.HMAC)), []byte(sum(key, s.Salt, s.Msg))) {
		return q, fault.New(fault.Denied, "it was signed with another key")
	}
	seconds, err := strconv.ParseInt(s.Salt, 10, 64)
	if err != nil || time.Unix(seconds, 0).Sub(now).Abs() > MaxSkew {
		return q, fault.New(fault.Denied, "it was signed at another time: %s", fault.Clip(s.Salt, 30))
	}
	return q, readText(s.Msg, &q)
}

func readText(text string, into any) error {
	if err := intake.CheckValues([]byte(text), maxValues); err != nil {
		return err
	}
	return intake.Read([]byte(text), into)
}

// write signs an answer with the salt of its question.
func write(a answer, key []byte, salt string) ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	s := signed{Msg: string(text), Salt: salt}
	s.HMAC = sum(key, s.Salt, s.Msg)
	out, err := json.Marshal(s)
	return append([]byte(magic), out...), err
}
