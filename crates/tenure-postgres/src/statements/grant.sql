-- Replaces a row, writes the row of its token, and notifies contenders.
-- $1: key, $2: stamp, $3: value, $4: expected version, $5: token
--
-- The row of the token is locked first. So a grant that waits for the transactions of a user holds no lock on the record,
-- and delays no renewal. A grant with an outdated version does not wait at all.
WITH patience AS MATERIALIZED (
    SELECT {lock_limit} AS ms
), locked AS MATERIALIZED (
    SELECT t.token FROM {token} AS t, patience
    WHERE t.key = $1 AND patience.ms IS NOT NULL
        AND EXISTS (SELECT FROM {record} AS r WHERE r.key = $1 AND {version} = $4)
    FOR NO KEY UPDATE OF t
), written AS (
    UPDATE {record} AS r
    SET version = $2, value = $3, written_at = clock_timestamp(), server = {server}
    WHERE r.key = $1 AND {version} = $4
        AND NOT EXISTS (SELECT FROM locked WHERE locked.token >= $5)
    RETURNING r.key
), granted AS (
    INSERT INTO {token} AS t (key, token, granted_at)
    SELECT written.key, $5, clock_timestamp() FROM written
    ON CONFLICT (key) DO UPDATE SET token = excluded.token, granted_at = excluded.granted_at
)
SELECT (SELECT {now} FROM written), {server}, (SELECT token FROM locked), {durable}, (SELECT {notify} FROM written)
