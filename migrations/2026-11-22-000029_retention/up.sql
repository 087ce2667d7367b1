-- Of a deleted thread the row alone stays, once what was in it is erased.
ALTER TABLE threads ADD COLUMN erased_at timestamptz;
CREATE INDEX threads_to_erase ON threads (deleted_at) WHERE deleted_at IS NOT NULL AND erased_at IS NULL;

-- Which values are still somebody's.
CREATE INDEX run_steps_by_blob ON run_steps (result_blob) WHERE result_blob IS NOT NULL;
CREATE INDEX blobs_by_age ON blobs (created_at, digest);

-- A run's requests go with it.
CREATE INDEX outbox_by_run ON outbox (run_id);
