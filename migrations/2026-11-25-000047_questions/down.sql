DROP TABLE turns_sent;
DROP TABLE question_items;
DROP INDEX run_questions_by_expiry;
ALTER TABLE run_questions DROP COLUMN continues_without;
ALTER TABLE run_questions DROP COLUMN item;
