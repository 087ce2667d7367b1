//! Chat sessions, streams, uploads and their limits.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::Secret;

use crate::address::{self, BaseUrl};
use crate::parse;
use crate::problem::Invalid;
use crate::reader::{RejectedValue, VariableReader};

/// Bytes of a SHA-384 digest.
const SHA384_BYTES: usize = 48;

/// Chat settings.
#[derive(Debug, Clone)]
pub struct Chat {
    /// `CHAT_TOKEN_SIGNING_KEY`: raw bytes.
    pub token_signing_key: Option<Secret>,
    /// `CHAT_TOKEN_TTL_SECONDS`.
    pub token_ttl: Duration,
    /// `SERVICE_CHAT_DIALECT`.
    pub dialect: Dialect,
    /// `SERVICE_CHAT_DISCONNECT_GRACE`.
    pub disconnect_grace: DisconnectGrace,
    /// `SERVICE_CHAT_RATE_LIMIT_*`.
    pub rate_limit: ChatLimit,
    /// `SERVICE_CHAT_MAX_STREAMS`, per session; `None`: unlimited.
    pub max_streams: Option<NonZeroU32>,
    /// `SERVICE_CHAT_UPLOAD_MAX_BYTES`; `None`: unlimited.
    pub upload_max_bytes: Option<NonZeroU64>,
    /// `SERVICE_CHAT_UPLOAD_DAILY_BYTES`, per session and UTC day; `None`: unlimited.
    pub upload_daily_bytes: Option<NonZeroU64>,
    /// `SERVICE_CHAT_CDN_BASE_URL`.
    pub cdn_base_url: BaseUrl,
    /// `SERVICE_CHAT_CDN_CACHE_TTL`; zero fetches it every time.
    pub cdn_cache_ttl: Duration,
    /// `SERVICE_CHAT_CDN_INTEGRITY`: the only script that is served.
    pub cdn_integrity: Option<Integrity>,
    /// `SERVICE_CHAT_DOMAIN_KEY`: public, handed to pages.
    pub domain_key: Option<String>,
}

/// A file's SHA-384 digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrity(pub Vec<u8>);

/// Parses `sha384-` and base64, as in a script's `integrity` attribute.
fn integrity(text: &str) -> Result<Integrity, Invalid> {
    let digest = text.strip_prefix("sha384-").and_then(|text| STANDARD.decode(text).ok());
    let digest = digest.filter(|digest| digest.len() == SHA384_BYTES);
    digest.map(Integrity).ok_or_else(|| {
        Invalid::new(
            "is not a SHA-384 digest",
            "write sha384- and the digest in base64, as in <script integrity>",
        )
    })
}

/// `SERVICE_CHAT_DIALECT`: the events of streamed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The dialect that the request names.
    Auto,
    /// The interface's own dialect.
    Interface,
    /// ChatKit's dialect.
    Chatkit,
}

/// The time for which a turn outlives its last reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisconnectGrace {
    /// This long; zero stops the turn at once.
    After(Duration),
    /// Until the turn is done.
    Forever,
    /// By dialect: an interface client has a call to stop a turn; a ChatKit client stops it by disconnecting.
    Auto,
}

/// Default grace of a ChatKit turn.
const CHATKIT_GRACE: Duration = Duration::from_secs(30);

impl DisconnectGrace {
    /// The grace of turns in the interface's dialect; `None`: they never stop.
    #[must_use]
    pub fn interface(self) -> Option<Duration> {
        match self {
            Self::After(duration) => Some(duration),
            Self::Forever | Self::Auto => None,
        }
    }

    /// The grace of turns in ChatKit's dialect; `None`: they never stop.
    #[must_use]
    pub fn chatkit(self) -> Option<Duration> {
        match self {
            Self::After(duration) => Some(duration),
            Self::Forever => None,
            Self::Auto => Some(CHATKIT_GRACE),
        }
    }
}

