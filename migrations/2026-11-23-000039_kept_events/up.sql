-- Events of streams whose run is parked for days: they leave the partition of their day, which is then dropped like any other.
CREATE TABLE stream_events_kept (
    stream_id uuid NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    frames text NOT NULL,
    PRIMARY KEY (stream_id, first_seq)
);
