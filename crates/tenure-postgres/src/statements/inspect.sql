-- Reads the settings of the server, and for each table its kind, its persistence, its flaws and its columns, or nothing if
-- it does not exist. The flaws: s for row-level security; t for a rule, or a trigger before each row, which can drop a write;
-- k if nothing keeps a key from having two rows.
-- $1: schema, $2: table of records, $3: table of tokens
WITH shape AS (
    SELECT c.relname::pg_catalog.text AS name,
        c.relkind::pg_catalog.text || c.relpersistence::pg_catalog.text || CASE WHEN c.relrowsecurity THEN 's' ELSE '' END ||
        CASE WHEN EXISTS (
            SELECT FROM pg_catalog.pg_trigger AS t
            WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A') AND t.tgtype & 3 = 3
        ) OR EXISTS (SELECT FROM pg_catalog.pg_rewrite AS w WHERE w.ev_class = c.oid) THEN 't' ELSE '' END ||
        CASE WHEN EXISTS (
            SELECT FROM pg_catalog.pg_index AS i
                JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] AND a.attname = 'key'
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1
                AND i.indpred IS NULL
        ) THEN '' ELSE 'k' END || ' ' || coalesce((
            SELECT pg_catalog.string_agg(
                a.attname || ':' || t.typname || coalesce(':' || l.collname, ''), ' ' ORDER BY a.attname
            )
            FROM pg_catalog.pg_attribute AS a
                JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
                LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation AND l.collname <> 'default'
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        ), '') AS columns
    FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::pg_catalog.name AND c.relname IN ($2::pg_catalog.name, $3::pg_catalog.name)
)
SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(),
    pg_catalog.current_setting('transaction_read_only'), pg_catalog.current_setting('fsync', true),
    pg_catalog.current_setting('transaction_isolation'),
    (SELECT columns FROM shape WHERE name = $2), (SELECT columns FROM shape WHERE name = $3)
