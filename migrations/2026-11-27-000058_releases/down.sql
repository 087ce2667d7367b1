DROP TABLE app_acknowledgements;
DROP TABLE app_releases;
ALTER TABLE apps DROP COLUMN active_release;
