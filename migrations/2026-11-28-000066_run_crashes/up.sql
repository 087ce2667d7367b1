-- Unfinished runs that the end of a process without a shutdown has cut off: how many such ends in a row without progress. A row is
-- written only after such an end.
CREATE TABLE run_crashes (
    run_id uuid PRIMARY KEY,
    ends integer NOT NULL,
    -- The progress of the run at the last end: it grows with each journal row.
    progress bigint NOT NULL,
    -- Whether the run executes alone in this life of the process.
    alone boolean NOT NULL
);
