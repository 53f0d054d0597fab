    IF resource IS NULL OR lease IS NULL OR token IS NULL OR seen IS NULL
        OR lease = '' OR octet_length(resource) NOT BETWEEN 1 AND {resource_max} THEN
        RAISE EXCEPTION 'a fence needs a resource of 1 to {resource_max} bytes, a lease and a token'
            USING ERRCODE = 'TF006', DETAIL = format('resource %L, lease %L, token %L', resource, lease, token);
    END IF;
    IF token NOT BETWEEN 1 AND {token_max} THEN
        RAISE EXCEPTION '% refused token % of lease %: such a token is never granted', resource, token, lease
            USING ERRCODE = 'TF003', DETAIL = format('token 0 of lease %s', lease),
                HINT = 'Use the token of a lease that is held.';
    END IF;
