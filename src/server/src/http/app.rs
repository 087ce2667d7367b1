//! The state shared by all handlers, which they reach only through a guard (`guard/`).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use actix_web::HttpRequest;
use actors::kinds::action::Actions;
use actors::kinds::app::AppRuns;
use actors::kinds::training::Trainings;
use actors::kinds::turn::chat::Chat;
use actors::kinds::workflow::Runs;
use actors::{System, WorkspaceShares};
use auth::app_handle::AppHandleKey;
use auth::keyring::KeyRing;
use auth::link::LinkKey;
use auth::peer::client_address;
use auth::visitor::VisitorKey;
use config::Config;
use control::uploads::Uploads;
use kernel::{Clock, Ids, Random};
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::ErrorCode;

use super::alias::{Aliases, Assets, FrozenBindings, OpenStates};
use super::apps::BundleUploads;
use super::chat::{ChatRateLimits, RateLimit, StoreTurns, UploadPermits};
use super::error::{ApiError, ApiResult};
use super::guard::{self, Gate};
use super::health::Readiness;
use crate::body_budget::BodyBudget;
use crate::cdn::WidgetScript;
use crate::oidc::Provider;
use crate::tls::Tls;
use crate::tokens::Tokens;

use super::SignInKeys;

/// The parts that handlers use.
pub(crate) struct AppParts {
    pub(crate) config: Config,
    pub(crate) address: SocketAddr,
    pub(crate) store: Store,
    pub(crate) system: Arc<System>,
    pub(crate) services: AppServices,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) ids: Ids,
    pub(crate) gate: Gate,
    pub(crate) vault: Option<Arc<KeyRing>>,
    pub(crate) widget_script: WidgetScript,
    pub(crate) tls: Option<Tls>,
}

/// The keys and services of the handlers.
pub(crate) struct AppServices {
    pub(crate) visitors: VisitorKey,
    pub(crate) app_handles: AppHandleKey,
    pub(crate) links: Arc<LinkKey>,
    pub(crate) uploads: Uploads,
    pub(crate) bundles: BundleUploads,
    pub(crate) sign_in: SignInKeys,
    pub(crate) provider: Option<Provider>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) answers_key: KeyRing,
    pub(crate) cursors_key: KeyRing,
}

/// Shared by all workers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    inner: Arc<AppState>,
}

struct AppState {
    parts: AppParts,
    chat: Chat,
    runs: Runs,
    actions: Actions,
    app_runs: AppRuns,
    draining: CancellationToken,
    streams_closing: CancellationToken,
    diagnosis_places: Arc<Semaphore>,
    tls_answers: super::tls_ask::AnswerRate,
    readiness: Readiness,
    chat_limits: ChatRateLimits,
    record_writes: RateLimit<(Uuid, IpAddr)>,
    aliases: Aliases,
    frozen_bindings: FrozenBindings,
    open_states: OpenStates,
    assets: Assets,
    upload_permits: UploadPermits,
    store_turns: StoreTurns,
    body_budget: BodyBudget,
    transcription_permits: UploadPermits,
}

