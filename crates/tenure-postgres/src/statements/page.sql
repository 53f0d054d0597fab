-- Lists a page of keys, with their versions. One row is returned also if there is none.
-- $1: the last key of the page before, $2: the first key, $3: the first excluded key, or nothing
SELECT server.is_standby, page.key, page.version
FROM (SELECT pg_catalog.pg_is_in_recovery() AS is_standby) AS server
    LEFT JOIN (
        SELECT key, version
        FROM {record}
        WHERE key > $1 AND key >= $2 AND ($3 = '' OR key < $3)
        ORDER BY key
        LIMIT {page}
    ) AS page ON true
ORDER BY page.key
