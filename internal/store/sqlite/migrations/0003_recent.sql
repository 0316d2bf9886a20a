-- The newest commits, if they were small: each is one row, and one page of its
-- own, until object and feed take in many of them at once (see recent.go). Those
-- that the feed reaches are of no more use, and are written over.
CREATE TABLE recent (
	slot INTEGER PRIMARY KEY,
	data BLOB    NOT NULL
);
