CREATE TABLE IF NOT EXISTS {record} (
    key text COLLATE "C" PRIMARY KEY,
    version text NOT NULL,
    value bytea NOT NULL,
    written_at timestamptz NOT NULL,
    server text NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE TABLE IF NOT EXISTS {token} (
    key text COLLATE "C" PRIMARY KEY,
    token bigint NOT NULL,
    granted_at timestamptz NOT NULL
) WITH (fillfactor = 50);
