//! Close codes: the protocol's code, with a stable error code as the reason.

use wire::ErrorCode;

use crate::ws::{Closing, SocketFault};

/// The service is stopping; another instance or the next process takes over.
pub(super) const SHUTDOWN: Closing = closing(1012, ErrorCode::Draining);
/// The client sends nothing or reads nothing.
pub(super) const IDLE: Closing = closing(4408, ErrorCode::SocketIdle);

const fn closing(code: u16, reason: ErrorCode) -> Closing {
    Closing { code, reason: reason.as_str() }
}

/// Closes after a protocol violation by the client.
pub(super) fn of_fault(fault: SocketFault) -> Closing {
    match fault {
        SocketFault::TooLarge => closing(1009, ErrorCode::SocketMessageTooLarge),
        SocketFault::Overloaded => closing(1013, ErrorCode::Overloaded),
        SocketFault::NotUtf8 => closing(1007, ErrorCode::SocketProtocol),
        SocketFault::Protocol => closing(1002, ErrorCode::SocketProtocol),
    }
}

/// Closes because the caller has lost access; `None` if access could not be checked.
pub(super) fn of_refusal(code: ErrorCode) -> Option<Closing> {
    match code.status() {
        401 => Some(closing(4401, code)),
        403 => Some(closing(4403, code)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_reasons_fit_a_frame_and_only_refusals_close() {
        for code in ErrorCode::ALL {
            assert!(code.as_str().len() <= 123);
        }
        assert_eq!(of_refusal(ErrorCode::TokenExpired).map(|closing| closing.code), Some(4401));
        assert_eq!(of_refusal(ErrorCode::MissingScope).map(|closing| closing.code), Some(4403));
        assert_eq!(of_refusal(ErrorCode::DatabaseUnavailable), None);
        assert_eq!(of_refusal(ErrorCode::KeyUnavailable), None);
    }
}
