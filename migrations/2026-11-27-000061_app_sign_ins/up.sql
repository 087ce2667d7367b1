-- A sign-in to an app on its way to the central host and back, good once, for one browser. State and the browser's secret
-- are kept as SHA-256, the verifier is sealed.
CREATE TABLE app_sign_ins (
    state_digest bytea PRIMARY KEY,
    app_id uuid NOT NULL,
    binding_digest bytea NOT NULL,
    sealed bytea NOT NULL,
    return_to text NOT NULL,
    -- The client, under which requests are counted.
    address text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz
);
CREATE INDEX app_sign_ins_by_address ON app_sign_ins (address, created_at);
CREATE INDEX app_sign_ins_by_end ON app_sign_ins (expires_at);

-- Authorization codes, as SHA-256: good once, for one app and one verifier.
CREATE TABLE app_codes (
    digest bytea PRIMARY KEY,
    app_id uuid NOT NULL,
    redirect_uri text NOT NULL,
    challenge text NOT NULL,
    user_id uuid NOT NULL,
    -- The sign-in of the browser on the central host.
    central_session uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    -- The session that it opened.
    session_id uuid
);
CREATE INDEX app_codes_by_user ON app_codes (user_id, created_at);
CREATE INDEX app_codes_by_end ON app_codes (expires_at);

-- Browsers of members who are signed in to an app.
CREATE TABLE app_sessions (
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    user_id uuid NOT NULL,
    central_session uuid NOT NULL,
    -- SHA-256 of the cookie.
    digest bytea NOT NULL UNIQUE,
    -- That of the cookie before, which is good until then.
    previous_digest bytea UNIQUE,
    previous_until timestamptz,
    created_at timestamptz NOT NULL,
    used_at timestamptz NOT NULL,
    rotated_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoked_reason text
);
CREATE INDEX app_sessions_by_user ON app_sessions (user_id, app_id);
CREATE INDEX app_sessions_by_end ON app_sessions (expires_at);

-- Users who have agreed that an app learns who they are.
CREATE TABLE app_consents (
    app_id uuid NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, user_id)
);
CREATE INDEX app_consents_by_user ON app_consents (user_id);
