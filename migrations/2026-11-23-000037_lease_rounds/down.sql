ALTER TABLE leases DROP COLUMN round, DROP COLUMN ended_at;
DROP SEQUENCE lease_epochs;
