-- Files that were uploaded for chats. The start of a turn claims those of its message for its thread, and stores `contained` with the
-- message. One that no message contains is deleted after a day. `digest` is null until its bytes were uploaded, and `size` is what was
-- announced.
CREATE TABLE attachments (
    id uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    workflow_id uuid,
    owner_kind text NOT NULL,
    owner_id text,
    -- By which the bytes of a day are counted.
    session text NOT NULL,
    name text NOT NULL,
    mime_type text NOT NULL,
    size bigint NOT NULL,
    digest bytea,
    -- Of images alone: a smaller image to show, if the image is large; pixels; the main colour in words.
    preview bytea,
    width int,
    height int,
    colour text,
    -- The first part of a document's text for models, once it was read; empty if there is none.
    text text,
    thread_id uuid,
    created_at timestamptz NOT NULL,
    attached_at timestamptz,
    contained boolean NOT NULL DEFAULT false
);
CREATE INDEX attachments_by_thread ON attachments (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX attachments_by_age ON attachments (created_at) WHERE NOT contained;

-- Bytes that a session, or all sessions of a network, have uploaded on a UTC day.
CREATE TABLE upload_days (
    day date NOT NULL,
    session text NOT NULL,
    bytes bigint NOT NULL,
    PRIMARY KEY (day, session)
);
