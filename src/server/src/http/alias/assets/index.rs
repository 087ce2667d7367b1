//! Maps paths to a deployment's files.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bundle::{MANIFEST, OTHER, OVER_HTTPS};
use kernel::Clock;
use moka::sync::Cache;
use parking_lot::Mutex;
use store::{ServedFile, Store};
use uuid::Uuid;

use super::flights::Flights;
use super::negotiate::Encoding;
use super::parts::Blob;
use crate::http::error::ApiResult;

/// Cache lifetime while a deployment's encodings are not ready yet.
const UNENCODED: Duration = Duration::from_secs(10);
/// The approximate memory limit for all cached deployments. One deployment is always smaller by the bundle limits:
/// 20,000 files, 8 MiB of directory with paths, 16 MiB of policies.
const MAX_KEPT: u64 = 64 << 20;
/// Approximate bytes per file, in addition to its path and policy.
const FILE: usize = 400;

/// A deployed file.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) path: Arc<str>,
    pub(super) kind: HeaderValue,
    /// Whether browsers would guess the content type.
    pub(super) is_of_unknown_kind: bool,
    /// An HTML document's policy.
    pub(super) policy: Option<Policy>,
    content: Blob,
    br: Option<Blob>,
    gzip: Option<Blob>,
}

/// A document's content security policy.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) over_http: HeaderValue,
    pub(super) over_https: HeaderValue,
}

/// The last directive in each policy.
const FRAME_ANCESTORS: &str = "; frame-ancestors";

impl Policy {
    /// Returns `None` if the text is not a valid header value.
    fn from_text(text: String) -> Option<Self> {
        let header = |text: &str| HeaderValue::from_str(text).ok();
        Some(Self { over_http: header(&text)?, over_https: header(&(text + OVER_HTTPS))? })
    }
}

impl Asset {
    /// Returns `None` if this version could not have written the row.
    pub(super) fn from_file(file: ServedFile) -> Option<Self> {
        let blob = |digest: Vec<u8>, size: i64| {
            Some(Blob { digest: digest.try_into().ok()?, size: u64::try_from(size).ok()? })
        };
        let header = |text: &str| HeaderValue::from_str(text).ok();
        let policy = match file.policy {
            Some(text) => Some(Policy::from_text(text)?),
            None => None,
        };
        Some(Self {
            is_of_unknown_kind: file.media_type == OTHER,
            kind: header(&file.media_type)?,
            policy,
            content: blob(file.digest, file.size)?,
            br: file.br.zip(file.br_size).and_then(|(digest, size)| blob(digest, size)),
            gzip: file.gzip.zip(file.gzip_size).and_then(|(digest, size)| blob(digest, size)),
            path: file.path.into(),
        })
    }

    /// Returns the same file with framing denied; `None` if this version could not have written its policy.
    pub(super) fn without_frames(self) -> Option<Self> {
        let Some(policy) = &self.policy else { return Some(self) };
        let (rest, _) = policy.over_http.to_str().ok()?.rsplit_once(FRAME_ANCESTORS)?;
        let policy = Policy::from_text(format!("{rest}{FRAME_ANCESTORS} 'none'"))?;
        Some(Self { policy: Some(policy), ..self })
    }

    pub(super) fn is_document(&self) -> bool {
        self.policy.is_some()
    }

    pub(super) fn has(&self, encoding: Encoding) -> bool {
        match encoding {
            Encoding::Identity => true,
            Encoding::Br => self.br.is_some(),
            Encoding::Gzip => self.gzip.is_some(),
        }
    }

    /// The content in one of the file's encodings.
    pub(super) fn blob(&self, encoding: Encoding) -> Blob {
        let encoded = match encoding {
            Encoding::Identity => None,
            Encoding::Br => self.br,
            Encoding::Gzip => self.gzip,
        };
        encoded.unwrap_or(self.content)
    }

