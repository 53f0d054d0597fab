
-- Admits this transaction to a resource under the token of a lease, or fails. Call it first in the transaction that writes.
--
-- Until the transaction ends, it has the lock of the resource: shared if the token is the mark, so that the transactions of
-- one holder run at the same time; exclusive if it raises the mark. So no newer token is admitted before this transaction
-- has ended, and check, write and mark are one atomic step. The lock is an advisory lock, because those have a queue: a
-- stream of transactions of an earlier holder cannot keep a newer one waiting forever, as row locks in SHARE mode could.
--
-- READ COMMITTED: each statement of this function sees everything that was committed before it began. REPEATABLE READ and
-- SERIALIZABLE: it sees the snapshot of the transaction, so it locks the row of the mark, too; PostgreSQL then fails with
-- 40001 if the mark was raised after the snapshot.
--
-- seen: a token that this resource has shown before. A smaller mark means that it was restored from a backup.
-- Returns the mark that was there before this transaction; 0 if there was none, or if this transaction is fenced already.
CREATE OR REPLACE FUNCTION {schema}.fence(resource text, lease text, token bigint, seen bigint DEFAULT 0)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $tenure$
#variable_conflict use_variable
DECLARE
    -- The collation of the columns: a caller may pass a column with another one, in which equal names have other bytes, and one
    -- name has another hash.
    of_resource text COLLATE "C" := resource;
    of_lease text COLLATE "C" := lease;
    entry text COLLATE "C" := {schema_text} || '.' || resource;
    fenced text[] COLLATE "C" := coalesce(nullif(current_setting('tenure.fenced', true), '')::text[], ARRAY[]::text[]);
    mark_lease text COLLATE "C";
    mark_token bigint;
    raises boolean;
BEGIN
{check}
    SELECT f.lease, f.token INTO mark_lease, mark_token FROM {fence} AS f WHERE f.resource = of_resource;
    raises := coalesce(mark_token, 0) < token;
    -- A mark is never lowered: a smaller token is refused without a lock.
    IF raises THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(entry, 0));
        SELECT f.lease, f.token INTO mark_lease, mark_token FROM {fence} AS f WHERE f.resource = of_resource
        FOR NO KEY UPDATE;
    ELSIF mark_token = token THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(entry, 0));
        IF current_setting('transaction_isolation') IN ('read committed', 'read uncommitted') THEN
            SELECT f.lease, f.token INTO mark_lease, mark_token FROM {fence} AS f WHERE f.resource = of_resource;
        ELSE
            SELECT f.lease, f.token INTO mark_lease, mark_token FROM {fence} AS f WHERE f.resource = of_resource
            FOR SHARE;
        END IF;
    END IF;
    IF mark_lease <> of_lease THEN
        RAISE EXCEPTION '% is fenced by lease %, and refused token % of lease %: use that lease, or another resource',
            resource, mark_lease, token, lease
            USING ERRCODE = 'TF002', DETAIL = format('token %s of lease %s', mark_token, mark_lease);
    END IF;
    IF mark_token > token THEN
        RAISE EXCEPTION '% refused token % of lease %: token % has been there. A newer holder writes: stop for good',
            resource, token, lease, mark_token
            USING ERRCODE = 'TF001', DETAIL = format('token %s of lease %s', mark_token, mark_lease);
    END IF;
    IF raises AND mark_token IS NULL THEN
        INSERT INTO {fence} (resource, lease, token, at) VALUES (of_resource, of_lease, token, clock_timestamp())
        ON CONFLICT DO NOTHING;
    ELSIF raises AND mark_token < token THEN
        UPDATE {fence} AS f SET token = fence.token, at = clock_timestamp() WHERE f.resource = of_resource;
    END IF;
    IF (raises AND NOT FOUND) OR (NOT raises AND mark_token IS DISTINCT FROM token) THEN
        RAISE EXCEPTION 'another program changed the mark of % at the same time', resource
            USING ERRCODE = '40001', HINT = 'Run the transaction again.';
    END IF;
    IF coalesce(mark_token, 0) < seen THEN
        RAISE EXCEPTION '% shows token %, and has shown token % before: it was restored from a backup, or another program '
            'changed it. Token % of lease % is refused until that is acknowledged',
            resource, coalesce(mark_token, 0), seen, token, lease
            USING ERRCODE = 'TF004', DETAIL = format('token %s of lease %s', coalesce(mark_token, 0), lease);
    END IF;
    -- A mark must not be lost after its transaction was acknowledged.
    IF raises AND current_setting('synchronous_commit') IN ('off', 'local') THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    IF entry = ANY (fenced) THEN
        RETURN 0;
    END IF;
    PERFORM set_config('tenure.fenced', array_append(fenced, entry)::text, true);
    RETURN coalesce(mark_token, 0);
END
$tenure$;
