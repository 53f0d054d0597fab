-- Replaces a row, and notifies contenders.
-- $1: key, $2: stamp, $3: value, $4: expected version
WITH patience AS MATERIALIZED (
    SELECT {lock_limit} AS ms
)
UPDATE {record} AS r
SET version = $2, value = $3, written_at = clock_timestamp(), server = {server}
FROM patience
WHERE r.key = $1 AND {version} = $4 AND patience.ms IS NOT NULL
RETURNING {now}, {server}, {durable}, {notify}
