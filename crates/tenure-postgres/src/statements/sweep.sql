-- Deletes both rows of a key. The row of the token is deleted first, because a grant locks it first: otherwise each could
-- wait for the other.
-- $1: key
WITH patience AS MATERIALIZED (
    SELECT {lock_limit} AS ms
), swept AS (
    DELETE FROM {token} USING patience
    WHERE key = $1 AND patience.ms IS NOT NULL
    RETURNING key
)
DELETE FROM {record} USING patience
WHERE key = $1 AND patience.ms IS NOT NULL AND (SELECT pg_catalog.count(*) FROM swept) >= 0
