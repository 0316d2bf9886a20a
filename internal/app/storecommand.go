package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/deploy/dump"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/life"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// A place of a store is named as people name it: the URL of a PostgreSQL
// database, or the data directory of a controller with an embedded store.

// checkPlace refuses a URL that names no kind of store: it is no directory.
func checkPlace(place string) error {
	if strings.Contains(place, "://") {
		return checkStoreURL(place)
	}
	return nil
}

// holdsStore refuses a place that is none, and a database without a store, which
// would get one by being looked at.
func holdsStore(ctx context.Context, place string) error {
	if err := checkPlace(place); err != nil || !isPostgres(place) {
		return err
	}
	there, err := postgres.Exists(ctx, place)
	if err == nil && !there {
		err = fault.New(fault.NotFound, "there is no store in the schema of the database that the URL names").
			WithHint("search_path of the URL names the schema; it is %s otherwise", postgres.DefaultSchema)
	}
	return err
}

// imageOf hands out what the store at a place holds at one moment.
func imageOf(ctx context.Context, place string, use func(*image.Image) error) error {
	if err := holdsStore(ctx, place); err != nil {
		return err
	}
	if isPostgres(place) {
		return postgres.Image(ctx, place, use)
	}
	dir := filepath.Join(place, storeDir)
	return sqlite.Image(ctx, dir, readAt(dir), use)
}

// readAt are the places for a copy of an embedded store that is read: beside it, or where that has no room in $TMPDIR. Without that it is a directory that
// is no memory.
func readAt(dir string) []string { return []string{dir, cmp.Or(os.Getenv("TMPDIR"), "/var/tmp")} }

// loaded tells of a store that was made of an image.
type loaded struct {
	objects int
	// aside is the directory into which was put what had been left there of another store; empty for nothing.
	aside string
}

// tell says on the side what was put aside.
func (l loaded) tell(cmd *cobra.Command) {
	if l.aside != "" {
		cmd.PrintErrf("what was left of the store of before, without its database, is in %s\n", l.aside)
	}
}

// loadInto makes a store at a place with the content of an image, and compares it object by object with what it is to be, which
// wanted hands out once more. An embedded store that is another gets no place.
func loadInto(ctx context.Context, place string, img *image.Image, wanted func(use func(*image.Image) error) error) (made loaded, err error) {
	if err := checkPlace(place); err != nil {
		return made, err
	}
	compare := func(read func(use func(*image.Image) error) error) error {
		return wanted(func(want *image.Image) error {
			return read(func(is *image.Image) (err error) {
				made.objects, err = image.Compare(want, is)
				return err
			})
		})
	}
	if isPostgres(place) {
		if err := postgres.Load(ctx, place, img); err != nil {
			return made, err
		}
		return made, compare(func(use func(*image.Image) error) error { return postgres.Image(ctx, place, use) })
	}
	made.aside, err = sqlite.Load(filepath.Join(place, storeDir), img, func(dir string) error {
		return compare(func(use func(*image.Image) error) error { return sqlite.Image(ctx, dir, readAt(dir), use) })
	})
	return made, err
}

func checkStore(ctx context.Context, place string) (*image.Findings, error) {
	if err := holdsStore(ctx, place); err != nil {
		return nil, err
	}
	if isPostgres(place) {
		return postgres.Check(ctx, place)
	}
	dir := filepath.Join(place, storeDir)
	return sqlite.Check(ctx, dir, readAt(dir))
}

// placeFor is the place that is named or, where none is, that of this machine's controller, which
// a person is told: the one that the configuration names, or the first of the usual directories
// that has a store.
func placeFor(cmd *cobra.Command, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	place, err := usualPlace(defaultConfig)
	if err == nil {
		cmd.PrintErrf("the store is that of %s\n", withoutPassword(place))
	}
	return place, err
}

// placeToMake is the place that is named for a store that is made or, where none is, that of this machine's controller, which a person is told, with the file of
// its keys.
func placeToMake(cmd *cobra.Command, named, config string) (place, keyFile string, err error) {
	if named != "" {
		return named, "", nil
	}
	s, err := ownSettings(config)
	if err != nil {
		return "", "", err
	}
	place = cmp.Or(s.Store, s.Data)
	cmd.PrintErrf("the store is made in %s\n", withoutPassword(place))
	return place, cmp.Or(s.KeyFile, filepath.Join(s.Data, keyName)), nil
}

func usualPlace(config string) (string, error) {
	from := source{defaults: serveDefaults()}
	if _, err := os.Stat(config); err == nil {
		from.file = config
		s, err := from.read()
		if err != nil {
			return "", err
		}
		if s.Store != "" {
			return s.Store, nil
		}
		from.defaults.Data = s.Data
	}
	for _, dir := range []string{from.defaults.Data, DefaultData()} {
		if _, err := os.Stat(filepath.Join(dir, storeDir)); err == nil {
			return dir, nil
		}
	}
	return "", fault.New(fault.NotFound, "there is no store in %s, nor in %s", from.defaults.Data, DefaultData()).
		WithHint("name the data directory of the controller, or the URL of its database")
}

