//! HTTP and SSE edge, boot and ordered shutdown.
