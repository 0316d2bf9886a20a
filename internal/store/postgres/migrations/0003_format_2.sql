-- The number keeps programs out that know of no formats. One that has the store open
-- already may stand by and never lead again: to take a lease, or to renew one, is refused
-- to a session that does not say which formats it knows.
ALTER TABLE lease ADD COLUMN format bigint NOT NULL DEFAULT current_setting('drover.format')::bigint;
