package machine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/state"
)

// Limits of a submission. Those of its jobs are in package job.
const (
	// MaxKey is the greatest length of a submission key in bytes.
	MaxKey = 256
	// MaxJobs is how many jobs a submission may have.
	MaxJobs = 5_000
	// MaxUnfinished is how much memory the jobs that have not ended may take together,
	// in bytes, as job.Weigh has it.
	MaxUnfinished = 1 << 30
)

// Submission is a job as a client hands it in.
type Submission struct {
	Ops []*opcode.Opcode
	// Key makes the submission idempotent: as long as the job is known, live or
	// archived, another submission with the same key makes no new job and answers
	// with its id, also while the queue is drained. Printable text in UTF-8; empty
	// for none.
	Key string
	// IgnoreDrain submits also while the queue is drained.
	IgnoreDrain bool
	// Refused is why the job is not to be taken, if its sender knows already. Among
	// several jobs it keeps its place, so that relative ids count it.
	Refused error
}

// Outcome is what became of one submission: an id, or an error.
type Outcome struct {
	ID  job.ID
	Err error
}

// CheckSubmissions refuses a submission that is more than the queue takes at
// once, for others wait meanwhile, and marks the jobs as refused that are wrong
// in themselves.
func CheckSubmissions(subs []Submission) error {
	if len(subs) > MaxJobs {
		return fault.New(fault.TooLarge, "a submission may have at most %d jobs, this one has %d", MaxJobs, len(subs)).
			At("jobs").WithHint("submit them in several parts")
	}
	ops, dependencies := 0, 0
	for _, s := range subs {
		ops += len(s.Ops)
		for _, op := range s.Ops {
			dependencies += len(op.Depends)
		}
	}
	if ops > job.MaxOpcodes {
		return fault.New(fault.TooLarge, "a submission may have at most %d opcodes, this one has %d", job.MaxOpcodes, ops).At("ops")
	}
	if dependencies > job.MaxDependencies {
		return fault.New(fault.TooLarge, "a submission may have at most %d dependencies, this one has %d", job.MaxDependencies, dependencies).At("depends")
	}
	for i := range subs {
		s := &subs[i]
		if s.Refused == nil {
			s.Refused = checkKey(s.Key)
		}
		if s.Refused == nil {
			s.Refused = job.CheckInput(s.Ops)
		}
	}
	return nil
}

// checkKey tells what is wrong with a submission key.
func checkKey(key string) error {
	if len(key) > MaxKey {
		return fault.New(fault.TooLarge, "a submission key may have at most %d bytes, this one has %d", MaxKey, len(key)).At("key")
	}
	if !utf8.ValidString(key) {
		return fault.New(fault.Invalid, "the submission key %q is not UTF-8", key).At("key")
	}
	for i, r := range key {
		if !unicode.IsPrint(r) {
			return fault.New(fault.Invalid, "the submission key %q has a character at byte %d that cannot be printed", key, i).At("key")
		}
	}
	return nil
}

// Submit takes several jobs with ascending ids. They passed CheckSubmissions.
// A job that cannot be taken has an error as its outcome and does not keep the
// others from being taken. Relative ids count places in the submission, and go
// on before it with the jobs that were submitted last.
type Submit struct {
	Jobs []Submission
	// Known are the archived jobs that had these keys, 0 where there is none.
	Known map[string]job.ID
	// Ended is what jobs came to that the submission depends on and that the
	// machine has forgotten; empty where there is no such job.
	Ended map[job.ID]job.Status

	batch *batch // by Prepare
}

// Missing is what a machine has to be told to take a submission.
type Missing struct {
	Keys []string // for Submit.Known
	Jobs []job.ID // for Submit.Ended
}

