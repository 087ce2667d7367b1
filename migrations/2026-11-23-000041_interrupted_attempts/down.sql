DROP TABLE interrupted_attempts;
