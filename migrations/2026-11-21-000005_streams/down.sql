DROP TABLE stream_events;
DROP TABLE streams;
