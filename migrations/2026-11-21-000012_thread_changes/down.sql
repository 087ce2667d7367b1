DROP TABLE item_feedback;
-- Older code does not know of tombstones and would show what was deleted.
DELETE FROM thread_items WHERE thread_id IN (SELECT id FROM threads WHERE deleted_at IS NOT NULL);
DELETE FROM threads WHERE deleted_at IS NOT NULL;
ALTER TABLE threads DROP COLUMN deleted_at;
