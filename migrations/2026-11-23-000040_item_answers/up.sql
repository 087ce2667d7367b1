-- The user's message that an item answers. Null: a user's message, or an item of a build that did not store it.
ALTER TABLE thread_items ADD COLUMN answers bytea;
