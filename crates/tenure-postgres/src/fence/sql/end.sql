
-- The functions run with the rights of their owner. So a role needs only EXECUTE, and cannot change a mark by itself.
REVOKE ALL ON {fence} FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.fence(text, text, bigint, bigint), {schema}.fence_granted(text, text, bigint, bigint),
    {schema}.require_fence(), {schema}.fence_table(regclass, text), {schema}.unfence_table(regclass) FROM PUBLIC;

DO $tenure$
BEGIN
    PERFORM pg_catalog.set_config('search_path', pg_catalog.current_setting('tenure.search_path'), true);
END
$tenure$;
