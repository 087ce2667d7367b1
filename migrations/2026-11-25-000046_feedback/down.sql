DROP INDEX item_feedback_of_workflow;
ALTER TABLE item_feedback DROP COLUMN prefix;
ALTER TABLE item_feedback DROP COLUMN comment;
ALTER TABLE item_feedback DROP COLUMN run_id;
ALTER TABLE item_feedback DROP COLUMN workflow_id;
ALTER TABLE item_feedback DROP COLUMN id;
DROP TABLE feedback_turns;
