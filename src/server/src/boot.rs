//! Starts all parts in order.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use actix_web::dev::ServerHandle;
use actors::delivery::mail::{self, DeliveryError};
use actors::{Grace, ImageLinks, Settings, System};
use auth::app_handle::AppHandleKey;
use auth::exposure::Asks;
use auth::keyring::{KeyRing, KeyringError};
use auth::link::LinkKey;
use auth::visitor::VisitorKey;
use config::Config;
use control::uploads::{UploadLimits, Uploads};
use kernel::{Clock, Ids, Random, RandomError, SystemClock, SystemRandom};
use models::{EndpointSettings, ModelSettings, Models, PRACTICE};
use practice::Practice;
use sandbox::{Options, Sandbox};
use store::data_dir::{DataDir, DataDirError};
use store::embedded::{Embedded, EmbeddedError, EmbeddedOptions};
use store::{Store, StoreError, StoreOptions};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::cdn::WidgetScript;
use crate::http::{App, AppParts, AppServices, BundleUploads, Gate, GateParts};
use crate::keys::KeysError;
use crate::listener::{ListenError, listen};
use crate::open_files::OpenFiles;
use crate::running::{Running, STREAMS_END};
use crate::tls::{PairError, Tls};
use crate::tokens::{Tokens, TokensError};
use crate::{exposure, http1, keys, sign_in};

/// Optional parts that a caller can supply.
pub struct Parts {
    /// A listener from [`bind`].
    pub listener: Option<TcpListener>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The random source.
    pub random: Arc<dyn Random>,
}

impl Default for Parts {
    fn default() -> Self {
        Self { listener: None, clock: Arc::new(SystemClock::new()), random: Arc::new(SystemRandom::new()) }
    }
}

/// The reason why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The service would be exposed without protection.
    #[error("{0}")]
    Exposure(String),
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The embedded database failed.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The vault keys cannot be used.
    #[error("{0}")]
    Keys(String),
    /// The address cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The listener's certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] PairError),
    /// The client for outbound requests failed.
    #[error("the HTTP client cannot be set up: {0}")]
    HttpClient(String),
    /// The language models cannot be used.
    #[error("the language models cannot be set up: {0}")]
    Models(String),
    /// The mail server or sender address cannot be used.
    #[error(transparent)]
    Mail(#[from] DeliveryError),
    /// Another system error.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No random bytes are available.
    #[error(transparent)]
    Random(#[from] RandomError),
}

impl From<KeysError> for StartError {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::File(error) => Self::DataDir(error),
            KeysError::Ring(error) => Self::Keys(error.to_string()),
        }
    }
}

impl From<TokensError> for StartError {
    fn from(error: TokensError) -> Self {
        match error {
            TokensError::Store(error) => Self::Store(error),
            other => Self::Keys(other.to_string()),
        }
    }
}

impl From<KeyringError> for StartError {
    fn from(error: KeyringError) -> Self {
        Self::Keys(error.to_string())
    }
}

/// Starts everything. Must be called inside an actix system; the service is ready when this returns.
///
/// # Errors
/// [`StartError`] with the setting to change.
pub async fn start(config: &Config, parts: Parts) -> Result<Running, StartError> {
    let Parts { listener, clock, random } = parts;
    let asks = exposure::allowed(config).map_err(StartError::Exposure)?;
    if asks == Asks::WhoGivesOne && !config.http.is_loopback() {
        tracing::warn!(
            "SERVICE_AUTH_MODE=optional on an address that others can reach: a caller without a credential has all \
             permissions"
        );
    }
    let tls = config.http.tls.as_ref().map(Tls::load).transpose()?;
    let files = OpenFiles::raise();
    tracing::info!(limit = files.limit(), connections = files.connections(), "open files");
    let listener = listener.map_or_else(|| listen(config), Ok)?;
    let address = listener.local_addr()?;
    let base = Foundation::open(config, address, clock, random).await?;
    let sandbox = sandbox(&config.sandbox);
    let (services, mail) = base.services(&sandbox).await?;
    let children = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.http.workers)
        .thread_name("runs")
        .enable_all()
        .build()?;
    let settings = base.system_settings(&children, sandbox, mail, &services.links)?;
    let system = Arc::new(System::start(settings).await?);
    let app = base.app(asks, Arc::clone(&system), services, tls.clone())?;
    let (server, serving) = serve(config, &app, listener, files, tls.clone())?;
    let watching = tls.map(|tls| tokio::task::spawn_local(tls.watch(Arc::clone(&base.clock))));
    Ok(Running {
        watching,
        address,
        system,
        app,
        server,
        serving,
        children,
        clock: base.clock,
        embedded: base.embedded,
        notice: config.http.drain_notice,
        _data_dir: base.data_dir,
    })
}

