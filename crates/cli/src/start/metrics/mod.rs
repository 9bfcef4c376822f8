//! What a monitoring system asks a server: its numbers, whether it is alive, whether it is ready.
//!
//! A thread of its own answers HTTP. For each question it asks the server over the same ports as
//! everybody else does, so that an answer says that the server answers: its loops, and its port for
//! Redis clients.

mod http;
mod sources;
mod text;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::announce::announce;
use http::{HttpAnswer, HttpRefusal};
pub use sources::{MetricsSource, OwnPassword, PortNumbers};

/// So many are answered at a time; further connections are closed.
const AT_ONCE_MAX: usize = 16;
/// Connections that cannot be taken are tried again after so long.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers a monitoring system from now on, if that was asked for.
pub fn serve(metrics: Option<MetricsListener>, sources: Vec<MetricsSource>) {
    if let Some(metrics) = metrics {
        announce(&format!("metrics are at http://{}/metrics", metrics.address()));
        metrics.serve(sources);
    }
}

/// A socket at which a server's numbers are asked for.
pub struct MetricsListener(TcpListener);

impl MetricsListener {
    /// Listens at `HOST:PORT`.
    ///
    /// # Errors
    /// It cannot.
    pub fn bind(address: &str) -> anyhow::Result<MetricsListener> {
        let bound = TcpListener::bind(address);
        let bound = bound.with_context(|| format!("`metrics`: cannot listen on {address}"))?;
        Ok(MetricsListener(bound))
    }

    /// Where it listens.
    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a socket that listens")
    }

    /// Answers for as long as the process runs.
    fn serve(self, sources: Vec<MetricsSource>) {
        let (sources, running) = (Arc::new(sources), Arc::new(AtomicUsize::new(0)));
        thread::spawn(move || {
            loop {
                match self.0.accept() {
                    Ok((stream, _)) => answer_aside(stream, &sources, &running),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => thread::sleep(PAUSE), // Perhaps there are no files left to open.
                }
            }
        });
    }
}

/// Answers on a thread of its own, if there are not too many.
fn answer_aside(stream: TcpStream, sources: &Arc<Vec<MetricsSource>>, running: &Arc<AtomicUsize>) {
    if running.fetch_add(1, Ordering::AcqRel) >= AT_ONCE_MAX {
        running.fetch_sub(1, Ordering::AcqRel);
        return;
    }
    let (sources, answering) = (Arc::clone(sources), Answering(Arc::clone(running)));
    let answered = move || {
        let _answering = answering;
        http::serve(stream, |path| answer(path, &sources));
    };
    // Where there is no thread to be had the connection is closed.
    drop(thread::Builder::new().spawn(answered));
}

/// Counts as one that is being answered, until this is dropped.
struct Answering(Arc<AtomicUsize>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What is answered to this path.
fn answer(path: &str, sources: &[MetricsSource]) -> Result<HttpAnswer, HttpRefusal> {
    match path {
        "/metrics" => {
            let measured: Vec<_> = sources.iter().map(MetricsSource::measure).collect();
            Ok(HttpAnswer { status: 200, text: text::metrics(&measured) })
        }
        "/health" => Ok(verdict(sources, |it| it.trouble.clone())),
        "/ready" => Ok(verdict(sources, PortNumbers::not_ready)),
        _ => Err(HttpRefusal::NotFound),
    }
}

/// 200 where nothing is said against any source, and else 503 with what is.
fn verdict(
    sources: &[MetricsSource],
    against: impl Fn(&PortNumbers) -> Option<String>,
) -> HttpAnswer {
    let troubles = sources.iter().filter_map(|it| against(&it.measure()));
    match troubles.collect::<Vec<_>>().join("\n") {
        all if all.is_empty() => HttpAnswer { status: 200, text: "ok\n".to_owned() },
        all => HttpAnswer { status: 503, text: all + "\n" },
    }
}
