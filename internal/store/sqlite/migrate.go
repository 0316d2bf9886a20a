package sqlite

import (
	"embed"
	"fmt"
	"strconv"

	"github.com/drover-project/drover/internal/store/schema"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrate brings the schema up to date, each step in a transaction together with
// the version it leads to. A schema that is newer than this program is left
// alone and refused. A store that is there is told of before it is moved.
func migrate(c *conn, steps []schema.Step, beforeMove func(to int64) error) error {
	if err := c.script("CREATE TABLE IF NOT EXISTS schema_version (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL)"); err != nil {
		return err
	}
	have, err := c.integer(schemaVersion)
	if err != nil {
		return err
	}
	missing, err := schema.Missing(steps, have)
	if err != nil {
		return err
	}
	if have > 0 && len(missing) > 0 && beforeMove != nil {
		if err := beforeMove(missing[len(missing)-1].Version); err != nil {
			return err
		}
	}
	for _, step := range missing {
		if err := apply(c, step); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}

// raise takes the steps of a format, within the transaction that is open.
func raise(c *conn, to int) error {
	steps, err := schema.Steps(migrationFiles)
	if err != nil {
		return err
	}
	have, err := c.integer(schemaVersion)
	if err != nil {
		return err
	}
	for _, step := range schema.Raise(steps, have, to) {
		if err := c.script(step.SQL + "\n;" + setVersion(step)); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}

const schemaVersion = "SELECT coalesce(max(version), 0) FROM schema_version"

func setVersion(s schema.Step) string {
	return "INSERT OR REPLACE INTO schema_version VALUES (1, " + strconv.FormatInt(s.Version, 10) + ")"
}

func apply(c *conn, m schema.Step) error {
	err := c.script("BEGIN IMMEDIATE;\n" + m.SQL + "\n;" + setVersion(m) + "; COMMIT")
	if err != nil {
		c.rollback()
	}
	return err
}
