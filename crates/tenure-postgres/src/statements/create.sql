-- Creates a row, and notifies contenders.
-- $1: key, $2: stamp, $3: value
WITH patience AS MATERIALIZED (
    SELECT {lock_limit} AS ms
)
INSERT INTO {record} (key, version, value, written_at, server)
SELECT $1, $2, $3, clock_timestamp(), {server}
FROM patience
WHERE patience.ms IS NOT NULL
ON CONFLICT (key) DO NOTHING
RETURNING {now}, {server}, {durable}, {notify}
