-- Reads the clock of the server.
SELECT {now}, pg_catalog.pg_is_in_recovery()
