-- Hosted apps. The row of a deleted app stays for as long as it holds its alias.
CREATE TABLE apps (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    alias text NOT NULL,
    -- Whether no other app can have the alias.
    holds_alias boolean NOT NULL,
    name text NOT NULL,
    -- Who can open the app: `public` or `members`.
    access text NOT NULL CHECK (access IN ('public', 'members')),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    -- When its deployments were deleted, after the app.
    erased_at timestamptz,
    CHECK (holds_alias OR deleted_at IS NOT NULL)
);
CREATE UNIQUE INDEX apps_alias_key ON apps (alias) WHERE holds_alias;
CREATE INDEX apps_by_workspace ON apps (workspace_id, id) WHERE deleted_at IS NULL;
CREATE INDEX apps_deleted ON apps (deleted_at) WHERE deleted_at IS NOT NULL;

-- Uploaded bundles that were accepted. Their content does not change.
CREATE TABLE app_deployments (
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    -- SHA-256 of the archive.
    digest bytea NOT NULL,
    size bigint NOT NULL,
    expanded_size bigint NOT NULL,
    file_count int NOT NULL,
    -- Whether its files are kept.
    available boolean NOT NULL,
    -- JSON {name: binding}, as they applied at the upload.
    bindings text NOT NULL,
    -- Whether they are those of a manifest; else those of the app apply.
    declares_bindings boolean NOT NULL,
    -- JSON {name: collection}, as they applied at the upload.
    collections text NOT NULL,
    declares_collections boolean NOT NULL,
    spa boolean NOT NULL,
    -- JSON [origin].
    frame_ancestors text NOT NULL,
    wasm boolean NOT NULL,
    -- JSON {dropped, notes}.
    report text NOT NULL,
    created_by text,
    created_at timestamptz NOT NULL
);
CREATE INDEX app_deployments_by_app ON app_deployments (app_id, id);
-- Those above the number that is kept.
CREATE INDEX app_deployments_kept ON app_deployments (app_id, id) WHERE available;

-- The files of deployments; their content is in blobs, kept by uses of the kind `app_file`.
CREATE TABLE app_files (
    deployment_id uuid NOT NULL,
    path text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    media_type text NOT NULL,
    digest bytea NOT NULL,
    -- The content security policy of an HTML document.
    policy text,
    PRIMARY KEY (deployment_id, path)
);

-- Bindings of apps whose deployments declare none.
CREATE TABLE app_bindings (
    app_id uuid NOT NULL,
    name text NOT NULL,
    workspace_id uuid NOT NULL,
    -- JSON.
    binding text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (app_id, name)
);

-- Collections of apps. A deleted one keeps its id and its records for itself: another of its name is another one.
CREATE TABLE app_collections (
    id uuid PRIMARY KEY,
    app_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('shared', 'user')),
    -- JSON {anonymous: [verb], member: [verb]}.
    capabilities text NOT NULL,
    -- A JSON Schema.
    schema text,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX app_collections_name_key ON app_collections (app_id, name) WHERE deleted_at IS NULL;
CREATE INDEX app_collections_by_app ON app_collections (app_id, id);
