package inventory

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestWhatBecomesOfTheFormat: people are told what there is, what can be done, and who keeps it from more; in 80 columns.
func TestWhatBecomesOfTheFormat(t *testing.T) {
	day := time.Date(2030, 1, 2, 12, 0, 0, 0, time.Local)
	var f storeFormat
	f.Holds = append(f.Holds, struct {
		Name  string    `json:"name"`
		Why   string    `json:"why"`
		Until time.Time `json:"until"`
	}{"c9", "its program reads format 1 and writes 1, not 2", day})
	hold := "Format 2 has to wait for\n  c9: its program reads format 1 and writes 1, not 2;\n    it counts until 2030-01-02 12:00 unless it is stopped, or heard again\n"
	held := f.Holds
	for _, c := range []struct {
		format, next int
		auto, holds  bool
		info, dry    string
	}{
		{2, 2, true, false, "It is the newest that the leader's program knows.\n", "The format of the store would stay 2.\nIt is the newest that the leader's program knows.\n"},
		{1, 1, true, true, hold, "The format of the store would stay 1.\n" + hold},
		{1, 2, true, false, "It is about to be raised to 2.\n", "The format of the store would be raised from 1 to 2:\n"},
		{1, 2, false, false, "It can be raised to 2: drover cluster format raise\n", "The format of the store would be raised from 1 to 2:\n"},
		{0, 1, false, true, "It can be raised to 1: drover cluster format raise\n" + hold,
			"The format of the store would be raised from 0 to 1:\n" + strings.Replace(hold, "has to wait", "would have to wait", 1)},
	} {
		f.Format, f.Next, f.Auto, f.Holds = c.format, c.next, c.auto, nil
		if c.holds {
			f.Holds = held
		}
		if got := f.prospect(); got != c.info {
			t.Errorf("%+v: %q, want %q", c, got, c.info)
		}
		got := f.wouldRaise()
		if got != c.dry {
			t.Errorf("%+v: %q, want %q", c, got, c.dry)
		}
		for line := range strings.Lines(got) {
			if len(line) > 81 {
				t.Errorf("a line has %d columns: %s", len(line)-1, line)
			}
		}
	}
}

// TestFormatsOfMasters: what a program writes, what it reads where that is more, and nothing where a leader of before
// does not tell; and why one cannot lead.
func TestFormatsOfMasters(t *testing.T) {
	answer := `[{"name":"c1","role":"leader","formats":{"reads":{"oldest":1,"newest":2},"writes":{"oldest":1,"newest":2}}},
		{"name":"c2","role":"standby","formats":{"reads":{"oldest":1,"newest":2},"writes":{"oldest":1,"newest":1}}},
		{"name":"c3","role":"standby","note":"this controller cannot lead"}]`
	var rows []master
	if err := json.Unmarshal([]byte(answer), &rows); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range rows {
		got = append(got, m.Formats.String())
	}
	if text := strings.Join(got, ", "); text != "1-2, 1 (reads 1-2), -" {
		t.Error(text)
	}
	if text := notes(rows); text != "c3: this controller cannot lead\n" {
		t.Error(text)
	}
}
