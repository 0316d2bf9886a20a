package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/sim/world"
)

var events = []world.Event{
	{At: 0, Lane: "c1", Mark: world.Opens, Bar: "life c1.1", Text: "starts"},
	{At: time.Second, Lane: "c1", Mark: world.Opens, Bar: "term 1", Text: "leads & writes"},
	{At: 2 * time.Second, Lane: world.Store, Text: "commits"},
	{At: 3 * time.Second, Lane: "node1", Mark: world.Opens, Bar: "instance a/1", Text: "begins"},
	{At: 4 * time.Second, Lane: "c1", Mark: world.Struck, Text: "FAULT kill"},
	{At: 4 * time.Second, Lane: "c1", Mark: world.Closes, Bar: "term 1", Text: "leads no more"},
	{At: 5 * time.Second, Lane: "client1", Text: "job 1 <answered>"},
	{At: 6 * time.Second, Lane: "check", Mark: world.Wrong, Text: "broken"},
	{At: 7 * time.Second, Lane: world.End, Text: "job 1 is success"},
}

func TestText(t *testing.T) {
	for _, all := range []bool{false, true} {
		var text bytes.Buffer
		if err := Text(&text, events, all); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(text.String(), "\n"); all && lines != len(events) || !all && lines != len(events)-2 {
			t.Errorf("all %v: %d lines of %d\n%s", all, lines, len(events), text.String())
		}
	}
	if got := events[4].String(); got != "   4.000000 c1       FAULT kill" {
		t.Errorf("a line is %q", got)
	}
}

// TestSVG: the picture is well-formed, and has bars for what lasts, also for what nobody
// ended, lanes in order, and what broke in red.
func TestSVG(t *testing.T) {
	var picture bytes.Buffer
	if err := SVG(&picture, "seed 1 <b>", events); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var texts []string
	for dec := xml.NewDecoder(bytes.NewReader(picture.Bytes())); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture.String())
		}
		switch e := token.(type) {
		case xml.StartElement:
			counts[e.Name.Local]++
			for _, a := range e.Attr {
				if a.Name.Local == "stroke" && a.Value == "red" {
					counts["red"]++
				}
			}
		case xml.CharData:
			texts = append(texts, strings.TrimSpace(string(e)))
		}
	}
	if counts["rect"] != 1+3 || counts["red"] != 1 || counts["path"] != 1 {
		t.Errorf("the picture has %v", counts)
	}
	all := strings.Join(texts, "|")
	order := []string{"client1", "c1", "node1", "check"}
	for i, name := range order {
		if !strings.Contains(all, "|"+name+"|") || i > 0 && strings.Index(all, "|"+name+"|") < strings.Index(all, "|"+order[i-1]+"|") {
			t.Errorf("the lanes are %s", all)
		}
	}
	if strings.Contains(all, "|store|") || !strings.Contains(all, "leads & writes, 1s to 4s") || !strings.Contains(all, "begins, 3s to 7s") {
		t.Errorf("the texts are %s", all)
	}
}
