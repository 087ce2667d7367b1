-- What the models of a run have used, JSON, kept when its journal is erased with the content of its thread.
ALTER TABLE runs ADD COLUMN usage text;