// Prepare works out the ids of a submission and what they depend on. The result
// can be applied if nothing is missing and no event came in between.
func (m *Machine) Prepare(s Submit) (Submit, Missing) {
	b := &batch{jobs: make([]candidate, len(s.Jobs)), first: m.lastID + 1, last: m.lastID,
		weight: m.weight, keys: map[string]int{}, refused: map[job.ID]error{}}
	for i := range b.jobs {
		b.jobs[i].Submission = s.Jobs[i]
		m.number(b, i, s.Known)
	}
	if len(b.missing.Keys) > 0 {
		return s, b.missing
	}
	for i := range b.jobs {
		m.resolve(b, i, s.Ended)
	}
	s.batch = b
	return s, b.missing
}

func (s Submit) apply(m *Machine) {
	b := s.batch
	if b == nil || b.first != m.lastID+1 {
		panic("machine: a submission that was not prepared")
	}
	m.lastID = b.last
	m.out.Repeated = b.repeated
	b.refuseCircles()
	m.take(b, s.Ended)
}

// batch is one submission on its way in.
type batch struct {
	jobs []candidate
	// first and last are the new ids.
	first, last job.ID
	// keys are the places of this submission's new jobs by their keys; repeated are
	// old jobs whose key came again.
	keys     map[string]int
	repeated []job.ID
	// weight is that of all jobs that have not ended, with those that are to be taken.
	weight int
	// graph is what the new jobs depend on.
	graph map[job.ID][]job.ID
	// refused tells why jobs are not taken.
	refused map[job.ID]error
	missing Missing
}

// candidate is one job of a submission on its way in.
type candidate struct {
	Submission

	id    job.ID
	isNew bool // not an old job, nor one of this submission, whose key came again
}

// number gives the job at a place of the batch its id. One that is refused gets
// one too: it has to be counted.
func (m *Machine) number(b *batch, i int, known map[string]job.ID) {
	c := &b.jobs[i]
	if c.Refused == nil && c.Key != "" && m.again(b, c, known) {
		return
	}
	b.last++
	c.id, c.isNew = b.last, true
	if c.Refused == nil && m.flags.Drained && !c.IgnoreDrain {
		c.Refused = drained(m.flags)
	}
	if c.Refused == nil {
		c.Refused = b.admit(c)
	}
	if c.Refused != nil {
		b.refused[c.id] = c.Refused
	} else if c.Key != "" {
		b.keys[c.Key] = i
	}
}

// admit takes the room that a new job needs, or refuses the job for want of it.
func (b *batch) admit(c *candidate) error {
	more := job.Weigh(c.Ops)
	if b.weight+more > MaxUnfinished {
		return fault.New(fault.Full, "the jobs that have not ended fill the %d MiB of memory that there are for them", MaxUnfinished>>20).
			WithHint("try again when some have ended, or cancel those that are not needed")
	}
	b.weight += more
	return nil
}

// again looks for the job whose key came again, and gives the candidate its id.
// Another request with the key of a job of the same submission is refused; of older
// jobs only the queue knows what they were made of.
func (m *Machine) again(b *batch, c *candidate, known map[string]job.ID) bool {
	if at, same := b.keys[c.Key]; same {
		first := job.New(b.jobs[at].id, b.jobs[at].Ops, c.Key, m.now)
		if !first.MadeOf(c.Ops) {
			c.Refused = KeyTaken(first)
			return false
		}
		c.id = first.ID
		return true
	}
	told := true
	if c.id = m.Key(c.Key); c.id == 0 {
		c.id, told = known[c.Key]
	}
	if !told {
		b.missing.Keys = append(b.missing.Keys, c.Key)
	}
	if c.id != 0 {
		b.repeated = append(b.repeated, c.id)
	}
	return c.id != 0
}

// KeyTaken is the error of a submission whose key belongs to a job that was made of
// something else: who asks for a stop must not be told of a start.
func KeyTaken(j *job.Job) error {
	return fault.New(fault.Conflict, "the submission key %q belongs to job %d, which is another one (%s)",
		j.Key, j.ID, strings.Join(j.Summary(), ", ")).At("key").WithHint("each request needs a key of its own")
}

// taken tells whether there will be a new job, as far as is known.
func (b *batch) taken(c *candidate) bool { return c.isNew && b.refused[c.id] == nil }

