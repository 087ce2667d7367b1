DROP TABLE upload_chunks;
DROP TABLE blob_uses;
