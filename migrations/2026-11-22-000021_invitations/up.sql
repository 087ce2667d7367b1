-- Until when an invitation may be taken up by a first sign-in; null for a member who has an account already.
ALTER TABLE workspace_members ADD COLUMN invited_until timestamptz;