// resolve makes the dependencies of the job at a place of the batch absolute.
func (m *Machine) resolve(b *batch, i int, ended map[job.ID]job.Status) {
	c := &b.jobs[i]
	if !b.taken(c) {
		return
	}
	ops, err := job.ResolveDependencies(c.id, c.Ops, func(relative int64) job.ID {
		if at := int64(i) + relative; at >= 0 {
			return b.jobs[at].id
		}
		return b.first + job.ID(int64(i)+relative)
	})
	if err != nil {
		b.refused[c.id] = err
		return
	}
	c.Ops = ops
	on := job.DependenciesOf(ops)
	if len(on) == 0 {
		return
	}
	if b.graph == nil {
		b.graph = map[job.ID][]job.ID{}
	}
	b.graph[c.id] = on
	for _, id := range on {
		if _, told := ended[id]; !told && id < b.first && m.Job(id) == nil && !m.unread[id] {
			b.missing.Jobs = append(b.missing.Jobs, id)
		}
	}
}

// refuseCircles refuses the jobs that would wait for themselves. Only jobs of one
// submission can: what names an id that was not given yet fails at once.
func (b *batch) refuseCircles() {
	for id := range b.refused {
		delete(b.graph, id)
	}
	for id, circle := range job.Circles(b.graph) {
		b.refused[id] = fault.New(fault.Invalid, "the job would wait for itself: %s wait for one another", describe(circle)).At("depends")
	}
}

// describe lists jobs, the first few of them if they are many.
func describe(ids []job.ID) string {
	const few = 8
	names := make([]string, min(len(ids), few))
	for i := range names {
		names[i] = "job " + ids[i].String()
	}
	text := strings.Join(names, ", ")
	if more := len(ids) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// take makes the jobs and lets them go on, after all of them are there: they
// may name one another.
func (m *Machine) take(b *batch, ended map[job.ID]job.Status) {
	m.out.Outcomes = make([]Outcome, len(b.jobs))
	var taken []*entry
	for i := range b.jobs {
		c := &b.jobs[i]
		if err := b.refused[c.id]; err != nil {
			m.out.Outcomes[i].Err = err
			continue
		}
		if m.out.Outcomes[i].ID = c.id; c.isNew {
			e := m.newEntry(m.newJob(b, c))
			m.keep(e)
			taken = append(taken, e)
		}
	}
	for _, e := range taken {
		m.connect(e, ended)
	}
	for _, e := range taken {
		m.enqueue(e)
	}
}

// newJob makes the job of a candidate. One that depends on a refused job, or on
// an id that was not given yet, can never succeed and fails at once.
func (m *Machine) newJob(b *batch, c *candidate) *job.Job {
	j := job.New(c.id, c.Ops, c.Key, m.now)
	for _, id := range b.graph[c.id] {
		if why := b.refused[id]; why != nil {
			return j.Fail(0, fault.New(fault.Failed, "Dependency error: Job %d not found: it was refused (%s)", id, why.Error()), j.Received)
		}
		if id > m.lastID {
			return j.Fail(0, fault.New(fault.Failed, "Dependency error: Job %d not found", id), j.Received)
		}
	}
	return j
}

// enqueue lets a new job go on.
func (m *Machine) enqueue(e *entry) {
	m.out.touch(e.id())
	if key := e.job.Key; key != "" {
		m.keys.Set(key, e.id())
		m.out.Keys = append(m.out.Keys, key)
	}
	if e.job.Final() {
		m.end(e, e.job)
		return
	}
	e.rule = m.chain.Decide(int64(e.id()), e.inputs)
	m.sort(e)
}

// drained refuses a job, and says who wants that.
func drained(f state.Flags) error {
	err := fault.New(fault.Drained, "Queue drained")
	const end = "whoever drained it ends that with `drover job undrain`"
	if f.Drain == nil {
		return err.WithHint(end + "; drover cluster queue info tells who and why")
	}
	return err.WithHint("%s; it was %s", end, f.Drain)
}
