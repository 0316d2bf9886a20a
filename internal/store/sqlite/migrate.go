package sqlite

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema; its version is the number that its file
// name begins with.
type migration struct {
	version int64
	name    string
	sql     string
}

// migrations reads the embedded steps, in order, and checks that they are
// numbered 1, 2, 3 and so on.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var steps []migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("migration %s should have the number %d", name, i+1)
		}
		steps = append(steps, migration{version, path.Base(name), string(text)})
	}
	return steps, nil
}

// migrate brings the schema up to date, each step in a transaction together with
// the version it leads to. A schema that is newer than this program is left
// alone and refused.
func migrate(c *conn, steps []migration) error {
	if err := c.script("CREATE TABLE IF NOT EXISTS schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)"); err != nil {
		return err
	}
	have, err := c.integer("SELECT coalesce(max(version), 0) FROM schema_version")
	if err != nil {
		return err
	}
	if newest := int64(len(steps)); have > newest {
		return fault.New(fault.WrongState, "the database has schema version %d, this program knows versions up to %d", have, newest).
			WithHint("use the program version that wrote it, or a newer one")
	}
	for _, step := range steps[have:] {
		if err := step.apply(c); err != nil {
			return fmt.Errorf("migration %s: %w", step.name, err)
		}
	}
	return nil
}

func (m migration) apply(c *conn) error {
	err := c.script("BEGIN IMMEDIATE;\n" + m.sql + "\n;INSERT OR REPLACE INTO schema_version VALUES (1, " +
		strconv.FormatInt(m.version, 10) + "); COMMIT")
	if err != nil {
		c.rollback()
	}
	return err
}
