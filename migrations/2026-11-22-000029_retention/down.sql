DROP INDEX outbox_by_run;
DROP INDEX blobs_by_age;
DROP INDEX run_steps_by_blob;
DROP INDEX threads_to_erase;
ALTER TABLE threads DROP COLUMN erased_at;