// StoreCommand returns `drover store`.
func StoreCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Check and copy stores"}
	cmd.AddCommand(&cobra.Command{
		Use:   "check [PLACE]",
		Short: "Prove a store consistent",
		Long: `check reads all of a store and proves it consistent: every revision has its
place in the feed, and every object is what the feed says of it last; with an
embedded store also that SQLite's files are whole and every row is what was
written. It can be used while controllers use the store, and changes nothing.
PLACE is the data directory of a controller, or the URL of a PostgreSQL database;
without it, that of this machine's controller.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			place, err := placeFor(cmd, strings.Join(args, ""))
			if err != nil {
				return err
			}
			found, err := checkStore(cmd.Context(), place)
			if err != nil {
				return err
			}
			for _, p := range found.Problems {
				cmd.Println(p)
			}
			if found.More > 0 {
				cmd.Printf("and %d more\n", found.More)
			}
			if n := len(found.Problems) + found.More; n > 0 {
				return fault.New(fault.WrongState, "the store has %d problems", n).WithHint("stop the controller, keep the files, and restore a backup")
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d objects and %d rows of the feed are consistent\n", found.Objects, found.Rows)
			return err
		},
	}, &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a store to another place, and compare the two object by object",
		Long: `copy copies all objects with their revisions, and what was given out: revisions,
epochs, job ids and the store's life go on: the copy takes the place of the original,
which must not be used any more. No controller may lead on FROM meanwhile, and TO must be
empty. When both are written, they are read again and compared. Places are
named as with check.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := copyStore(cmd.Context(), args[0], args[1])
			made.tell(cmd)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "copied %d objects, and compared them\n", made.objects)
			return err
		},
	}, advanceCommand(), forgetKeyCommand())
	return cmd
}

// advanceCommand returns `drover store advance`.
func advanceCommand() *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:   "advance URL",
		Short: "Have a database that was restored by its own means go on with new numbers",
		Long: `advance is for a PostgreSQL database that was restored by a dump, a base backup or
to a point in time. Nodes have followed controllers that it does not know of, and
refuse orders under epochs that come again; clients know jobs whose ids would be
given a second time. So it goes on with revisions, epochs, job ids and numbers of
servers ` + jumpText + ` later, and begins another life, as drover backup restore does. No
controller may lead on it meanwhile. Without --yes it says what it would do.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isPostgres(args[0]) {
				return fault.New(fault.Unsupported, "advance: %s is no URL of a PostgreSQL database", withoutPassword(args[0])).
					WithHint("of an embedded store make a backup, and restore it: drover backup create, drover backup restore")
			}
			next, err := advance(cmd.Context(), args[0], sure)
			if err != nil {
				return err
			}
			did := "goes on"
			if !sure {
				did = "would go on (nothing was changed: say --yes)"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "the store %s behind revision %d and epoch %d\n", did, next.Revision, next.Epoch)
			return err
		},
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "do it")
	return cmd
}

// advance raises what a store gives out, if that is wanted, and returns behind what it goes on.
func advance(ctx context.Context, url string, sure bool) (next image.Image, err error) {
	var was store.Revision
	var numbers []store.Object
	err = imageOf(ctx, url, func(img *image.Image) error {
		was = img.Revision
		next.Revision, next.Epoch = img.Revision+jump, img.Epoch+jump
		for o, err := range life.Renew(withNumber(withFloor(img.Objects, next.Revision), next.Revision), newUUID()) {
			if err != nil {
				return err
			}
			if o.Key == queue.FloorKey || o.Key == tagsync.NumberKey || o.Key == tagsync.FloorKey || o.Key == life.Key {
				o.Revision = next.Revision
				numbers = append(numbers, o)
			}
		}
		return nil
	})
	next.Objects = func(yield func(store.Object, error) bool) {
		for _, o := range numbers {
			if !yield(o, nil) {
				return
			}
		}
	}
	if err != nil || !sure {
		return next, err
	}
	return next, postgres.Advance(ctx, url, was, &next)
}

// copyStore copies a store that nobody leads on.
func copyStore(ctx context.Context, from, to string) (made loaded, err error) {
	release, err := holdOff(ctx, from)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, release()) }()
	read := func(use func(*image.Image) error) error { return imageOf(ctx, from, use) }
	err = read(func(img *image.Image) (err error) {
		made, err = loadInto(ctx, to, img, read)
		return err
	})
	return made, err
}

// formOf is what --output asks for, and refuses what a single thing is not shown as.
func formOf(cmd *cobra.Command) (string, error) {
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return "table", nil
	}
	form := flag.Value.String()
	if form == "csv" {
		return "", fault.New(fault.Invalid, "only lists can be shown as csv").At("output")
	}
	return form, nil
}

// inForm is JSON in one of the forms of --output.
func inForm(data []byte, form string) (string, error) {
	if form == "json" {
		return string(data) + "\n", nil
	}
	v, err := yaqljson.Decode(data)
	if err != nil {
		return "", err
	}
	return dump.YAML(v)
}
