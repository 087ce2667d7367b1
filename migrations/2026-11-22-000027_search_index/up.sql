-- Search indexes of workspaces. The figures of an index are changed by the last statement of a transaction, so that two
-- documents are written at the same time and only their commits wait for one another.
CREATE TABLE search_indexes (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id uuid NOT NULL,
    name text NOT NULL,
    chunks bigint NOT NULL DEFAULT 0,
    -- Terms of all chunks, each as often as it stands there.
    length bigint NOT NULL DEFAULT 0,
    -- Chunks with a vector, and how many numbers each of these has.
    vectors bigint NOT NULL DEFAULT 0,
    dimensions int,
    UNIQUE (workspace_id, name)
);

-- `terms` finds a document's postings by their primary key: an index on their document would double what is written.
CREATE TABLE search_documents (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    index_id int NOT NULL,
    document text NOT NULL COLLATE "C",
    chunks bigint NOT NULL DEFAULT 0,
    length bigint NOT NULL DEFAULT 0,
    vectors bigint NOT NULL DEFAULT 0,
    terms text[] NOT NULL DEFAULT '{}',
    UNIQUE (index_id, document)
);

-- `vector` holds normalised 32-bit floats, little-endian.
CREATE TABLE search_chunks (
    index_id int NOT NULL,
    document_id bigint NOT NULL,
    number int NOT NULL,
    text text NOT NULL,
    metadata jsonb NOT NULL,
    vector bytea,
    PRIMARY KEY (index_id, document_id, number)
);
-- Floats do not compress.
ALTER TABLE search_chunks ALTER COLUMN vector SET STORAGE EXTERNAL;

-- `length` is that of the chunk: a search reads nothing but this key.
CREATE TABLE search_postings (
    index_id int NOT NULL,
    term text NOT NULL COLLATE "C",
    document_id bigint NOT NULL,
    number int NOT NULL,
    frequency int NOT NULL,
    length int NOT NULL,
    PRIMARY KEY (index_id, term, document_id, number) INCLUDE (frequency, length)
);
