-- Objects. place is the id as text that sorts by bytes as ids do
-- (groupcommit.Place), hence COLLATE "C". Values are bytes: the server neither
-- checks nor changes them. Jobs are written again soon after they were made, so
-- pages keep room for that.
CREATE TABLE object (
	kind     text   COLLATE "C" NOT NULL,
	place    text   COLLATE "C" NOT NULL,
	revision bigint NOT NULL,
	at       bigint NOT NULL,
	value    bytea  NOT NULL,
	PRIMARY KEY (kind, place)
) WITH (fillfactor = 80);
CREATE INDEX object_at ON object (kind, at, place) WHERE at <> 0;

-- The feed: one row for each group of transactions that was committed
-- together, revisions first to last (groupcommit, entries.go).
CREATE TABLE feed (
	last    bigint PRIMARY KEY,
	first   bigint NOT NULL,
	entries text   NOT NULL
);

-- Leases, also those that are free (holder ''): an epoch never comes twice.
-- Times are microseconds since the epoch.
CREATE TABLE lease (
	name    text   PRIMARY KEY,
	holder  text   NOT NULL,
	epoch   bigint NOT NULL,
	expires bigint NOT NULL
);

-- The newest revision, and the one up to which the feed was trimmed. Whoever
-- writes holds this row: it puts the writers of several controllers in order.
CREATE TABLE head (
	one      bool   PRIMARY KEY CHECK (one),
	revision bigint NOT NULL,
	trimmed  bigint NOT NULL
) WITH (fillfactor = 10);
INSERT INTO head VALUES (true, 0, 0);
