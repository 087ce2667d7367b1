-- Secrets that graphs use by their names. Nothing here can be read without a key of the ring: each version of a secret is
-- encrypted with a data key of its own, which is wrapped by the ring's key `key_id`.
CREATE TABLE credentials (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    name text NOT NULL,
    provider text,
    description text,
    -- A few letters at most, for people.
    preview text NOT NULL,
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    nonce bytea NOT NULL CHECK (octet_length(nonce) = 12),
    ciphertext bytea NOT NULL,
    -- Counts the secrets it has had.
    version int NOT NULL CHECK (version > 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    created_by text,
    UNIQUE (workspace_id, name)
);
CREATE INDEX credentials_by_key ON credentials (key_id, id);
