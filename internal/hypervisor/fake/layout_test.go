package fake

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// before are files as a program of before wrote them.
var before = map[string]string{
	"web":   `{"uuid":"uuid-of-web","state":"running","disks":[{"uuid":"d1","size":8}],"spec":{"name":"web","uuid":"uuid-of-web","memory":64,"vcpus":2,"disks":[],"nics":[]},"boots":3}`,
	"db":    `{"uuid":"uuid-of-db","state":"stopped","disks":[{"uuid":"d2","size":16}],"blank":true,"spec":null,"boots":0}`,
	"new":   `{"uuid":"uuid-of-old","state":"stopped","disks":null,"spec":null,"boots":1}`, // renamed
	"lost":  `{"uuid":"uuid-of-lost","sta`,
	"whose": `{"state":"running","disks":null,"spec":{"name":"whose","memory":32},"boots":1}`,
}

// nodeOfBefore is the directory of a node that a program of before has left.
func nodeOfBefore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, former), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range before {
		if err := os.WriteFile(filepath.Join(dir, former, name+suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hinted(err error) bool {
	f, known := errors.AsType[*fault.Error](err)
	return known && f.Hint != ""
}

// holds checks that a driver knows what is in before, and changes nothing of what has no UUID.
func holds(t *testing.T, d *Driver) {
	t.Helper()
	list, err := d.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range list {
		got = append(got, fmt.Sprintf("%s %s %s %d", list[i].Name, list[i].UUID, list[i].State, len(list[i].Disks)))
	}
	if want := []string{"db uuid-of-db stopped 1", "lost  stopped 0", "new uuid-of-old stopped 0", "web uuid-of-web running 1", "whose  running 0"}; !slices.Equal(got, want) {
		t.Fatalf("the node has %q, want %q", got, want)
	}
	if n, err := d.Node(t.Context()); err != nil || n.MemoryFree != 131072-1024-64-32 || n.DiskFree != 4194304-24 {
		t.Errorf("the node is %+v, %v", n, err)
	}
	for _, name := range []string{"lost", "whose"} {
		if list, err := d.Named(t.Context(), name); err != nil || len(list) != 1 || list[0].UUID != "" {
			t.Errorf("under the name %s are %+v, %v", name, list, err)
		}
		_, errPrepare := d.Prepare(t.Context(), thing(name), hypervisor.Mark{}, nil)
		_, errStart := d.Start(t.Context(), spec(name))
		_, errStop := d.Stop(t.Context(), thing(name), hypervisor.Stop{})
		_, errRemove := d.Remove(t.Context(), thing(name))
		_, errRename := d.Rename(t.Context(), thing(name), "another")
		_, errInstance := d.Instance(t.Context(), thing(name))
		_, errTaken := d.Rename(t.Context(), thing("db"), name)
		for i, err := range []error{errPrepare, errStart, errStop, errRemove, errRename, errInstance, errTaken} {
			if !fault.Is(err, fault.Exists) || !hinted(err) {
				t.Errorf("call %d under the name %s is answered with %v", i, name, err)
			}
		}
	}
}

func TestMovesWhatAProgramOfBeforeLeft(t *testing.T) {
	dir := nodeOfBefore(t)
	may := false
	d := open(t, Config{Dir: dir, ByUUID: func() bool { return may }})
	holds(t, d)
	for name, want := range before {
		if got, err := os.ReadFile(filepath.Join(dir, former, name+suffix)); err != nil || string(got) != want {
			t.Errorf("%s was changed to %s, %v", name, got, err)
		}
	}
	may = true
	holds(t, d) // which moves with its first change
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = strings.TrimPrefix(files[i], dir+"/")
	}
	if want := []string{"hypervisor.strangers/lost.json", "hypervisor.strangers/whose.json", "instances/uuid-of-db.json", "instances/uuid-of-old.json",
		"instances/uuid-of-web.json"}; !slices.Equal(files, want) {
		t.Errorf("the node's files are %q", files)
	}
	may = false // a restored store
	holds(t, open(t, Config{Dir: dir, ByUUID: never}))
	if _, err := d.Stop(t.Context(), thing("web"), hypervisor.Stop{}); err != nil {
		t.Error(err)
	}
	if i, err := open(t, Config{Dir: dir}).Instance(t.Context(), thing("web")); err != nil || i.State != hypervisor.Stopped {
		t.Errorf("what was stopped is %+v, %v", i, err)
	}
}

// TestWhatIsLeftForProgramsOfBeforeMayGo: it looks like rubbish, and nothing is lost when somebody clears it away.
func TestWhatIsLeftForProgramsOfBeforeMayGo(t *testing.T) {
	dir := t.TempDir()
	d := open(t, Config{Dir: dir})
	if _, err := d.Prepare(t.Context(), thing("web"), hypervisor.Mark{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{former, rest} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := open(t, Config{Dir: dir}).Instances(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("there are %+v, %v", list, err)
	}
}

// TestProgramsOfBeforeCannotOpenWhatWasMoved: they would take the node for an empty one.
func TestProgramsOfBeforeCannotOpenWhatWasMoved(t *testing.T) {
	for what, dir := range map[string]string{"a new node": t.TempDir(), "one of before": nodeOfBefore(t)} {
		open(t, Config{Dir: dir})
		if err := os.MkdirAll(filepath.Join(dir, former), 0o750); err == nil { // what they begin with
			t.Errorf("%s: a program of before can open it", what)
		}
	}
}

// TestKilledWhileItMoves ends a driver before each step of its move, and the next one before its first step, too.
func TestKilledWhileItMoves(t *testing.T) {
	var steps []string
	open(t, Config{Dir: nodeOfBefore(t), step: func(what string) error { steps = append(steps, what); return nil }})
	if len(steps) < 7 {
		t.Fatalf("the steps are %q", steps)
	}
	killed := errors.New("killed")
	for at := range steps {
		for _, again := range []int{0, 1, 2, 100} {
			dir := nodeOfBefore(t)
			for _, dies := range []int{at, again} {
				n := 0
				_, err := Open(Config{Dir: dir, step: func(string) error {
					n++
					if n > dies {
						return killed
					}
					return nil
				}})
				if err != nil && (!errors.Is(err, killed) || !fault.Is(err, fault.Environment)) {
					t.Fatalf("killed before %q: %v", steps[at], err)
				}
			}
			renamed := at > slices.Index(steps, "rename the former directory")
			if info, err := os.Stat(filepath.Join(dir, former)); again == 0 && !renamed && (err != nil || !info.IsDir()) {
				t.Errorf("killed before %q, and the former directory is gone", steps[at])
			}
			if again == 0 { // whatever the format says by then, what was moved is not forgotten
				holds(t, open(t, Config{Dir: dir, ByUUID: never}))
			}
			holds(t, open(t, Config{Dir: dir}))
			holds(t, open(t, Config{Dir: dir}))
		}
	}
}

// TestAMoveThatFailsInTheMidstOfATerm fails the change that it came with, and the next one goes on.
func TestAMoveThatFailsInTheMidstOfATerm(t *testing.T) {
	may, fails, at := false, 0, 0
	d := open(t, Config{Dir: nodeOfBefore(t), ByUUID: func() bool { return may }, step: func(string) error {
		if at++; at > fails {
			return errors.New("no space")
		}
		return nil
	}})
	may = true
	for ; fails < 100; fails++ {
		at = 0
		_, err := d.Stop(t.Context(), thing("web"), hypervisor.Stop{})
		i, errSeen := d.Instance(t.Context(), thing("web"))
		if errSeen != nil || i.Active() != (err != nil) {
			t.Fatalf("with %d steps: %v, and it is %+v, %v", fails, err, i, errSeen)
		}
		if err == nil {
			break
		}
		if !fault.Is(err, fault.Environment) || !hinted(err) {
			t.Fatal(err)
		}
	}
	if fails < 3 {
		t.Errorf("it moved in %d steps", fails)
	}
}

// TestAProgramOfBeforeInTheMidstOfAMove has made a directory of its own where the former one was: what it put there is seen to by
// people, and nothing is lost.
func TestAProgramOfBeforeInTheMidstOfAMove(t *testing.T) {
	for name, empty := range map[string]bool{"an empty directory": true, "a directory": false} {
		dir := nodeOfBefore(t)
		_, _ = Open(Config{Dir: dir, step: func(what string) error {
			if what == "leave a file" {
				return errors.New("killed")
			}
			return nil
		}})
		theirs := filepath.Join(dir, former)
		if err := os.Mkdir(theirs, 0o750); err != nil {
			t.Fatal(err)
		}
		if !empty {
			if err := os.WriteFile(filepath.Join(theirs, "x.json"), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Config{Dir: dir}); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), theirs) {
				t.Errorf("%s: %v", name, err)
			}
			if err := os.RemoveAll(theirs); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, open(t, Config{Dir: dir}))
	}
}

// TestWhatIsMendedIsFoundAgain: a file that could not be read when all was moved.
func TestWhatIsMendedIsFoundAgain(t *testing.T) {
	dir := nodeOfBefore(t)
	open(t, Config{Dir: dir})
	if err := os.WriteFile(filepath.Join(dir, rest, "lost"+suffix), []byte(`{"uuid":"uuid-of-lost","state":"stopped","disks":null,"spec":null,"boots":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if i, err := open(t, Config{Dir: dir}).Instance(t.Context(), thing("lost")); err != nil || i.Name != "lost" || i.UUID != "uuid-of-lost" {
			t.Fatalf("it is %+v, %v", i, err)
		}
	}
}

// TestProgramsOfBeforeReadTheLayoutOfBefore: they go by the names of the files, and each thing has one.
func TestProgramsOfBeforeReadTheLayoutOfBefore(t *testing.T) {
	dir := nodeOfBefore(t)
	d := open(t, Config{Dir: dir, ByUUID: never})
	made := hypervisor.Mark{Life: "life", Job: 1}
	for _, uuid := range []string{"u1", "u2"} {
		if _, err := d.Prepare(t.Context(), hypervisor.Thing{UUID: uuid, Name: "one"}, made, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Rename(t.Context(), thing("db"), "sql"); err != nil {
		t.Fatal(err)
	}
	files, err := d.files(former)
	if want := []string{"lost", "new", "one", "sql", "u1", "web", "whose"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("the files are %q, %v", files, err)
	}
	if err := os.Rename(d.path("one"), d.path("renamed")); err != nil { // as they do
		t.Fatal(err)
	}
	d = open(t, Config{Dir: dir})
	for uuid, name := range map[string]string{"u1": "one", "u2": "renamed", "uuid-of-db": "sql"} {
		if i, err := d.Instance(t.Context(), hypervisor.Thing{UUID: uuid, Name: "x"}); err != nil || i.Name != name {
			t.Errorf("%s is called %s, %v, want %s", uuid, i.Name, err, name)
		}
	}
}

// TestOfTwoFilesWithOneUUIDTheFirstCounts before and behind a move, and the other is a stranger that nothing happens to.
func TestOfTwoFilesWithOneUUIDTheFirstCounts(t *testing.T) {
	dir := nodeOfBefore(t)
	if err := os.WriteFile(filepath.Join(dir, former, "webcopy"+suffix), []byte(`{"uuid":"uuid-of-web","state":"stopped","disks":null,"spec":null,"boots":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"before", "behind", "long behind"} {
		byUUID := never
		if what != "before" {
			byUUID = nil
		}
		d := open(t, Config{Dir: dir, ByUUID: byUUID})
		for name, want := range map[string]string{"web": "uuid-of-web running", "webcopy": " stopped"} {
			list, err := d.Named(t.Context(), name)
			if err != nil || len(list) != 1 || list[0].UUID+" "+string(list[0].State) != want {
				t.Errorf("%s the move, under %s are %+v, %v", what, name, list, err)
			}
		}
	}
}
