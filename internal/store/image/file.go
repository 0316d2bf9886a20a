package image

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/scratch"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// The first line of a file. Programs that know of no formats take the first alone, and
// so nothing that they could not read.
const (
	firstLine  = "drover backup 1\n"
	formatLine = "drover backup 2\n" // of a store with a format behind the first
)

// Header is what a backup file tells of itself.
type Header struct {
	Made     time.Time      `json:"made"`
	Revision store.Revision `json:"revision"`
	Epoch    int64          `json:"epoch"`
	// Format is that of the store; left out for the first one.
	Format int `json:"format,omitempty"`
}

// item is the line before an object's value.
type item struct {
	Kind     store.Kind     `json:"kind"`
	ID       string         `json:"id"`
	Revision store.Revision `json:"revision"`
	At       int64          `json:"at,omitempty"`
	Size     int            `json:"size"`
}

// trailer is the last line.
type trailer struct {
	Objects int    `json:"objects"`
	SHA256  string `json:"sha256"`
}

// fileMark begins the names of files that are being written.
const fileMark = ".drover-backup-"

// Create writes an image to a file that only its owner can read, all of it or
// nothing; count is how many objects it has. One whose name ends in Compressed is a frame of zstd around
// the same. A file that is there is replaced, if that is said, and refused with fault.Exists otherwise.
func Create(path string, img *Image, now time.Time, replace bool) (count int, err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return 0, taken(path)
	}
	scratch.Clear(filepath.Dir(path), fileMark)
	f, err := scratch.NewFile(filepath.Dir(path), fileMark)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot make the backup: %w", err)
	}
	count, err = writeAs(path, &sparing{f}, img, now)
	if err == nil {
		err = giveAway(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil { // before it is closed: then it is nobody's
		err = place(f.Name(), path, replace)
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		gone := os.Remove(f.Name())
		if _, ofStore := errors.AsType[*fault.Error](err); ofStore {
			return 0, errors.Join(err, gone)
		}
		return 0, fault.New(fault.Environment, "cannot write the backup: %w", errors.Join(err, gone))
	}
	return count, syncDir(filepath.Dir(path))
}

// spare is what a backup leaves free on its disk, which may be that of the store.
const spare = 8 << 20

// sparing is a file that does not fill its disk.
type sparing struct{ file *os.File }

// Write implements io.Writer. fault.Exhausted where there is no room.
func (s *sparing) Write(p []byte) (int, error) {
	var disk syscall.Statfs_t
	dir := filepath.Dir(s.file.Name())
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, err
	}
	if free := disk.Bavail * uint64(disk.Bsize); disk.Blocks > 0 && free < uint64(len(p))+spare {
		return 0, fault.New(fault.Exhausted, "there is no room for the backup in %s: %d MiB stay free there, for the store may be on the same disk", dir, spare>>20).
			WithHint("make room, or name another directory")
	}
	return s.file.Write(p)
}

func taken(path string) error {
	return fault.New(fault.Exists, "there is a file %s already", path).WithHint("name another, or say --yes to replace it")
}

// giveAway has a file that root makes belong to whom its directory belongs to: a controller looks at backups, and its user prunes them.
func giveAway(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// place gives a file its name. Without replace none that came meanwhile is lost.
func place(made, path string, replace bool) error {
	if replace {
		return os.Rename(made, path)
	}
	if err := os.Link(made, path); errors.Is(err, fs.ErrExist) {
		return taken(path)
	} else if err != nil { // a file system without links
		return os.Rename(made, path)
	}
	return os.Remove(made)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot flush the backup's directory: %w", err)
	}
	return nil
}

func write(to io.Writer, img *Image, now time.Time) (count int, err error) {
	sum := sha256.New()
	buffered := bufio.NewWriterSize(to, 1<<20)
	out := io.MultiWriter(buffered, sum)
	lines := json.NewEncoder(out)
	line, head := formatLine, Header{Made: now.UTC(), Revision: img.Revision, Epoch: img.Epoch, Format: img.Format}
	if img.Format == format.First {
		line, head.Format = firstLine, 0
	}
	if _, err = io.WriteString(out, line); err == nil {
		err = lines.Encode(head)
	}
	if err != nil {
		return 0, err
	}
	for o, err := range img.Objects {
		if err == nil {
			err = lines.Encode(item{o.Kind, o.ID, o.Revision, o.At, len(o.Value)})
		}
		if err == nil {
			_, err = out.Write(append(o.Value, '\n'))
		}
		if err != nil {
			return count, err
		}
		count++
	}
	if err = json.NewEncoder(buffered).Encode(trailer{count, hex.EncodeToString(sum.Sum(nil))}); err == nil {
		err = buffered.Flush()
	}
	return count, err
}

