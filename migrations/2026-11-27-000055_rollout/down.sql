ALTER TABLE threads DROP COLUMN canary_version;
UPDATE workflows SET live_version = NULL WHERE live_version = 0;
DROP TABLE gate_evaluations;
DROP TABLE version_gates;
DROP TABLE rollouts;
