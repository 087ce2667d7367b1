DROP INDEX sign_in_challenges_by_browser;
ALTER TABLE sign_in_challenges
    DROP COLUMN has_code,
    DROP COLUMN browser_known,
    DROP COLUMN browser;
