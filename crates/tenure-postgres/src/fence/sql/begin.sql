-- The fences of Tenure, version {version}. The statements may run again, and in one transaction with others.
DO $tenure$
DECLARE
    installed int;
BEGIN
    -- Migrations take turns until the end of the transaction.
    PERFORM pg_catalog.pg_advisory_xact_lock({migration_lock});
    -- Until the last statement, no name means anything but PostgreSQL's own.
    PERFORM pg_catalog.set_config('tenure.search_path', pg_catalog.current_setting('search_path'), true);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    -- CREATE SCHEMA IF NOT EXISTS needs the right to create a schema also if the schema exists.
    IF pg_catalog.to_regnamespace({schema_text}) IS NULL THEN
        CREATE SCHEMA {schema};
    END IF;
    IF pg_catalog.to_regprocedure({schema_text} || '.fence_version()') IS NOT NULL THEN
        EXECUTE 'SELECT ' || {schema_text} || '.fence_version()' INTO installed;
        IF installed > {version} THEN
            RAISE EXCEPTION 'the fences in schema % have version %, and this migration has version {version}',
                {schema_text}, installed
                USING ERRCODE = 'TF006', HINT = 'Run the migration of the newer release of Tenure.';
        END IF;
    END IF;
END
$tenure$;

-- The mark of each resource: the greatest token that it has admitted, and the lease of that token. No function of Tenure
-- deletes a row or lowers a token.
CREATE TABLE IF NOT EXISTS {fence} (
    resource text COLLATE "C" PRIMARY KEY,
    lease text COLLATE "C" NOT NULL,
    token bigint NOT NULL,
    at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Refuses a table of the same name that another program created: it cannot carry the marks.
DO $tenure$
DECLARE
    marks pg_catalog.regclass := pg_catalog.to_regclass({fence_text});
    columns text;
    flaw text;
BEGIN
    SELECT pg_catalog.string_agg(a.attname || ':' || pg_catalog.format_type(a.atttypid, NULL), ' ' ORDER BY a.attname)
    INTO columns
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = marks AND a.attnum > 0 AND NOT a.attisdropped;
    IF columns IS DISTINCT FROM 'at:timestamp with time zone lease:text resource:text token:bigint' THEN
        flaw := 'has other columns';
    ELSIF NOT EXISTS (
        SELECT FROM pg_catalog.pg_class AS c
        WHERE c.oid = marks AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
    ) THEN
        flaw := 'is not an ordinary, logged table without row-level security';
    ELSIF NOT EXISTS (
        SELECT FROM pg_catalog.pg_index AS i
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = marks AND a.attnum = i.indkey[0] AND a.attname = 'resource'
        WHERE i.indrelid = marks AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indnkeyatts = 1
            AND i.indpred IS NULL
    ) THEN
        flaw := 'has no unique index on resource';
    ELSIF EXISTS (
        SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = marks AND NOT t.tgisinternal AND t.tgtype & 3 = 3
    ) OR EXISTS (SELECT FROM pg_catalog.pg_rewrite AS w WHERE w.ev_class = marks) THEN
        flaw := 'has a rule, or a trigger before each row, which can drop a mark';
    END IF;
    IF flaw IS NOT NULL THEN
        RAISE EXCEPTION 'the table % %', {fence_text}, flaw
            USING ERRCODE = 'TF006', HINT = 'Correct the table, or install the fences in another schema.';
    END IF;
END
$tenure$;

CREATE OR REPLACE FUNCTION {schema}.fence_version() RETURNS int
LANGUAGE sql IMMUTABLE AS $tenure$ SELECT {version} $tenure$;