/// The configuration, the database and the other parts on which the service is built.
struct Foundation<'a> {
    config: &'a Config,
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    ids: Ids,
    instance: Uuid,
    store: Store,
    embedded: Option<Embedded>,
    ring: Option<Arc<KeyRing>>,
    // Last, because the folder must be released after everything that uses it.
    data_dir: DataDir,
}

impl<'a> Foundation<'a> {
    /// Opens the data folder and the database.
    async fn open(
        config: &'a Config,
        address: SocketAddr,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, StartError> {
        let ids = Ids::new(Arc::clone(&clock), Arc::clone(&random));
        let data_dir = open_data_dir(&config.data.dir).await?;
        let fresh = ids.uuid()?;
        let instance = data_dir.instance_id(|| fresh)?;
        let ring = keys::ring(config, &data_dir, &*random)?.map(Arc::new);
        let (embedded, dsn) = database(config).await?;
        let store = Store::open(StoreOptions {
            dsn,
            connections: config.database.pool.saturating_sub(config.database.writers),
            clock: Arc::clone(&clock),
            random: Arc::clone(&random),
            ids: ids.clone(),
        })
        .await?;
        Ok(Self { config, address, clock, random, ids, instance, store, embedded, ring, data_dir })
    }

    /// Loads or generates the keys, and creates the services of the handlers and the settings of the mail queue.
    async fn services(&self, sandbox: &Sandbox) -> Result<(AppServices, mail::Settings), StartError> {
        let Self { config, store, clock, ids, .. } = self;
        let ring = self.ring.as_deref();
        let visitors = VisitorKey::new(&store.service_key("visitor", ring).await?);
        let app_handles = AppHandleKey::new(&store.service_key("handles", ring).await?);
        let links = Arc::new(LinkKey::new(&store.service_key("attachment_links", ring).await?));
        let limits = UploadLimits { file: config.chat.upload_max_bytes, day: config.chat.upload_daily_bytes };
        let uploads = Uploads::new(store.clone(), sandbox.clone(), Arc::clone(clock), ids.clone(), limits);
        let bundles = BundleUploads::open(self.data_dir.path())?;
        let sign_in = sign_in::keys(store, ring).await?;
        let mail = sign_in::mail(config, &sign_in)?;
        let services = AppServices {
            visitors,
            app_handles,
            links,
            uploads,
            bundles,
            sign_in,
            provider: sign_in::provider(config, store, ring, clock).await?,
            tokens: Arc::new(Tokens::from_config(config, store, ring, clock).await?),
            answers_key: keys::generated(store, "answers", ring).await?,
            cursors_key: keys::generated(store, "cursors", ring).await?,
        };
        Ok((services, mail))
    }

    /// The settings of the actors, whose child tasks use the runtime `children`.
    fn system_settings(
        &self,
        children: &Runtime,
        sandbox: Sandbox,
        mail: mail::Settings,
        links: &Arc<LinkKey>,
    ) -> Result<Settings, StartError> {
        let Self { config, store, clock, .. } = self;
        let outbound = self.outbound()?;
        Ok(Settings {
            store: store.clone(),
            instance: self.instance,
            writers: config.database.writers,
            arbiters: config.http.workers,
            children: children.handle().clone(),
            clock: Arc::clone(clock),
            random: Arc::clone(&self.random),
            ids: self.ids.clone(),
            grace: Grace {
                interface: config.chat.disconnect_grace.interface(),
                chatkit: config.chat.disconnect_grace.chatkit(),
            },
            models: models(config, &outbound, clock)?,
            sandbox,
            vault: self.ring.clone(),
            outbound,
            mail,
            keep_runs: config.database.keep_runs,
            links: ImageLinks {
                key: Arc::clone(links),
                base: config.http.public_base_url.as_ref().map(|base| base.as_str().into()),
            },
            workspace_bytes: config.database.workspace_bytes,
            training_runs: config.database.training_runs,
        })
    }

    /// The client for addresses that graphs name: public ones and those opened by the operator, but never this service
    /// or its database.
    fn outbound(&self) -> Result<net::Client, StartError> {
        let place = |host: &net::Host<String>, port| net::HostPort { host: host.clone(), port };
        let allow = self.config.egress.allow.iter().map(|open| place(&open.host, open.port)).collect();
        let listening = match self.address.ip() {
            IpAddr::V4(ip) => net::Host::Ipv4(ip),
            IpAddr::V6(ip) => net::Host::Ipv6(ip),
        };
        let mut own = vec![place(&listening, self.address.port())];
        for (host, port) in self.store.places() {
            own.extend(net::Host::parse(&host).ok().map(|host| place(&host, port)));
        }
        let guard = net::Guard::new(net::Egress { allow, own }, Arc::new(net::SystemResolver));
        net::Client::guarded(Arc::new(guard), Arc::clone(&self.clock))
            .map_err(|error| StartError::Models(error.to_string()))
    }

    /// The state of the handlers.
    fn app(
        &self,
        asks: Asks,
        system: Arc<System>,
        services: AppServices,
        tls: Option<Tls>,
    ) -> Result<App, StartError> {
        let Self { config, store, clock, .. } = self;
        let gate = Gate::new(GateParts {
            config,
            asks,
            store: store.clone(),
            clock: Arc::clone(clock),
            tokens: Arc::clone(&services.tokens),
        });
        let operator = net::Client::operator(Arc::clone(clock))
            .map_err(|error| StartError::HttpClient(error.to_string()))?;
        let widget_script = WidgetScript::new(operator, &config.chat, Arc::clone(clock));
        Ok(App::new(AppParts {
            config: self.config.clone(),
            address: self.address,
            store: store.clone(),
            system,
            services,
            clock: Arc::clone(clock),
            random: Arc::clone(&self.random),
            ids: self.ids.clone(),
            gate,
            vault: self.ring.clone(),
            widget_script,
            tls,
        }))
    }
}

/// The configured language models, and those that need no configuration.
fn models(config: &Config, outbound: &net::Client, clock: &Arc<dyn Clock>) -> Result<Models, StartError> {
    let operator =
        net::Client::operator(Arc::clone(clock)).map_err(|error| StartError::Models(error.to_string()))?;
    let settings = |base: &Option<config::BaseUrl>, key: &Option<kernel::Secret>| EndpointSettings {
        base_url: base.as_ref().map(|base| base.as_str().to_owned()),
        api_key: key.clone(),
        most_bytes: None,
    };
    let config::Model { base_url, api_key, anthropic, gemini, tape } = &config.model;
    let settings = ModelSettings {
        openai: settings(base_url, api_key),
        anthropic: settings(&anthropic.base_url, &anthropic.api_key),
        gemini: settings(&gemini.base_url, &gemini.api_key),
    };
    let refused = |error: &dyn std::fmt::Display| StartError::Models(error.to_string());
    let models = Models::configured(settings, &operator, clock).map_err(|error| refused(&error))?;
    let practice = Arc::new(Practice::new(Arc::clone(clock)));
    let models = models.with(PRACTICE, practice).with_endpoints(outbound.clone(), Arc::clone(clock));
    let taped = match tape {
        None => return Ok(models),
        Some(config::ModelTape::Record(path)) => models.recorded(path),
        Some(config::ModelTape::Replay(path)) => models.replayed(path),
    };
    taped.map_err(|error| refused(&error))
}

/// The sandbox for workflow code, as configured.
#[must_use]
pub fn sandbox(config: &config::Sandbox) -> Sandbox {
    let (workers, memory) = (config.workers, config.memory);
    let options = config.program.clone().map_or_else(Options::own, Options::new);
    Sandbox::new(Options { workers, memory, ..options })
}

/// Binds the address before the start, under the same rules. The port is then known and can be part of the
/// configuration.
///
/// # Errors
/// [`StartError::Exposure`] and [`StartError::Listen`], as from a start.
pub fn bind(config: &Config) -> Result<TcpListener, StartError> {
    exposure::allowed(config).map_err(StartError::Exposure)?;
    Ok(listen(config)?)
}

/// Checks as far as possible that a start could listen; the address is released again.
///
/// # Errors
/// [`StartError::Exposure`] and [`StartError::Listen`], as from a start.
pub fn may_listen(config: &Config) -> Result<(), StartError> {
    config.http.tls.as_ref().map(Tls::load).transpose()?;
    bind(config).map(drop)
}

async fn open_data_dir(path: &Path) -> Result<DataDir, StartError> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || DataDir::open(&path)).await;
    Ok(opened.map_err(std::io::Error::other)??)
}

async fn database(config: &Config) -> Result<(Option<Embedded>, kernel::Secret), StartError> {
    if let Some(dsn) = &config.database.dsn {
        return Ok((None, dsn.clone()));
    }
    let options =
        EmbeddedOptions { data_dir: config.data.dir.clone(), binaries: config.database.pg_bin.clone() };
    let started = tokio::task::spawn_blocking(move || Embedded::start(&options)).await;
    let embedded = started.map_err(std::io::Error::other)??;
    if embedded.taken_over() {
        tracing::info!("took over the embedded database of an earlier process");
    }
    let dsn = embedded.dsn().to_owned().into();
    Ok((Some(embedded), dsn))
}

fn serve(
    config: &Config,
    app: &App,
    listener: TcpListener,
    files: OpenFiles,
    tls: Option<Tls>,
) -> Result<(ServerHandle, JoinHandle<std::io::Result<()>>), StartError> {
    let shutdown_timeout = STREAMS_END.as_secs();
    let options = http1::Options { workers: config.http.workers, shutdown_timeout, files, tls };
    let server = http1::serve(app, listener, &options)?;
    let handle = server.handle();
    Ok((handle, tokio::task::spawn_local(server)))
}