// File is an open backup file.
type File struct {
	Header

	// Objects is how many there are, Size how many bytes the file has, and Content how many they have.
	Objects       int
	Size, Content int64
	path          string
}

// Open reads all of a file and checks it. Errors: fault.WrongState for one that is
// not whole, or was changed since it was made.
func Open(path string) (*File, error) {
	f := &File{path: path}
	for o, err := range f.read(&f.Header, &f.Objects) {
		if err != nil {
			return nil, err
		}
		f.Content += int64(len(o.ID) + len(o.Value))
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Environment, "cannot tell how large the backup is: %w", err)
	}
	f.Size = info.Size()
	return f, nil
}

// Image returns what is in the file. What it yields is checked again at its
// end, for the file may have been changed since.
func (f *File) Image() *Image {
	return &Image{Revision: f.Revision, Epoch: f.Epoch, Format: f.Format, Objects: f.read(&Header{}, new(int))}
}

// reader reads a file while it sums up what it has read.
type reader struct {
	in  *bufio.Reader
	sum hash.Hash
}

func (r *reader) line() ([]byte, error) {
	text, err := r.in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return text, nil
}

// read yields the objects of a file; an error at the end tells that the file is
// not what was written.
func (f *File) read(head *Header, count *int) func(func(store.Object, error) bool) {
	return func(yield func(store.Object, error) bool) {
		file, err := openPlain(f.path)
		if err != nil {
			yield(store.Object{}, fault.New(fault.Environment, "cannot open the backup: %w", err))
			return
		}
		defer file.Close()
		r := &reader{in: bufio.NewReaderSize(file, 1<<20), sum: sha256.New()}
		n := 0
		err = r.head(head)
		for err == nil {
			var o store.Object
			var end bool
			if o, end, err = r.object(n); end || err != nil {
				break
			}
			n++
			if !yield(o, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Object{}, fault.New(fault.WrongState, "the backup %s is damaged behind object %d: %w", f.path, n, err).WithHint("take another one"))
		}
		*count = n
	}
}

func (r *reader) head(head *Header) error {
	first, err := r.line()
	if err != nil || string(first) != firstLine && string(first) != formatLine {
		return errors.New("it does not begin as a backup does")
	}
	text, err := r.line()
	if err == nil {
		err = json.Unmarshal(text, head)
	}
	if string(first) == firstLine {
		head.Format = format.First
	}
	r.sum.Write(first)
	r.sum.Write(text)
	return err
}

// cut says why a file cannot be read on.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is cut short")
	}
	return err
}

// object reads the next object, or the end of the file.
func (r *reader) object(count int) (o store.Object, end bool, err error) {
	text, err := r.line()
	if err != nil {
		return o, false, cut(err)
	}
	var t struct {
		item
		trailer
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err = decoder.Decode(&t); err != nil {
		return o, false, err
	}
	if t.SHA256 != "" {
		return o, true, r.end(text, count)
	}
	if t.Size < 0 || t.Size > store.MaxValue {
		return o, false, errors.New("a value has an impossible size")
	}
	value := make([]byte, t.Size+1)
	if _, err = io.ReadFull(r.in, value); err != nil {
		return o, false, cut(err)
	}
	r.sum.Write(text)
	r.sum.Write(value)
	o = store.Object{Key: store.Key{Kind: t.Kind, ID: t.ID}, Revision: t.Revision, At: t.At, Value: value[:t.Size]}
	return o, false, o.Check()
}

// end checks the last line.
func (r *reader) end(text []byte, count int) error {
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	want, err := json.Marshal(trailer{count, hex.EncodeToString(r.sum.Sum(nil))})
	if err == nil && !bytes.Equal(text, append(want, '\n')) {
		err = errors.New("its checksum is another")
	}
	return err
}