impl App {
    pub(crate) fn new(parts: AppParts) -> Self {
        let (chat, runs, actions) = (parts.system.chat(), parts.system.runs(), parts.system.actions());
        let app_runs = parts.system.app_runs();
        let chat_limits = ChatRateLimits::new(&parts.config.chat, &parts.clock);
        let writes = parts.config.apps.anonymous_writes_per_minute;
        let record_writes = RateLimit::per_minute(writes, &parts.clock, ErrorCode::AppRateLimited);
        let aliases = Aliases::new(parts.store.clone(), Arc::clone(&parts.clock));
        let assets = Assets::new(parts.store.clone(), Arc::clone(&parts.clock));
        let inner = AppState {
            parts,
            chat,
            runs,
            actions,
            app_runs,
            draining: CancellationToken::new(),
            streams_closing: CancellationToken::new(),
            diagnosis_places: super::diagnosis::places(),
            tls_answers: super::tls_ask::AnswerRate::default(),
            readiness: Readiness::default(),
            chat_limits,
            record_writes,
            aliases,
            frozen_bindings: FrozenBindings::default(),
            open_states: OpenStates::default(),
            assets,
            upload_permits: UploadPermits::default(),
            store_turns: StoreTurns::default(),
            body_budget: BodyBudget::default(),
            transcription_permits: UploadPermits::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes `/readyz` report `draining`.
    pub(crate) fn begin_drain(&self) {
        self.inner.draining.cancel();
    }

    /// Ends open streams; clients reconnect to another instance or to the next process.
    pub(crate) fn close_streams(&self) {
        self.inner.streams_closing.cancel();
    }

    /// The service's listen address.
    pub(super) fn address(&self) -> SocketAddr {
        self.inner.parts.address
    }

    pub(super) fn is_draining(&self) -> bool {
        self.inner.draining.is_cancelled()
    }

    pub(super) fn streams_closing(&self) -> &CancellationToken {
        &self.inner.streams_closing
    }

    pub(super) fn diagnosis_places(&self) -> &Arc<Semaphore> {
        &self.inner.diagnosis_places
    }

    /// The rate limit for certificate checks by proxies.
    pub(super) fn tls_answers(&self) -> &super::tls_ask::AnswerRate {
        &self.inner.tls_answers
    }

    /// The database results that `/readyz` reports.
    pub(super) fn readiness(&self) -> &Readiness {
        &self.inner.readiness
    }

    pub(super) fn chat_limits(&self) -> &ChatRateLimits {
        &self.inner.chat_limits
    }

    pub(super) fn config(&self) -> &Config {
        &self.inner.parts.config
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.parts.clock
    }

    pub(super) fn random(&self) -> &dyn Random {
        &*self.inner.parts.random
    }

    pub(super) fn ids(&self) -> &Ids {
        &self.inner.parts.ids
    }

    /// A UUIDv7.
    pub(super) fn new_id(&self) -> ApiResult<Uuid> {
        self.ids().uuid().map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
    }

    pub(super) fn visitors(&self) -> &VisitorKey {
        &self.inner.parts.services.visitors
    }

    /// The key for app run handles and app visitor cookies.
    pub(super) fn app_handles(&self) -> &AppHandleKey {
        &self.inner.parts.services.app_handles
    }

    pub(super) fn app_runs(&self) -> &AppRuns {
        &self.inner.app_runs
    }

    pub(super) fn frozen_bindings(&self) -> &FrozenBindings {
        &self.inner.frozen_bindings
    }

    /// Open state streams for app visitors.
    pub(super) fn open_states(&self) -> &OpenStates {
        &self.inner.open_states
    }

    /// The key that signs attachment URLs.
    pub(super) fn links(&self) -> &LinkKey {
        &self.inner.parts.services.links
    }

    /// Permits for transcriptions.
    pub(super) fn transcription_permits(&self) -> &UploadPermits {
        &self.inner.transcription_permits
    }

    /// The rate limit for record changes by anonymous visitors, keyed by app and network.
    pub(super) fn record_writes(&self) -> &RateLimit<(Uuid, IpAddr)> {
        &self.inner.record_writes
    }

    /// The workspaces' shares of concurrent record changes.
    pub(super) fn record_changes(&self) -> &WorkspaceShares {
        self.inner.parts.system.record_changes()
    }

    /// The key that seals record list cursors.
    pub(super) fn cursors(&self) -> &KeyRing {
        &self.inner.parts.services.cursors_key
    }

    /// Apps by host name.
    pub(super) fn aliases(&self) -> &Aliases {
        &self.inner.aliases
    }

    /// App files.
    pub(super) fn assets(&self) -> &Assets {
        &self.inner.assets
    }

    /// Accepts attachment uploads.
    pub(super) fn uploads(&self) -> &Uploads {
        &self.inner.parts.services.uploads
    }

    /// Accepts app bundle uploads.
    pub(super) fn bundle_uploads(&self) -> &BundleUploads {
        &self.inner.parts.services.bundles
    }

    /// The memory budget for request bodies.
    pub(super) fn body_budget(&self) -> &BodyBudget {
        &self.inner.body_budget
    }

    /// Whether the listener uses TLS.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// The listener's certificate; `None` without TLS.
    pub(super) fn tls(&self) -> Option<&Tls> {
        self.inner.parts.tls.as_ref()
    }

    pub(super) fn widget_script(&self) -> &WidgetScript {
        &self.inner.parts.widget_script
    }

    /// The turns in which uploads write to the store.
    pub(super) fn store_turns(&self) -> &StoreTurns {
        &self.inner.store_turns
    }

    pub(super) fn upload_permits(&self) -> &UploadPermits {
        &self.inner.upload_permits
    }

    pub(super) fn sign_in(&self) -> &SignInKeys {
        &self.inner.parts.services.sign_in
    }

    /// The identity provider for sign-in.
    pub(super) fn provider(&self) -> Option<&Provider> {
        self.inner.parts.services.provider.as_ref()
    }

    pub(super) fn system(&self) -> &System {
        &self.inner.parts.system
    }

    /// Authenticates credentials.
    pub(super) fn gate(&self) -> &Gate {
        &self.inner.parts.gate
    }

    /// Issues and verifies tokens.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.inner.parts.services.tokens
    }

    /// The key that seals stored responses with secrets.
    pub(super) fn answers_key(&self) -> &KeyRing {
        &self.inner.parts.services.answers_key
    }

    /// The vault's keys; `None` if none are configured.
    pub(super) fn vault(&self) -> Option<&KeyRing> {
        self.inner.parts.vault.as_deref()
    }

    /// The client's address, taken from forwarding headers if the peer is a trusted proxy.
    pub(super) fn client_address(&self, request: &HttpRequest) -> IpAddr {
        let forwarded =
            request.headers().get_all("x-forwarded-for").map(|value| value.to_str().unwrap_or(""));
        let forwarded: Vec<&str> = forwarded.collect();
        let trusted = &self.inner.parts.config.http.trusted_proxies;
        client_address(guard::peer(request), forwarded.into_iter(), trusted)
    }

    pub(super) fn store(&self) -> &Store {
        &self.inner.parts.store
    }

    pub(super) fn chat(&self) -> &Chat {
        &self.inner.chat
    }

    pub(super) fn actions(&self) -> &Actions {
        &self.inner.actions
    }

    pub(super) fn trainings(&self) -> Trainings {
        self.inner.parts.system.trainings()
    }

    pub(super) fn runs(&self) -> &Runs {
        &self.inner.runs
    }
}
