-- A stream ends with its run, so it has no state of its own. `day` is the UTC day in the UUIDv7.
CREATE TABLE streams (
    id uuid PRIMARY KEY,
    day date NOT NULL,
    run_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    thread_id uuid,
    dialect text NOT NULL
);

-- One row for each stream in each commit: `frames` is the text that was sent, events `first_seq` to `last_seq`.
-- Partitions are made ahead by the maintenance actor; there is no DEFAULT partition.
CREATE TABLE stream_events (
    day date NOT NULL,
    stream_id uuid NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    frames text NOT NULL,
    PRIMARY KEY (day, stream_id, first_seq)
) PARTITION BY RANGE (day);
