//! Reads an app from two instances while its releases are switched and either instance is killed: each page is from one
//! active release, the files of its pages are found for an hour, and no response is a service error.

mod content;
mod found;
mod instance;
mod publisher;
mod reader;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};

use super::hosted::App;
use super::server::{now, pause};
use super::splitmix::splitmix;
use crate::cluster::{self, Cluster};
use found::{SwitchCounts, add};
use instance::Instance;
use publisher::Publisher;
use reader::PageReader;

const READERS: u64 = 8;
/// The pause between a restart and the next kill, in milliseconds.
const KILL_PAUSE_MILLIS: std::ops::Range<u64> = 500..2_500;
/// The bench ends after this time, complete or not.
const TIME_LIMIT: Duration = Duration::from_mins(15);

pub(super) fn run(target: &Path, reads: usize, seed: u64) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, reads, seed))
}

async fn measure(target: &Path, cluster: &Cluster, reads: usize, seed: u64) -> Result<()> {
    let mut instances =
        [Instance::start(target, cluster, "one").await?, Instance::start(target, cluster, "two").await?];
    let addresses = instances.each_ref().map(|instance| instance.address.clone());
    let [first, _] = &addresses;
    let app = App::create(first, "switches").await?;
    let host = app.host();
    let found = Arc::new(SwitchCounts::default());
    let mut publisher = Publisher::new(Arc::clone(&found), app, addresses.clone());
    let release = publisher.publish(1).await?;
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let (found, addresses, host) = (Arc::clone(&found), addresses.clone(), host.clone());
            let place = splitmix(seed ^ (reader << 32));
            let reader = PageReader { found, addresses, host, place, seen: Vec::new() };
            tokio::spawn(reader.keep_reading())
        })
        .collect();
    let publishing = tokio::spawn(async move { publisher.keep_switching(release).await });
    let began = now();
    let mut kills = 0;
    while !found.is_enough(reads) && !publishing.is_finished() && began.elapsed() < TIME_LIMIT {
        let random = splitmix(seed.wrapping_add(kills));
        pause(Duration::from_millis(
            KILL_PAUSE_MILLIS.start + random % (KILL_PAUSE_MILLIS.end - KILL_PAUSE_MILLIS.start),
        ))
        .await;
        let [one, two] = &mut instances;
        if random >> 63 == 1 {
            one.kill().await?
        } else {
            two.kill().await?
        }
        add(&found.kills);
        kills += 1;
    }
    found.ends.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await?;
    }
    publishing.await??;
    let gates = found.report(reads);
    gates.print();
    gates.conclude()
}
