-- Epochs come from one sequence, so that a lease can be deleted and a later one of the same instance never repeats an epoch.
CREATE SEQUENCE lease_epochs START WITH 1000000;
-- `round`: how often the lease was renewed; an instance that joins waits until the others have seen it. `ended_at`: when the
-- runs of a dead instance were taken over; its row is deleted a day later.
ALTER TABLE leases
    ADD COLUMN round bigint NOT NULL DEFAULT 0,
    ADD COLUMN ended_at timestamptz;
UPDATE leases SET ended_at = now() WHERE expires_at = 'infinity';
