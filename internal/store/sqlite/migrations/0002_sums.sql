-- Sums of what is in a row (see sum.go); -1 for rows from before there were any.
ALTER TABLE object ADD COLUMN sum INTEGER NOT NULL DEFAULT -1;
ALTER TABLE feed ADD COLUMN sum INTEGER NOT NULL DEFAULT -1;
ALTER TABLE lease ADD COLUMN sum INTEGER NOT NULL DEFAULT -1;
