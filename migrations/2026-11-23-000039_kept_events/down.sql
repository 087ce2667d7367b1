DROP TABLE stream_events_kept;
