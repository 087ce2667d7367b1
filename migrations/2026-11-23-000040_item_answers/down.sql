ALTER TABLE thread_items DROP COLUMN answers;
