-- Creates a row, writes the row of its token, and notifies contenders. See grant.sql.
-- $1: key, $2: stamp, $3: value, $4: token
WITH patience AS MATERIALIZED (
    SELECT {lock_limit} AS ms
), locked AS MATERIALIZED (
    SELECT t.token FROM {token} AS t, patience
    WHERE t.key = $1 AND patience.ms IS NOT NULL
    FOR NO KEY UPDATE OF t
), written AS (
    INSERT INTO {record} (key, version, value, written_at, server)
    SELECT $1, $2, $3, clock_timestamp(), {server}
    WHERE NOT EXISTS (SELECT FROM locked WHERE locked.token >= $4)
    ON CONFLICT (key) DO NOTHING
    RETURNING key
), granted AS (
    INSERT INTO {token} AS t (key, token, granted_at)
    SELECT written.key, $4, clock_timestamp() FROM written
    ON CONFLICT (key) DO UPDATE SET token = excluded.token, granted_at = excluded.granted_at
)
SELECT (SELECT {now} FROM written), {server}, (SELECT token FROM locked), {durable}, (SELECT {notify} FROM written)
