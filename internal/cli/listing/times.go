package listing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Times returns JSON with the times at these keys in RFC 3339, at whatever depth, and
// null where there is none. A controller has them as numbers, in the unit that the protocol
// of a request has: seconds, microseconds or nanoseconds since 1970, which are
// told apart by their size. What users wrote themselves (ofUsers) stays as it is.
func Times(text json.RawMessage, keys ...string) (json.RawMessage, error) {
	w := timeWriter{dec: json.NewDecoder(bytes.NewReader(text)), keys: keys}
	w.dec.UseNumber()
	if err := w.value(""); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

type timeWriter struct {
	dec  *json.Decoder
	keys []string
	out  bytes.Buffer
}

// ofUsers are the keys of what users and operators wrote, whatever is in it.
var ofUsers = []string{"parameters", "settings", "common", "old", "new", "ops"}

// value copies the next value, which stands at a key.
func (w *timeWriter) value(key string) error {
	if slices.Contains(ofUsers, key) {
		var raw json.RawMessage
		err := w.dec.Decode(&raw)
		w.out.Write(raw)
		return err
	}
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch x := token.(type) {
	case json.Delim:
		return w.inside(x, key)
	case json.Number:
		if slices.Contains(w.keys, key) {
			w.out.WriteString(timeText(x))
			return nil
		}
		w.out.WriteString(x.String())
		return nil
	default:
		return w.plain(x)
	}
}

// inside copies a list or an object up to its end.
func (w *timeWriter) inside(opening json.Delim, key string) error {
	w.out.WriteString(opening.String())
	for n := 0; w.dec.More(); n++ {
		if n > 0 {
			w.out.WriteByte(',')
		}
		if opening == '{' {
			token, err := w.dec.Token()
			if err != nil {
				return err
			}
			name, isText := token.(string)
			if !isText {
				return errors.New("an object has a key that is no text")
			}
			if err := w.plain(name); err != nil {
				return err
			}
			w.out.WriteByte(':')
			key = name
		}
		if err := w.value(key); err != nil {
			return err
		}
	}
	closing, err := w.dec.Token()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(&w.out, closing)
	return err
}

func (w *timeWriter) plain(value any) error {
	enc := json.NewEncoder(&w.out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	w.out.Truncate(len(bytes.TrimRight(w.out.Bytes(), "\n")))
	return err
}

// timeText is a number that is a time, as JSON.
func timeText(n json.Number) string {
	whole, _, _ := strings.Cut(n.String(), ".")
	unit := int64(time.Nanosecond)
	switch digits := len(strings.TrimPrefix(whole, "-")); {
	case whole == "0":
		return "null"
	case digits <= len("17000000000"):
		unit = int64(time.Second)
	case digits <= len("17000000000000000"):
		unit = int64(time.Microsecond)
	}
	at, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return n.String()
	}
	at.Mul(at, new(big.Rat).SetInt64(unit))
	nanos := new(big.Int).Quo(at.Num(), at.Denom())
	if !nanos.IsInt64() {
		return n.String()
	}
	return `"` + time.Unix(0, nanos.Int64()).UTC().Format(time.RFC3339Nano) + `"`
}
