-- Which instances have readers of streams that another one writes, by the database's clock. A crash of the server empties it:
-- whoever reads says so again within two seconds.
CREATE UNLOGGED TABLE stream_readers (
    stream_id uuid NOT NULL,
    instance_id uuid NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (stream_id, instance_id)
);
