//! Typed HTTP and SSE client.
