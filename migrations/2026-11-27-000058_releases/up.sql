-- What visitors of an app receive; null: nothing is published.
ALTER TABLE apps ADD COLUMN active_release uuid;

-- Deployments with everything that they run and store, frozen. A release is active until the next one of its app.
CREATE TABLE app_releases (
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    -- Within the app, from 1.
    number int NOT NULL,
    deployment_id uuid NOT NULL,
    -- The release that a rollback repeats.
    source_release_id uuid,
    -- SHA-256 of the RFC 8785 form of its permissions, hexadecimal.
    permission_revision text NOT NULL,
    -- JSON: the permissions themselves.
    permissions text NOT NULL,
    -- JSON {name: binding}.
    bindings text NOT NULL,
    -- JSON {name: collection}.
    collections text NOT NULL,
    spa boolean NOT NULL,
    -- JSON [origin].
    frame_ancestors text NOT NULL,
    wasm boolean NOT NULL,
    created_by text,
    created_at timestamptz NOT NULL,
    UNIQUE (app_id, number)
);
CREATE TRIGGER app_releases_append_only BEFORE UPDATE OR DELETE ON app_releases
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER app_releases_no_truncate BEFORE TRUNCATE ON app_releases
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Permissions that an administrator has acknowledged for an app.
CREATE TABLE app_acknowledgements (
    app_id uuid NOT NULL,
    permission_revision text NOT NULL,
    workspace_id uuid NOT NULL,
    acknowledged_by text,
    acknowledged_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, permission_revision)
);
