-- What a cut left behind its message is out again: older code took it out, too.
ALTER TABLE thread_cuts DROP COLUMN answers_behind;
