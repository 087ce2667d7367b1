-- Set once a request has presented the visitor's cookie for the thread: its id alone no longer gives access. No index, so the
-- update stays within the row's page.
ALTER TABLE threads ADD COLUMN requires_cookie boolean NOT NULL DEFAULT false;
