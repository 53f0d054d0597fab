-- Reads a row, and waits until everything that it shows is with the synchronous standbys. See read.sql.
-- $1: key
SELECT {version}, r.value, {now}, pg_catalog.pg_is_in_recovery(),
    CASE WHEN r.server = {server} THEN (extract(epoch FROM clock_timestamp() - r.written_at) * 1000000)::bigint END,
    {durable},
    -- An empty message in the log of the server, as a part of this transaction. So its commit waits as that of a write.
    pg_catalog.pg_logical_emit_message(true, 'tenure', '')::pg_catalog.text
FROM (SELECT) AS one
    LEFT JOIN {record} AS r ON r.key = $1
