-- Objects. place is the id as text that sorts as ids do (see place.go). An
-- integer primary key makes appending cheap and keeps long values out of the index.
CREATE TABLE object (
	n        INTEGER PRIMARY KEY,
	kind     TEXT    NOT NULL,
	place    TEXT    NOT NULL,
	revision INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	value    TEXT    NOT NULL,
	UNIQUE (kind, place)
);
CREATE INDEX object_at ON object (kind, at, place) WHERE at <> 0;

-- The feed: one row for each group of transactions that was committed
-- together, revisions first to last (see entries.go).
CREATE TABLE feed (
	last    INTEGER PRIMARY KEY,
	first   INTEGER NOT NULL,
	entries TEXT    NOT NULL
);

-- Leases, also those that are free (expires 0): an epoch never comes twice.
-- Times are microseconds since the epoch.
CREATE TABLE lease (
	name    TEXT    PRIMARY KEY,
	holder  TEXT    NOT NULL,
	epoch   INTEGER NOT NULL,
	expires INTEGER NOT NULL
);
