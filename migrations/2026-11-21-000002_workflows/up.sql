CREATE TABLE workspaces (
    id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);

CREATE TABLE workflows (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL REFERENCES workspaces (id),
    handle text NOT NULL,
    name text NOT NULL,
    description text,
    tags json NOT NULL,
    is_public boolean NOT NULL DEFAULT false,
    require_login boolean NOT NULL DEFAULT false,
    published_at timestamptz,
    published_by text,
    chat json NOT NULL,
    latest_version int,
    archived_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (workspace_id, handle)
);

-- `identity` is the digest of graph and runnable config together: the same content is the same version.
CREATE TABLE workflow_versions (
    id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL REFERENCES workflows (id),
    number int NOT NULL CHECK (number > 0),
    digest bytea NOT NULL,
    identity bytea NOT NULL,
    graph json NOT NULL,
    runnable_config json,
    metadata json NOT NULL,
    notes text,
    created_by text,
    created_at timestamptz NOT NULL,
    UNIQUE (workflow_id, number),
    UNIQUE (workflow_id, identity)
);
CREATE TRIGGER workflow_versions_append_only BEFORE UPDATE OR DELETE ON workflow_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER workflow_versions_no_truncate BEFORE TRUNCATE ON workflow_versions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
