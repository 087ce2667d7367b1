-- People. `email` is null for somebody who was erased: what names their id stays.
CREATE TABLE users (
    id uuid PRIMARY KEY,
    email text UNIQUE,
    name text,
    created_at timestamptz NOT NULL,
    last_sign_in_at timestamptz
);

CREATE TABLE workspace_members (
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    user_id uuid NOT NULL REFERENCES users (id),
    role text NOT NULL CHECK (role IN ('viewer', 'editor', 'admin', 'owner')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, user_id)
);
CREATE INDEX workspace_members_by_user ON workspace_members (user_id);

-- A sign-in that was asked for: a link and a code, good once, for one browser. Nothing here lets anybody in: the link
-- and the browser's secret are kept as SHA-256, the code as an HMAC under a key of the service.
CREATE TABLE sign_in_challenges (
    id uuid PRIMARY KEY,
    email text NOT NULL,
    link_digest bytea NOT NULL UNIQUE,
    code_mac bytea NOT NULL,
    binding_digest bytea NOT NULL UNIQUE,
    tries int NOT NULL,
    return_to text,
    -- Whose request it was, as requests of one client are counted.
    address text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    superseded_at timestamptz
);
-- Mail is counted without regard to capitals: for nearly every server they are one mailbox.
CREATE INDEX sign_in_challenges_by_email ON sign_in_challenges (lower(email), created_at);
CREATE INDEX sign_in_challenges_by_address ON sign_in_challenges (address, created_at);
CREATE INDEX sign_in_challenges_by_age ON sign_in_challenges (created_at);

-- One row for each sign-in: the family of its refresh tokens, and its browser's cookie where it has one. Access tokens
-- name it, so revoking it ends all of them.
CREATE TABLE sign_in_sessions (
    id uuid PRIMARY KEY,
    user_id uuid NOT NULL REFERENCES users (id),
    -- SHA-256 of the cookie.
    cookie_digest bytea UNIQUE,
    -- The last request with the cookie, up to a minute late.
    cookie_used_at timestamptz NOT NULL,
    user_agent text,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoked_reason text
);
CREATE INDEX sign_in_sessions_by_user ON sign_in_sessions (user_id);
CREATE INDEX sign_in_sessions_by_end ON sign_in_sessions (expires_at);

CREATE TABLE refresh_tokens (
    digest bytea PRIMARY KEY,
    session_id uuid NOT NULL REFERENCES sign_in_sessions (id) ON DELETE CASCADE,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);

-- Mail on its way; a row goes when it was sent or has become worthless. `content` is sealed.
CREATE TABLE outgoing_mail (
    id uuid PRIMARY KEY,
    recipient text NOT NULL,
    content bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- Nobody else takes it before that.
    next_attempt_at timestamptz NOT NULL,
    attempts int NOT NULL,
    -- The instance that is sending it.
    claimed_by uuid
);
CREATE INDEX outgoing_mail_by_turn ON outgoing_mail (next_attempt_at);
