//! A proxy of the torture's own: every connection between nodes, and from clients to nodes, goes
//! through it, so that partitions can be made without touching the machine's network.
//!
//! A [`ProxyLink`] is one way to dial: from one party to one node. Each of its two directions can
//! be held, which is what a partition looks like to TCP: nothing arrives, nothing is refused, and
//! even the death of the other end stays unknown. What was held leaves when the link heals,
//! unless its ends have given up by then. Or a link is cut: its connections break at once.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use anyhow::Context;

/// Bytes carried at once.
const PIECE_BYTES: usize = 64 << 10;

/// The direction of bytes on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From who dialled.
    Out,
    /// To who dialled.
    Back,
}

#[derive(Default)]
struct LinkState {
    held_out: bool,
    held_back: bool,
    over: bool,
    /// Both sockets of each connection that is open.
    open: BTreeMap<u64, [TcpStream; 2]>,
    opened: u64,
}

/// One way to dial, through the proxy.
pub struct ProxyLink {
    state: Mutex<LinkState>,
    changed: Condvar,
    address: String,
}

impl ProxyLink {
    /// A new way to `target`.
    ///
    /// # Errors
    /// There is no port left.
    pub fn to(target: &str) -> anyhow::Result<Arc<ProxyLink>> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the proxy")?;
        let address = listener.local_addr()?.to_string();
        let (state, changed) = (Mutex::default(), Condvar::new());
        let link = Arc::new(ProxyLink { state, changed, address });
        let (accepting, target) = (link.clone(), target.to_owned());
        thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || accepting.accept(&listener, &target))
            .context("no thread for the proxy")?;
        Ok(link)
    }

    /// Where it is dialled.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Holds a direction, or lets go of it.
    pub fn hold(&self, way: Way, held: bool) {
        let mut state = self.state();
        match way {
            Way::Out => state.held_out = held,
            Way::Back => state.held_back = held,
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Breaks every connection.
    pub fn cut(&self) {
        let open = std::mem::take(&mut self.state().open);
        for stream in open.values().flatten() {
            let _ = stream.shutdown(Shutdown::Both); // It may be broken already.
        }
    }

    /// Ends the link: its connections break, and no more are taken.
    pub fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
        self.cut();
        let _ = TcpStream::connect(&self.address); // Wakes the thread that accepts.
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    /// Waits until bytes may pass; false if the link is over.
    fn may_pass(&self, way: Way) -> bool {
        let held = |state: &mut LinkState| {
            let held = if way == Way::Out { state.held_out } else { state.held_back };
            held && !state.over
        };
        let state = self.changed.wait_while(self.state(), held);
        !state.unwrap_or_else(|broken| broken.into_inner()).over
    }

    fn accept(self: &Arc<ProxyLink>, listener: &TcpListener, target: &str) {
        for caller in listener.incoming() {
            if self.state().over {
                return;
            }
            let Ok(caller) = caller else { continue };
            let (link, target) = (self.clone(), target.to_owned());
            let carry = move || link.carry(caller, &target);
            // Without a thread the connection is dropped, as by a machine that has no room.
            let _ = thread::Builder::new().name("proxy".to_owned()).spawn(carry);
        }
    }

    fn carry(self: &Arc<ProxyLink>, caller: TcpStream, target: &str) {
        if !self.may_pass(Way::Out) {
            return;
        }
        let Ok(called) = TcpStream::connect(target) else { return };
        let Ok((caller_again, called_again)) = twice(&caller, &called) else { return };
        let Ok(streams) = twice(&caller, &called) else { return };
        let number = {
            let mut state = self.state();
            state.opened += 1;
            let number = state.opened;
            state.open.insert(number, streams.into());
            number
        };
        let link = self.clone();
        let back = thread::Builder::new().name("proxy".to_owned());
        let back = back.spawn(move || link.pump(called_again, caller_again, Way::Back));
        self.pump(caller, called, Way::Out);
        if let Ok(back) = back {
            let _ = back.join();
        }
        self.state().open.remove(&number);
    }

    /// Carries bytes one way until the stream ends, which is carried too.
    fn pump(&self, mut from: TcpStream, mut to: TcpStream, way: Way) {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = from.read(&mut piece).unwrap_or(0);
            if !self.may_pass(way) || count == 0 || to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        let _ = from.shutdown(Shutdown::Read);
    }
}

fn twice(one: &TcpStream, other: &TcpStream) -> std::io::Result<(TcpStream, TcpStream)> {
    for stream in [one, other] {
        stream.set_nodelay(true)?;
    }
    Ok((one.try_clone()?, other.try_clone()?))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Whoever says something hears it back.
    fn echo() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut again = stream.try_clone().unwrap();
                thread::spawn(move || std::io::copy(&mut stream, &mut again));
            }
        });
        address
    }

    fn write_word(stream: &mut TcpStream, word: &[u8; 4]) {
        stream.write_all(word).unwrap();
    }

    fn receive(stream: &mut TcpStream) -> Option<[u8; 4]> {
        let mut word = [0; 4];
        stream.read_exact(&mut word).ok().map(|()| word)
    }

    #[test]
    fn held_bytes_arrive_when_the_link_heals_and_a_cut_breaks_it() {
        let link = ProxyLink::to(&echo()).unwrap();
        let mut stream = TcpStream::connect(link.address()).unwrap();
        write_word(&mut stream, b"one.");
        assert_eq!(receive(&mut stream), Some(*b"one."));
        for way in [Way::Out, Way::Back] {
            link.hold(way, true);
            write_word(&mut stream, b"two.");
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            assert_eq!(receive(&mut stream), None);
            link.hold(way, false);
            stream.set_read_timeout(None).unwrap();
            assert_eq!(receive(&mut stream), Some(*b"two."));
        }
        link.cut();
        assert_eq!(receive(&mut stream), None);
        let mut again = TcpStream::connect(link.address()).unwrap();
        write_word(&mut again, b"last");
        assert_eq!(receive(&mut again), Some(*b"last"));
        link.end();
        assert_eq!(receive(&mut again), None);
    }
}
