DROP TABLE app_consents;
DROP TABLE app_sessions;
DROP TABLE app_codes;
DROP TABLE app_sign_ins;
