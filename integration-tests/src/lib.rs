//! TestService and the scenarios.
