-- A message may have waited for the answer to another, which then stands behind it. Of what is no user's message, a cut
-- takes out only what is behind this.
ALTER TABLE thread_cuts ADD COLUMN answers_behind bytea NOT NULL DEFAULT '';
