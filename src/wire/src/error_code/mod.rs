//! Stable error codes.

mod table;

pub use table::ErrorCode;

impl ErrorCode {
    /// Parses a code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_dotted_and_found_again() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(code.as_str()), Some(*code), "{} occurs twice", code.as_str());
            let plain = |name: &str| {
                !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            };
            assert!(code.as_str().split('.').all(plain), "{}", code.as_str());
        }
        // The codes for hosted apps are a group without a name.
        let is_dotted = |code: &ErrorCode| code.as_str().contains('.');
        let groups = ErrorCode::ALL.chunk_by(|one, next| is_dotted(one) == is_dotted(next));
        let of_apps: Vec<_> = groups.filter(|group| !group.iter().any(is_dotted)).collect();
        assert!(of_apps.len() == 1 && of_apps[0].contains(&ErrorCode::AppNotFound));
    }

    #[test]
    fn retryable_codes_are_those_that_time_can_resolve() {
        for code in ErrorCode::ALL {
            // The conflicts that resolve by themselves.
            let passes = matches!(code, ErrorCode::IdempotencyInProgress | ErrorCode::ChatTurnRunning);
            let asks_to_wait = passes || matches!(code.status(), 408 | 429 | 500 | 503);
            // The operator has to fix these.
            let mended = matches!(
                code,
                ErrorCode::ChatSigningKeyMissing
                    | ErrorCode::VaultKeyMissing
                    | ErrorCode::PublicBaseMissing
                    | ErrorCode::LoginNotConfigured
            );
            let settled = code.status() == 200 || mended;
            assert!(settled || code.retry_may_help() == asks_to_wait, "{}", code.as_str());
        }
    }

    #[test]
    fn interface_texts_are_verbatim() {
        let text = |code: &str| ErrorCode::from_code(code).map(|c| (c.status(), c.message()));
        assert_eq!(text("chat.workflow_id_required"), Some((400, "workflow_id is required.")));
        assert_eq!(text("chat.workflow_id_invalid"), Some((400, "workflow_id must be a valid UUID.")));
        assert_eq!(
            text("chat.not_published"),
            Some((403, "Publish authentication failed: workflow is not published."))
        );
        assert_eq!(
            text("chat.login_required"),
            Some((401, "Publish authentication failed: OAuth login is required to access this workflow."))
        );
        assert_eq!(text("chat.session_invalid"), Some((401, "Chat session token authentication failed")));
        assert_eq!(text("auth.missing_token"), Some((401, "Missing bearer token")));
        assert_eq!(text("auth.invalid_token"), Some((401, "Invalid bearer token")));
        assert_eq!(text("auth.token_expired"), Some((401, "Bearer token has expired")));
        assert_eq!(text("auth.workspace_forbidden"), Some((403, "Workspace access denied")));
        assert_eq!(text("auth.rate_limited"), Some((429, "Too many authentication attempts")));
    }
}
