-- A service token without its secret. `scopes` and `workspaces` are JSON lists of texts.
CREATE TABLE service_tokens (
    id uuid PRIMARY KEY,
    name text,
    scopes json NOT NULL,
    workspaces json NOT NULL,
    created_by text NOT NULL,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    revoked_reason text,
    last_used_at timestamptz
) WITH (fillfactor = 80);

-- SHA-256 of a whole token. After a rotation the old secret may be good for a while beside the new one.
CREATE TABLE service_token_secrets (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    token_id uuid NOT NULL REFERENCES service_tokens (id),
    created_at timestamptz NOT NULL,
    expires_at timestamptz
);
CREATE INDEX service_token_secrets_by_token ON service_token_secrets (token_id);
