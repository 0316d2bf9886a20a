package luxiwire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
)

func TestFramesSurviveAnySplittingOfTheStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOf(rapid.Custom(func(t *rapid.T) []byte {
			return bytes.ReplaceAll(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), []byte{Terminator}, []byte("x"))
		})).Draw(t, "messages")
		var stream bytes.Buffer
		for _, m := range messages {
			if err := WriteFrame(&stream, m); err != nil {
				t.Fatal(err)
			}
		}
		var source io.Reader = &stream
		if rapid.Bool().Draw(t, "one byte at a time") {
			source = iotest.OneByteReader(&stream)
		}
		frames := NewFrameReader(source, 1<<20)
		for i, want := range messages {
			got, err := frames.Next()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("message %d: got %q, %v; want %q", i, got, err, want)
			}
		}
		if _, err := frames.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last message: %v", err)
		}
	})
}

func TestFrameLimit(t *testing.T) {
	const limit = 100_000 // above the read buffer
	for _, tc := range []struct {
		length int
		ok     bool
	}{{0, true}, {limit - 1, true}, {limit, true}, {limit + 1, false}, {3 * limit, false}} {
		text := strings.Repeat("a", tc.length) + "\x03"
		got, err := NewFrameReader(strings.NewReader(text), limit).Next()
		if tc.ok && (err != nil || len(got) != tc.length) {
			t.Errorf("length %d: got %d bytes, %v", tc.length, len(got), err)
		}
		if !tc.ok && (!fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "100000 bytes")) {
			t.Errorf("length %d: error %v does not name the limit", tc.length, err)
		}
	}
	endless := io.MultiReader(strings.NewReader(strings.Repeat("a", limit+1)), iotest.ErrReader(errors.New("read on")))
	if _, err := NewFrameReader(endless, limit).Next(); !fault.Is(err, fault.TooLarge) {
		t.Errorf("an over-long message is to be refused before its end: %v", err)
	}
}

func TestFrameCutShort(t *testing.T) {
	if _, err := NewFrameReader(strings.NewReader("{"), 10).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestWriteFrameRefusesTheTerminator(t *testing.T) {
	if err := WriteFrame(io.Discard, []byte("a\x03b")); err == nil {
		t.Error("a message with the terminator inside was written")
	}
}

// FuzzFrames feeds any bytes to the reader and the parser of requests: both
// end with a value or an error, and a value can be written and read again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("{\"method\":\"QueryTags\",\"args\":[\"cluster\",\"\"]}\x03"))
	f.Add([]byte("{\"method\":\"\xff\"}\x03{\x03[]\x03\x03"))
	f.Add([]byte("{\"args\":[1e999,{\"a\":{}}],\"method\":null}\x03"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := NewFrameReader(bytes.NewReader(stream), 1<<16)
		for {
			frame, err := frames.Next()
			if err != nil {
				return
			}
			req, err := ParseRequest(frame)
			if err != nil {
				if _, err := ParseFailureFrame(err.Error(), err); err != nil {
					t.Fatalf("the answer cannot be encoded: %v", err)
				}
				continue
			}
			again, err := encode(map[string]any{"method": req.Method, "args": req.Args})
			if err != nil {
				t.Fatal(err)
			}
			back, err := ParseRequest(again)
			if err != nil || back.Method != req.Method {
				t.Fatalf("%q became %q: %v", req.Method, back.Method, err)
			}
		}
	})
}

func TestWholeDoesNotWait(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	frames := NewFrameReader(near, 1<<20)
	send := func(text string) {
		t.Helper()
		go func() { _, _ = io.WriteString(far, text) }()
		if err := frames.Begun(); err != nil {
			t.Fatal(err)
		}
	}
	if send("{"); frames.Whole() {
		t.Error("the beginning of a message is whole")
	}
	go func() { _, _ = io.WriteString(far, "}\x03") }()
	if _, err := frames.Next(); err != nil {
		t.Fatal(err)
	}
	if send("{}\x03{"); !frames.Whole() {
		t.Error("a message that has come is not whole")
	}
	if _, err := frames.Next(); err != nil {
		t.Fatal(err)
	}
	if frames.Whole() {
		t.Error("the beginning of the next message is whole")
	}
}
