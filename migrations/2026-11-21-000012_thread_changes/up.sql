-- A deleted thread stays as a tombstone: nothing of it is shown, and its id is never used again.
ALTER TABLE threads ADD COLUMN deleted_at timestamptz;

-- What somebody thinks of an item; their last word counts. `author_id` is empty where nobody is known.
CREATE TABLE item_feedback (
    thread_id uuid NOT NULL,
    item_id bytea NOT NULL,
    author_kind text NOT NULL,
    author_id text NOT NULL,
    kind text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (thread_id, item_id, author_kind, author_id)
);
