-- Who needs a blob. One that neither a use nor a step names is deleted after a day. The reference keeps a used blob from
-- being deleted whatever runs beside it.
CREATE TABLE blob_uses (
    digest bytea NOT NULL REFERENCES blobs (digest),
    kind text NOT NULL,
    owner uuid NOT NULL,
    workspace_id uuid NOT NULL,
    PRIMARY KEY (digest, kind, owner)
);
CREATE INDEX blob_uses_by_owner ON blob_uses (owner, kind);

-- Chunks of a blob that is being uploaded; what is left of an upload that broke off is deleted after an hour.
CREATE TABLE upload_chunks (
    upload_id uuid NOT NULL,
    number int NOT NULL,
    bytes bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (upload_id, number)
);
CREATE INDEX upload_chunks_by_age ON upload_chunks (created_at);
