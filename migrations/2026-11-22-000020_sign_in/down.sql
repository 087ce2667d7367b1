DROP TABLE outgoing_mail;
DROP TABLE refresh_tokens;
DROP TABLE sign_in_sessions;
DROP TABLE sign_in_challenges;
DROP TABLE workspace_members;
DROP TABLE users;