/// Chat requests within a window; `None` disables a limit.
#[derive(Debug, Clone, Copy)]
pub struct ChatLimit {
    /// `SERVICE_CHAT_RATE_LIMIT_IP`.
    pub per_address: Option<NonZeroU32>,
    /// `SERVICE_CHAT_RATE_LIMIT_WORKFLOW`.
    pub per_workflow: Option<NonZeroU32>,
    /// `SERVICE_CHAT_RATE_LIMIT_SESSION`.
    pub per_session: Option<NonZeroU32>,
    /// `SERVICE_CHAT_RATE_LIMIT_INTERVAL`.
    pub interval: Duration,
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Chat, RejectedValue> {
    let dialects =
        [("auto", Dialect::Auto), ("interface", Dialect::Interface), ("chatkit", Dialect::Chatkit)];
    let token_signing_key = reader.secret("CHAT_TOKEN_SIGNING_KEY", parse::any_secret);
    let token_ttl = reader.value("CHAT_TOKEN_TTL_SECONDS", parse::seconds(30..=3600));
    let dialect = reader.value("SERVICE_CHAT_DIALECT", parse::choice(&dialects));
    let disconnect_grace = reader.value("SERVICE_CHAT_DISCONNECT_GRACE", grace);
    let rate_limit = read_limit(reader);
    let max_streams = reader.value("SERVICE_CHAT_MAX_STREAMS", parse::limit);
    let upload_max_bytes =
        reader.value("SERVICE_CHAT_UPLOAD_MAX_BYTES", parse::number::<u64>(0..=1_073_741_824));
    let upload_daily_bytes =
        reader.value("SERVICE_CHAT_UPLOAD_DAILY_BYTES", parse::number::<u64>(0..=1 << 50));
    let cdn_base_url = reader.value("SERVICE_CHAT_CDN_BASE_URL", address::base_url);
    let cdn_cache_ttl = reader.value("SERVICE_CHAT_CDN_CACHE_TTL", parse::seconds(0..=86400));
    let cdn_integrity = reader.optional("SERVICE_CHAT_CDN_INTEGRITY", integrity);
    let domain_key = reader.optional("SERVICE_CHAT_DOMAIN_KEY", parse::line);
    Ok(Chat {
        token_signing_key: token_signing_key?,
        token_ttl: token_ttl?,
        dialect: dialect?,
        disconnect_grace: disconnect_grace?,
        rate_limit: rate_limit?,
        max_streams: max_streams?,
        upload_max_bytes: NonZeroU64::new(upload_max_bytes?),
        upload_daily_bytes: NonZeroU64::new(upload_daily_bytes?),
        cdn_base_url: cdn_base_url?,
        cdn_cache_ttl: cdn_cache_ttl?,
        cdn_integrity: cdn_integrity?,
        domain_key: domain_key?,
    })
}

fn read_limit(reader: &mut VariableReader<'_>) -> Result<ChatLimit, RejectedValue> {
    let per_address = reader.value("SERVICE_CHAT_RATE_LIMIT_IP", parse::limit);
    let per_workflow = reader.value("SERVICE_CHAT_RATE_LIMIT_WORKFLOW", parse::limit);
    let per_session = reader.value("SERVICE_CHAT_RATE_LIMIT_SESSION", parse::limit);
    let interval = reader.value("SERVICE_CHAT_RATE_LIMIT_INTERVAL", parse::seconds(1..=86400));
    Ok(ChatLimit {
        per_address: per_address?,
        per_workflow: per_workflow?,
        per_session: per_session?,
        interval: interval?,
    })
}

fn grace(text: &str) -> Result<DisconnectGrace, Invalid> {
    match text {
        "forever" => return Ok(DisconnectGrace::Forever),
        "auto" => return Ok(DisconnectGrace::Auto),
        _ => {}
    }
    parse::seconds(0..=86400)(text).map(DisconnectGrace::After).map_err(|mut invalid| {
        invalid.instead.push_str(", or `forever`, or `auto`");
        invalid
    })
}
