//! `muesli start --resp`: Redis clients, of a lone server or of a cluster's member.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::bail;
use muesli::server::{self, Durability};
use muesli::{Connect, Db, Durable, Options, Retry};
use muesli_resp::{RespListener, RespOptions, RespServer};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::announce::announce;
use super::follow;
use super::metrics::{self, MetricsListener, MetricsSource, OwnPassword};
use crate::config::Config;

/// Commands are tried again so often: clients of Redis do not expect that one has to be repeated.
const ATTEMPTS: u32 = 1_000;
/// Whether it is to stop is looked for so often.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Serves Redis clients until the process is told to stop.
///
/// # Errors
/// The server cannot be started, or cannot go on.
pub fn serve(config: &Config, metrics: Option<MetricsListener>) -> anyhow::Result<()> {
    let is_alone = config.server.servers.is_empty() && !config.server.joins;
    match is_alone && !config.listens {
        true => serve_alone(config, metrics),
        false => serve_beside(config, metrics),
    }
}

/// The options of the server, and, where it asks itself for its numbers and has users, the password
/// for that.
fn resp_options(
    config: &Config,
    shared: bool,
    asks_itself: bool,
) -> anyhow::Result<(RespOptions, Option<OwnPassword>)> {
    let (users, own) = match &config.users {
        Some(users) if asks_itself => {
            let (users, password) = users.clone().with_own()?;
            (Some(users), Some(OwnPassword(password)))
        }
        users => (users.clone(), None),
    };
    let options = RespOptions {
        clients_max: config.resp_clients_max,
        shared,
        durable: !matches!(config.server.durability, Durability::Memory),
        users,
        insecure: config.insecure,
        script_notice: config.server.notice,
        ..RespOptions::default()
    };
    Ok((options, own))
}

/// Listens for Redis clients, and says who can connect, if that is to be known.
fn listen(config: &Config, options: &RespOptions) -> anyhow::Result<RespListener> {
    let listener = RespListener::bind(&config.resp, options)?;
    listener.warning().into_iter().for_each(announce);
    Ok(listener)
}

fn retry() -> Retry {
    Retry { attempts: ATTEMPTS, ..Retry::default() }
}

/// A lone server without native clients: commands run on the loop that has the data.
fn serve_alone(config: &Config, metrics: Option<MetricsListener>) -> anyhow::Result<()> {
    if !config.follow.every.is_zero() {
        bail!("`follow_every_s` is of servers that native clients reach: give `listen`, too");
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    for ignored in [SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(ignored, Arc::default())?;
    }
    let durable = match &config.server.durability {
        Durability::Memory => None,
        Durability::Log(path) => Some(Durable {
            segment_bytes: config.server.log_segment_bytes,
            checkpoint_bytes: config.server.checkpoint_bytes,
            backlog_bytes: config.server.log_backlog_bytes,
            notice: config.server.notice,
            trouble: config.server.trouble.clone(),
            ..Durable::at(path)
        }),
    };
    let db = Db::open(Options {
        repositories: config.server.repositories,
        replicas: config.server.replicas,
        partitions_per_repository: config.server.partitions_per_repository,
        loops: config.loops,
        protocol: config.server.protocol.clone(),
        limits: config.server.settings.limits,
        retry: retry(),
        durable,
        ..Options::default()
    })?;
    let (options, own) = resp_options(config, config.loops > 1, metrics.is_some())?;
    let resp = match RespServer::start(&db, listen(config, &options)?, &options) {
        Ok(resp) => resp,
        Err((error, _)) => return Err(error.into()),
    };
    let (node, address) = (config.server.node.0, resp.address());
    announce(&format!("server {node} serves Redis clients on {address}; {}", config.data()));
    metrics::serve(metrics, vec![MetricsSource::Redis(address, own)]);
    let ended = until_stopped(&mut signals, resp);
    db.close();
    ended
}

/// Waits until the process is told to stop, or the server has ended by itself.
fn until_stopped(signals: &mut Signals, resp: RespServer) -> anyhow::Result<()> {
    while resp.is_running() && signals.pending().next().is_none() {
        thread::sleep(LOOKS_EVERY);
    }
    Ok(resp.stop()?)
}

/// A server that others connect to as well, or one of a cluster: commands are transactions over
/// all of it, by a client of this process.
fn serve_beside(config: &Config, metrics: Option<MetricsListener>) -> anyhow::Result<()> {
    let node = config.server.node.0;
    let (options, own) = resp_options(config, true, metrics.is_some())?;
    let listener = listen(config, &options)?;
    let (address, stop) = (listener.address(), Arc::new(AtomicBool::new(false)));
    let mut beside = None;
    let for_thread = stop.clone();
    let served = server::serve(&config.server, config.loops, |native| {
        announce(&format!("server {node} listens on {native}; {}", config.data()));
        if let Err(error) = follow::serve(config, &native.to_string()) {
            announce(&format!("partitions do not follow their use: {error:#}"));
        }
        let asked = MetricsSource::Native { address: native.to_string(), loops: config.loops };
        let (config, native) = (config.clone(), native.to_string());
        let run = move || serve_by_client(&config, native, listener, &options, &for_thread);
        beside = Some(thread::spawn(run));
        announce(&format!("server {node} serves Redis clients on {address}"));
        let sources = vec![asked, MetricsSource::Redis(address, own)];
        metrics::serve(metrics, sources);
    });
    stop.store(true, Ordering::Release);
    if let Some(beside) = beside {
        let _ = beside.join(); // It has told of what it met.
    }
    Ok(served?)
}

/// Connects to the server of this process, as soon as it answers, and serves Redis clients.
fn serve_by_client(
    config: &Config,
    native: String,
    listener: RespListener,
    options: &RespOptions,
    stop: &AtomicBool,
) {
    let notice = config.server.notice;
    let connect = Connect {
        addresses: vec![native],
        cluster: config.server.cluster.0,
        protocol: config.server.protocol.clone(),
        limits: config.server.settings.limits,
        secret: config.server.secret.clone(),
        retry: retry(),
        ..Connect::default()
    };
    let mut listener = Some(listener);
    while !stop.load(Ordering::Acquire) {
        let db = match Db::connect_with(connect.clone()) {
            Ok(db) => db,
            Err(error) => {
                notice(&format!("Redis clients wait: {error}"));
                continue;
            }
        };
        let Some(taken) = listener.take() else { return };
        match RespServer::start(&db, taken, options) {
            Ok(resp) => {
                while resp.is_running() && !stop.load(Ordering::Acquire) {
                    thread::sleep(LOOKS_EVERY);
                }
                if let Err(error) = resp.stop() {
                    notice(&format!("Redis clients are not served any more: {error}"));
                }
                return;
            }
            Err((error, back)) => {
                notice(&format!("Redis clients wait: {error}"));
                listener = back;
                thread::sleep(LOOKS_EVERY);
            }
        }
    }
}
