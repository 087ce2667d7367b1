//! Why the service closes a socket: the code of the protocol, and a stable code as its reason.

use wire::ErrorCode;

use crate::ws::{Closing, Fault};

/// The service stops; another instance or the next process answers.
pub(super) const SHUTDOWN: Closing = closing(1012, ErrorCode::Draining);
/// Nothing comes from the client, or nothing is read.
pub(super) const IDLE: Closing = closing(4408, ErrorCode::SocketIdle);

const fn closing(code: u16, reason: ErrorCode) -> Closing {
    Closing { code, reason: reason.as_str() }
}

/// The client broke a rule.
pub(super) fn of_fault(fault: Fault) -> Closing {
    match fault {
        Fault::TooLarge => closing(1009, ErrorCode::SocketMessageTooLarge),
        Fault::Overloaded => closing(1013, ErrorCode::Overloaded),
        Fault::NotUtf8 => closing(1007, ErrorCode::SocketProtocol),
        Fault::Protocol => closing(1002, ErrorCode::SocketProtocol),
    }
}

/// The caller would not be let in any more; `None` where that could not be found out.
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
    fn every_reason_fits_and_only_refusals_close() {
        for code in ErrorCode::ALL {
            assert!(code.as_str().len() <= 123);
        }
        assert_eq!(of_refusal(ErrorCode::TokenExpired).map(|closing| closing.code), Some(4401));
        assert_eq!(of_refusal(ErrorCode::MissingScope).map(|closing| closing.code), Some(4403));
        assert_eq!(of_refusal(ErrorCode::DatabaseUnavailable), None);
        assert_eq!(of_refusal(ErrorCode::KeyUnavailable), None);
    }
}
