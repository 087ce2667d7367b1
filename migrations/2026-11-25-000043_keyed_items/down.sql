DROP INDEX thread_items_by_key;
ALTER TABLE thread_items DROP COLUMN before;
ALTER TABLE thread_items DROP COLUMN changed_by;
ALTER TABLE thread_items DROP COLUMN key;
ALTER TABLE thread_items DROP COLUMN run_id;
