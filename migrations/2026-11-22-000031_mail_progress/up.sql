-- Who has a mail that is given to each recipient alone, and who was refused; JSON. Null: it was given to nobody alone.
ALTER TABLE outbox ADD COLUMN progress text;
