package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// shelf is a store of the parts of one job.
type shelf map[string]string

func (s shelf) write(parts []job.Part) (bytes int) {
	for _, p := range parts {
		s[p.Name] = string(p.Value)
		bytes += len(p.Value)
	}
	return bytes
}

func (s shelf) read() (*job.Job, error) {
	return job.Decode(3, []byte(s[""]), func(name string) ([]byte, error) {
		if text, ok := s[name]; ok {
			return []byte(text), nil
		}
		return nil, fault.New(fault.NotFound, "there is no %s", name)
	})
}

func delays(t testing.TB, n int) []*opcode.Opcode {
	t.Helper()
	return slices.Repeat([]*opcode.Opcode{delay(t)}, n)
}

// chat leaves so many entries in the log of an opcode.
func chat(j *job.Job, i, n int) *job.Job {
	entries := make([]job.LogEntry, n)
	for k := range entries {
		entries[k] = job.LogEntry{Time: 7, Type: job.LogMessage, Payload: json.RawMessage(`"copied one more of many disks"`)}
	}
	return j.AddLogs(i, entries...)
}

// Whatever of what was handed to the store is lost, as long as it is not known
// to be durable, the next write that is durable makes it whole again.
func TestPartsAreEnough(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := job.New(3, delays(t, rapid.IntRange(1, 4).Draw(rt, "ops")), "", submitted)
		kept := shelf{}
		kept.write(j.Parts())
		durable, flying := j, []*job.Job{}
		now := j.Received
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			now++
			if i := j.Next(); i < len(j.Ops) && j.Ops[i].Status == job.Running && rapid.Bool().Draw(rt, "chats") {
				j = chat(j, i, rapid.IntRange(1, 80).Draw(rt, "entries"))
			} else {
				j = step(rt, j, now)
			}
			parts := j.Parts(append(slices.Clone(flying), durable)...)
			flying = append(flying, j)
			switch rapid.SampledFrom([]string{"lost", "written", "durable"}).Draw(rt, "outcome") {
			case "written":
				kept.write(parts)
			case "durable":
				kept.write(parts)
				durable, flying = j, nil
			}
		}
		kept.write(j.Parts(append(flying, durable)...))
		got, err := kept.read()
		if err != nil {
			rt.Fatal(err)
		}
		if string(got.Encode()) != string(j.Encode()) {
			rt.Fatalf("read\n%s\nwrote\n%s", got.Encode(), j.Encode())
		}
	})
}

// What is written over the life of a job grows with it, not with its square.
func TestWritesOfALongJobAreLinear(t *testing.T) {
	steps := func(n int) int {
		j, kept := job.New(3, delays(t, n), "", submitted), shelf{}
		written, now := kept.write(j.Parts()), j.Received
		for i := range j.Ops {
			for _, next := range []func() *job.Job{
				func() *job.Job { return j.BeginWait(i, now).BeginRun(i, now) },
				func() *job.Job { return j.Succeed(i, nil, now) },
			} {
				before := j
				j = next()
				written += kept.write(j.Parts(before))
			}
		}
		return written
	}
	entries := func(n int) int {
		j, kept := job.New(3, delays(t, 1), "", submitted).BeginRun(0, 1), shelf{}
		written := 0
		for range n {
			before := j
			j = chat(j, 0, 1)
			written += kept.write(j.Parts(before))
		}
		return written
	}
	for what, write := range map[string]func(n int) int{"opcodes": steps, "entries": entries} {
		few, many := write(300), write(3000)
		t.Logf("%s: 300 take %d bytes, 3000 take %d", what, few, many)
		if many > 11*few {
			t.Errorf("ten times the %s take %.1f times the bytes", what, float64(many)/float64(few))
		}
	}
}

func TestAJobOfOneOpcodeIsOneObject(t *testing.T) {
	j := chat(job.New(3, delays(t, 1), "key", submitted).BeginRun(0, 5), 0, 20).Succeed(0, nil, 6)
	if parts := j.Parts(); len(parts) != 1 || parts[0].Name != "" || j.Divided() {
		t.Errorf("%d parts", len(parts))
	}
	if parts := j.Parts(j); len(parts) != 1 {
		t.Errorf("%d parts when it is written again", len(parts))
	}
}

// Stores of versions before parts have each job in one object.
func TestJobsStoredWholeAreRead(t *testing.T) {
	op := func(log string) string {
		return `{"input":{"OP_ID":"OP_TEST_DELAY","duration":1},"status":"running","priority":0` + log + `}`
	}
	var entries []string
	for i := range 40 {
		entries = append(entries, fmt.Sprintf(`[%d,5,"message","x"]`, i+1))
	}
	log := `,"log":[` + strings.Join(entries, ",") + `]`
	for _, old := range []string{
		`{"id":3,"received":5,"ops":[` + op(log) + `]}`,
		`{"id":3,"received":5,"ops":[` + op("") + `,` + op(log) + `,` + op("") + `]}`,
	} {
		kept := shelf{"": old}
		j, err := kept.read()
		if err != nil {
			t.Fatal(err)
		}
		if j.LastSerial() != 40 {
			t.Errorf("the log ends with %d", j.LastSerial())
		}
		// Its next change writes all of it, for nothing is where it is to be.
		changed := chat(j, len(j.Ops)-1, 1)
		kept.write(changed.Parts(j))
		got, err := kept.read()
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Encode()) != string(changed.Encode()) {
			t.Errorf("read\n%s\nwrote\n%s", got.Encode(), changed.Encode())
		}
	}
}

func TestDamagedPartsAreNoticed(t *testing.T) {
	j := chat(job.New(3, delays(t, 3), "", submitted).BeginRun(0, 5), 0, 100)
	whole := shelf{}
	whole.write(j.Parts())
	if len(whole) != 6 {
		t.Fatalf("%d parts", len(whole))
	}
	for name := range whole {
		for _, damage := range []func(shelf){
			func(s shelf) { delete(s, name) },
			func(s shelf) { s[name] = s[name][:len(s[name])-1] },
		} {
			s := maps.Clone(whole)
			damage(s)
			_, err := s.read()
			if d, ok := errors.AsType[*job.DamageError](err); !ok || d.ID != 3 || !strings.Contains(err.Error(), name) {
				t.Errorf("without %q: %v", name, err)
			}
		}
	}
	failing := fault.New(fault.Unavailable, "the disk is away")
	_, err := job.Decode(3, []byte(whole[""]), func(string) ([]byte, error) { return nil, failing })
	if !errors.Is(err, error(failing)) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("a store that fails is no damage: %v", err)
	}
}
