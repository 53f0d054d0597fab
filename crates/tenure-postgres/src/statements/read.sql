-- Reads a row. One row is returned also if there is none.
-- $1: key
SELECT {version}, r.value, {now}, pg_catalog.pg_is_in_recovery(),
    CASE WHEN r.server = {server} THEN (extract(epoch FROM clock_timestamp() - r.written_at) * 1000000)::bigint END
FROM (SELECT) AS one
    LEFT JOIN {record} AS r ON r.key = $1
