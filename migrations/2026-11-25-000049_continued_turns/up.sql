-- The run whose turn this run is going to continue, or continues.
ALTER TABLE runs ADD COLUMN continues uuid;
UPDATE runs SET continues = (options::json->>'continues')::uuid WHERE thread_id IS NOT NULL AND options LIKE '%"continues"%';
CREATE INDEX runs_by_continued_turn ON runs (continues) WHERE continues IS NOT NULL AND finished_at IS NULL;

-- Threads are erased by their runs.
DROP INDEX question_items_by_thread;
DROP INDEX turns_sent_by_thread;
