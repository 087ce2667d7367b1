-- A sign-in on its way to the OpenID provider and back, good once, for one browser. Nothing here lets anybody in: state and
-- the browser's secret are kept as SHA-256, what the answer is judged by is sealed.
CREATE TABLE oidc_sign_ins (
    state_digest bytea PRIMARY KEY,
    binding_digest bytea NOT NULL,
    sealed bytea NOT NULL,
    return_to text,
    -- Whose request it was, as requests of one client are counted.
    address text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX oidc_sign_ins_by_address ON oidc_sign_ins (address, created_at);
CREATE INDEX oidc_sign_ins_by_end ON oidc_sign_ins (expires_at);

-- Who somebody is at a provider. A mail address may go to somebody else there, a subject never does: an account has one
-- subject of each issuer, and a subject one account.
CREATE TABLE user_identities (
    issuer text NOT NULL,
    subject text NOT NULL,
    user_id uuid NOT NULL REFERENCES users (id),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, user_id)
);
