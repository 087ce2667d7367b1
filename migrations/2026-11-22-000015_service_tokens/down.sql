DROP TABLE service_token_secrets;
DROP TABLE service_tokens;
