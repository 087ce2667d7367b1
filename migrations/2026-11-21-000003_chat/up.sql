-- Tables of the turn's path carry no foreign keys: each would cost a look-up and a shared lock per row, and
-- these rows are only written by the lanes, parent and child in one statement.

-- `owner_kind`: visitor (signed cookie), anyone (the id alone), session (named subject of a token), user.
CREATE TABLE threads (
    id uuid PRIMARY KEY,
    workflow_id uuid NOT NULL,
    workspace_id uuid NOT NULL,
    owner_kind text NOT NULL,
    owner_id text,
    title text,
    status text NOT NULL,
    created_at timestamptz NOT NULL
);

-- `id` is 6 bytes of milliseconds, 2 of a counter, 16 random: bytewise order is the order in the thread.
CREATE TABLE thread_items (
    thread_id uuid NOT NULL,
    id bytea NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (thread_id, id)
);
