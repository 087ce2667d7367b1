DROP TABLE idempotency_keys;
DROP TABLE blob_chunks;
DROP TABLE blobs;
DROP TABLE service_keys;
DROP TABLE leases;
DROP FUNCTION refuse_change();
