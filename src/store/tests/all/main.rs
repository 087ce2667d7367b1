//! Tests against a real PostgreSQL: each test has a separate database.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::indexing_slicing, clippy::as_conversions, reason = "tests")]

mod app_records;
mod app_run_list;
mod app_runs;
mod app_serving;
mod app_sign_ins;
mod apps;
mod attachments;
mod batch;
mod blobs;
mod changes;
mod crashes;
mod credentials;
mod fencing;
mod foreign;
mod idempotency;
mod items;
mod journal;
mod keys;
mod leases;
mod oidc;
mod opening;
mod partitions;
mod plan;
mod pool;
mod retention;
mod rollouts;
mod run_queue;
mod schema;
mod search;
mod streams;
mod support;
mod threads;
mod tls;
mod turn_starts;
mod unreachable;
mod usage;
mod versions;
mod workflows;
