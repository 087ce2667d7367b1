-- Whose browser asked for a sign-in: SHA-256 of a cookie that it keeps over all of its challenges. `browser_known`: the
-- request showed the cookie. `has_code`: the mail has a code, and not the link alone.
ALTER TABLE sign_in_challenges
    ADD COLUMN browser bytea,
    ADD COLUMN browser_known boolean NOT NULL DEFAULT false,
    ADD COLUMN has_code boolean NOT NULL DEFAULT true;
CREATE INDEX sign_in_challenges_by_browser ON sign_in_challenges (browser);
