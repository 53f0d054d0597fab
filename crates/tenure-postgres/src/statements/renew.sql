-- Replaces a row, and notifies no contender: it has nothing to do.
-- $1: key, $2: stamp, $3: value, $4: expected version
UPDATE {record} AS r
SET version = $2, value = $3, written_at = clock_timestamp(), server = {server}
WHERE r.key = $1 AND {version} = $4
RETURNING {now}, {server}, {durable}
