-- Counts the servers that follow this one, and reads the names of those for which commits wait, the timeline, and the
-- start of the server process. A role without rights sees the servers that follow, and not their states. The name of a file
-- of the log begins with the timeline.
SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication),
    coalesce(pg_catalog.current_setting('synchronous_standby_names', true), ''),
    pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8), {server}
