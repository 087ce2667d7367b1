DROP INDEX item_feedback_of_author;
