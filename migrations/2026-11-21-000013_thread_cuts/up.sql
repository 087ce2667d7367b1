-- What retries have taken out of a thread; the items themselves do not change. Behind `behind` and before `id` nothing
-- is shown any more, but for the users' messages from `messages_from` on: they came after the retry and wait for their
-- turn.
CREATE TABLE thread_cuts (
    thread_id uuid NOT NULL,
    id bytea NOT NULL,
    behind bytea NOT NULL,
    messages_from bytea NOT NULL,
    PRIMARY KEY (thread_id, id)
);
