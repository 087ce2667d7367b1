-- Rows that may never change or go. The trigger holds for the owner too.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;

-- The right to write of one running service. Its epoch grows with each new owner, and every batch of writes
-- names the epoch it was made under, so that a slow old owner writes nothing.
CREATE TABLE leases (
    writer_id uuid PRIMARY KEY,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    -- Nothing before it is unfinished: recovery reads `runs` from here on by key, which spares an index on a
    -- column that changes.
    oldest_run uuid NOT NULL
) WITH (fillfactor = 50);

-- Keys that nobody configured, made once. `sealed_under` names the vault key that encrypts `key`; null: plain.
CREATE TABLE service_keys (
    name text PRIMARY KEY,
    key bytea NOT NULL,
    sealed_under text,
    created_at timestamptz NOT NULL
);

-- Large values, content-addressed by SHA-256 and cut into chunks.
CREATE TABLE blobs (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    size bigint NOT NULL CHECK (size >= 0),
    created_at timestamptz NOT NULL
);
CREATE TABLE blob_chunks (
    digest bytea NOT NULL REFERENCES blobs (digest) ON DELETE CASCADE,
    number int NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (digest, number)
);

-- What a request with an Idempotency-Key began, so that a retry finds the same.
CREATE TABLE idempotency_keys (
    scope text NOT NULL,
    key text NOT NULL,
    request_digest bytea NOT NULL,
    outcome json NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
