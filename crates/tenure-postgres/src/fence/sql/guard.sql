
-- Refuses a statement on a guarded table, unless its transaction has called the fence of the resource. The setting belongs to
-- the transaction, and a rollback to a savepoint undoes it together with the lock.
CREATE OR REPLACE FUNCTION {schema}.require_fence() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $tenure$
DECLARE
    fenced text[] := coalesce(nullif(current_setting('tenure.fenced', true), '')::text[], ARRAY[]::text[]);
BEGIN
    IF (({schema_text} || '.' || TG_ARGV[0]) = ANY (fenced)) IS NOT TRUE THEN
        RAISE EXCEPTION 'the table %.% is guarded by the fence %: % was refused, because its transaction carries no token',
            quote_ident(TG_TABLE_SCHEMA), quote_ident(TG_TABLE_NAME), TG_ARGV[0], TG_OP
            USING ERRCODE = 'TF005', HINT = format('Call %s.fence(%L, lease, token) first in the same transaction.',
                {schema_text}, TG_ARGV[0]);
    END IF;
    IF TG_LEVEL = 'STATEMENT' THEN
        RETURN NULL;
    ELSIF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$tenure$;

-- Guards a table: from now on, INSERT, UPDATE, DELETE, TRUNCATE, MERGE and COPY need a transaction that has called the fence
-- of this resource. The caller owns the table.
--
-- A statement on a partition does not fire the triggers for statements of its parent. So a partitioned table gets a trigger
-- for each row, too, which PostgreSQL copies to every partition, also to later ones; and each partition gets one for TRUNCATE.
CREATE OR REPLACE FUNCTION {schema}.fence_table(guarded regclass, resource text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $tenure$
DECLARE
    kind "char" := (SELECT c.relkind FROM pg_class AS c WHERE c.oid = guarded);
    present text;
    part regclass;
BEGIN
    IF resource IS NULL OR octet_length(resource) NOT BETWEEN 1 AND {resource_max} THEN
        RAISE EXCEPTION 'a fence needs a resource of 1 to {resource_max} bytes' USING ERRCODE = 'TF006';
    END IF;
    IF kind IS NULL OR kind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '% is not a table: only a table can be guarded', coalesce(guarded::text, 'NULL')
            USING ERRCODE = 'TF006';
    END IF;
    IF kind = 'r' AND EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhparent = guarded) THEN
        RAISE EXCEPTION 'other tables inherit from %, and statements on them would not be guarded', guarded
            USING ERRCODE = 'TF006', HINT = 'Use partitions, or guard a table without heirs.';
    END IF;
    SELECT convert_from(substring(t.tgargs FROM 1 FOR octet_length(t.tgargs) - 1), getdatabaseencoding())
    INTO present
    FROM pg_trigger AS t
    WHERE t.tgrelid = guarded AND t.tgname = 'tenure_fence' AND NOT t.tgisinternal;
    IF present <> resource THEN
        RAISE EXCEPTION 'the table % is guarded by the fence % already', guarded, present
            USING ERRCODE = 'TF006', HINT = format('Call %s.unfence_table first.', {schema_text});
    END IF;
    EXECUTE format('CREATE OR REPLACE TRIGGER tenure_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION %s.require_fence(%L)', guarded, {schema_text}, resource);
    IF kind = 'p' THEN
        EXECUTE format('CREATE OR REPLACE TRIGGER tenure_fence_row BEFORE INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH ROW EXECUTE FUNCTION %s.require_fence(%L)', guarded, {schema_text}, resource);
        FOR part IN SELECT p.relid FROM pg_partition_tree(guarded) AS p WHERE p.relid <> guarded LOOP
            EXECUTE format('CREATE OR REPLACE TRIGGER tenure_fence BEFORE TRUNCATE ON %s '
                'FOR EACH STATEMENT EXECUTE FUNCTION %s.require_fence(%L)', part, {schema_text}, resource);
        END LOOP;
    END IF;
END
$tenure$;

-- Removes the guard of a table. The caller owns the table.
CREATE OR REPLACE FUNCTION {schema}.unfence_table(guarded regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $tenure$
DECLARE
    part regclass;
BEGIN
    IF guarded IS NULL THEN
        RAISE EXCEPTION 'NULL is not a table' USING ERRCODE = 'TF006';
    END IF;
    EXECUTE format('DROP TRIGGER IF EXISTS tenure_fence_row ON %s', guarded);
    EXECUTE format('DROP TRIGGER IF EXISTS tenure_fence ON %s', guarded);
    FOR part IN SELECT p.relid FROM pg_partition_tree(guarded) AS p WHERE p.relid <> guarded LOOP
        EXECUTE format('DROP TRIGGER IF EXISTS tenure_fence ON %s', part);
    END LOOP;
END
$tenure$;
