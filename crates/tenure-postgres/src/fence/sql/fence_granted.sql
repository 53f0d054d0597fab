
-- The same, for a lease in the tables of this database: the token must be that of its latest grant.
--
-- The row of the token is locked FOR SHARE until the transaction ends. Only a grant writes it, so no renewal waits for the
-- transaction, and the grant of a successor does. So a token is stale from the moment its successor is granted.
CREATE OR REPLACE FUNCTION {schema}.fence_granted(resource text, lease text, token bigint, seen bigint DEFAULT 0)
RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $tenure$
#variable_conflict use_variable
DECLARE
    of_lease text COLLATE "C" := lease;
    granted bigint;
BEGIN
{check}
    SELECT t.token INTO granted FROM {token} AS t WHERE t.key = of_lease FOR SHARE;
    IF coalesce(granted, 0) < token THEN
        RAISE EXCEPTION '% refused token % of lease %: its latest grant here has token %. The token is from another store, '
            'or the server was restored from a backup', resource, token, lease, coalesce(granted, 0)
            USING ERRCODE = 'TF003', DETAIL = format('token %s of lease %s', coalesce(granted, 0), lease);
    END IF;
    IF granted > token THEN
        RAISE EXCEPTION '% refused token % of lease %: token % has been granted. A newer holder writes: stop for good',
            resource, token, lease, granted
            USING ERRCODE = 'TF001', DETAIL = format('token %s of lease %s', granted, lease);
    END IF;
    RETURN {schema}.fence(resource, lease, token, seen);
END
$tenure$;
