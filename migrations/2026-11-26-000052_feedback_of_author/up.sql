-- A visitor's feedback, which exports read in parts and erasures delete.
CREATE INDEX item_feedback_of_author ON item_feedback (author_id, workflow_id, thread_id, item_id);
