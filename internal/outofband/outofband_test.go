package outofband

import (
	"reflect"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		command Command
		said    string
		want    Answer
		wrong   string
	}{
		{On, "", Answer{}, ""}, {Off, " \n", Answer{}, ""}, {Cycle, "null\n", Answer{}, ""}, {On, "done", Answer{}, `expected to say nothing, and said "done"`}, {Off, "{}", Answer{}, "say nothing"},
		{Status, `{"powered": true}`, Answer{Payload: map[string]any{"powered": true}, Powered: true}, ""},
		{Status, `{"powered": false, "watts": 3}`, Answer{Payload: map[string]any{"powered": false}}, ""},
		{Status, ``, Answer{}, "said nothing"}, {Status, `{}`, Answer{}, "whether the node is powered"}, {Status, `{"powered": "yes"}`, Answer{}, "whether the node is powered"},
		{Status, `[]`, Answer{}, "whether"}, {Status, `null`, Answer{}, "whether"}, {Status, `{"powered": true, "powered": false}`, Answer{}, "whether"},
		{Health, `[["Fan 1", "OK"], ["PS", "UNKNOWN"]]`, Answer{Payload: [][2]string{{"Fan 1", "OK"}, {"PS", "UNKNOWN"}}}, ""},
		{Health, `[["Fan", "WARNING"], ["PS", "CRITICAL"], ["T", "OK"]]`, Answer{Payload: [][2]string{{"Fan", "WARNING"}, {"PS", "CRITICAL"}, {"T", "OK"}}, Alarms: [][2]string{{"Fan", "WARNING"}, {"PS", "CRITICAL"}}}, ""},
		{Health, `[]`, Answer{Payload: [][2]string{}}, ""}, {Health, `null`, Answer{}, "a list of parts"}, {Health, `{"Fan": "OK"}`, Answer{}, "a list of parts"}, {Health, `["Fan"]`, Answer{}, "of each part"},
		{Health, `[["Fan"]]`, Answer{}, "of each part"}, {Health, `[["Fan", "OK", 1]]`, Answer{}, "of each part"}, {Health, `[[1, "OK"]]`, Answer{}, "of each part"},
		{Health, `[["Fan", "ok"]]`, Answer{}, "health item 'Fan' has invalid status 'ok'"}, {Health, ``, Answer{}, "said nothing"}, {Health, strings.Repeat("x", 5000), Answer{}, "a list of parts"},
	} {
		got, err := Read(c.command, []byte(c.said))
		if c.wrong == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
			t.Errorf("%s %q: %+v, %v", c.command, c.said, got, err)
		}
		if c.wrong != "" && (!fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), c.wrong) || len(err.Error()) > 1000) {
			t.Errorf("%s %.50q: %v", c.command, c.said, err)
		}
	}
}
