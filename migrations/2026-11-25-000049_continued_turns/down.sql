CREATE INDEX turns_sent_by_thread ON turns_sent (thread_id);
CREATE INDEX question_items_by_thread ON question_items (thread_id);
ALTER TABLE runs DROP COLUMN continues;
