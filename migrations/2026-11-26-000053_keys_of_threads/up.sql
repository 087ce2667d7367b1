-- Keys of first messages, whose sender is known by an address alone: they are erased with their thread.
CREATE INDEX idempotency_keys_of_threads ON idempotency_keys ((outcome->>'thread')) WHERE scope LIKE 'chat|%|address:%';