    /// The strong ETag, with its quotes.
    pub(super) fn tag(&self, encoding: Encoding) -> String {
        let end = match encoding {
            Encoding::Identity => "\"",
            Encoding::Br => "-br\"",
            Encoding::Gzip => "-gz\"",
        };
        let mut tag = String::with_capacity(48);
        tag.push('"');
        URL_SAFE_NO_PAD.encode_string(self.content.digest, &mut tag);
        tag.push_str(end);
        tag
    }
}

/// A deployment's files.
pub(super) struct Index {
    files: HashMap<Arc<str>, Arc<Asset>>,
    by_digest: HashMap<[u8; 32], Vec<Arc<Asset>>>,
    weight: usize,
    /// Whether encodings are not ready yet.
    awaits_encoding: bool,
    read_at: Mutex<Duration>,
}

impl Index {
    fn from_files(files: Vec<ServedFile>, read_at: Duration) -> Self {
        let awaits_encoding = files.iter().any(|file| file.awaits_encoding);
        let (files_by_path, by_digest) = (HashMap::new(), HashMap::new());
        let read_at = Mutex::new(read_at);
        let mut index = Self { files: files_by_path, by_digest, weight: FILE, awaits_encoding, read_at };
        for file in files {
            let policy = file.policy.as_ref().map_or(0, |policy| 2 * policy.len());
            let weight = FILE + file.path.len() + policy;
            let Some(asset) = Asset::from_file(file).filter(|asset| &*asset.path != MANIFEST) else {
                continue;
            };
            let asset = Arc::new(asset);
            index.weight += weight;
            index.by_digest.entry(asset.content.digest).or_default().push(Arc::clone(&asset));
            index.files.insert(Arc::clone(&asset.path), asset);
        }
        index
    }

    /// Returns the file at exactly this path.
    pub(super) fn file(&self, path: &str) -> Option<&Arc<Asset>> {
        self.files.get(path)
    }

    /// Returns a file with this content, preferably with this name.
    pub(super) fn with_digest(&self, digest: &[u8; 32], name: &str) -> Option<&Arc<Asset>> {
        let files = self.by_digest.get(digest)?;
        let has_name = |asset: &&Arc<Asset>| asset.path.rsplit('/').next() == Some(name);
        files.iter().find(has_name).or_else(|| files.first())
    }
}

/// Caches the deployments that this instance serves.
pub(super) struct Indexes {
    store: Store,
    clock: Arc<dyn Clock>,
    kept: Cache<Uuid, Arc<Index>>,
    flights: Flights<Uuid, Arc<Index>>,
}

impl Indexes {
    pub(super) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        let weight = |_: &Uuid, index: &Arc<Index>| u32::try_from(index.weight).unwrap_or(u32::MAX);
        let kept = Cache::builder().weigher(weight).max_capacity(MAX_KEPT).build();
        Self { store, clock, kept, flights: Flights::default() }
    }

    /// Returns a deployment's files.
    ///
    /// # Errors
    /// [`crate::http::error::ApiError`] if they are not cached and the database does not answer.
    pub(super) async fn for_deployment(&self, deployment: Uuid) -> ApiResult<Arc<Index>> {
        let known = self.kept.get(&deployment);
        if let Some(known) = known.as_ref().filter(|known| self.is_current(known)) {
            return Ok(Arc::clone(known));
        }
        let read = async {
            if let Some(known) = self.kept.get(&deployment).filter(|known| self.is_current(known)) {
                return ApiResult::Ok(known);
            }
            let read_at = self.clock.monotonic();
            match (self.store.served_files(deployment).await, known) {
                (Ok(files), _) => {
                    let index = Arc::new(Index::from_files(files, read_at));
                    self.kept.insert(deployment, Arc::clone(&index));
                    Ok(index)
                }
                // Deployed files never change. The next read waits as long as after a successful one.
                (Err(_), Some(known)) => {
                    *known.read_at.lock() = self.clock.monotonic();
                    Ok(known)
                }
                (Err(error), None) => Err(error.into()),
            }
        };
        self.flights.read(deployment, read).await
    }

    fn is_current(&self, index: &Index) -> bool {
        !index.awaits_encoding || self.clock.monotonic().saturating_sub(*index.read_at.lock()) < UNENCODED
    }
}
