//! A client of a few lines, that shows replies as text.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use muesli::{Db, Options};
use muesli_resp::{RespListener, RespOptions, RespServer};

/// A server with a database of its own, in memory.
pub struct Server {
    resp: Option<RespServer>,
    db: Db,
}

impl Server {
    pub fn start() -> Server {
        Server::with(Options::default(), &RespOptions::default())
    }

    pub fn with(options: Options, resp: &RespOptions) -> Server {
        Server::of(Db::open(options).unwrap(), resp)
    }

    /// A server of what is in a database.
    pub fn serving(db: Db) -> Server {
        Server::of(db, &RespOptions::default())
    }

    fn of(db: Db, resp: &RespOptions) -> Server {
        let listener = RespListener::bind("127.0.0.1:0", resp).unwrap();
        let resp = RespServer::start(&db, listener, resp).map_err(|it| it.0).unwrap();
        Server { resp: Some(resp), db }
    }

    pub fn address(&self) -> SocketAddr {
        self.resp.as_ref().unwrap().address()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(resp) = self.resp.take() {
            let stopped = resp.stop();
            if !std::thread::panicking() {
                stopped.unwrap();
            }
        }
        self.db.close();
    }
}

pub struct Client {
    socket: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { socket: BufReader::new(socket) }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a command without waiting for its reply.
    pub fn begin(&mut self, command: &str) {
        self.send(command.to_owned() + "\r\n");
    }

    /// The reply to a command, as text.
    pub fn ask(&mut self, command: &str) -> String {
        self.begin(command);
        self.reply()
    }

    /// The reply to a command of these words and a last one of bytes, if that is not empty, as
    /// bytes.
    pub fn ask_bytes(&mut self, words: &[&str], last: &[u8]) -> Vec<u8> {
        let mut all: Vec<&[u8]> = words.iter().map(|it| it.as_bytes()).collect();
        all.extend((!last.is_empty()).then_some(last));
        self.begin_all(&all);
        let line = self.line().unwrap();
        let Some(length) = line.strip_prefix('$') else { return line.as_bytes()[1..].to_vec() };
        let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
        self.socket.read_exact(&mut bytes).unwrap();
        bytes.truncate(bytes.len() - 2);
        bytes
    }

    /// Sends a command of these words without waiting for its reply.
    pub fn begin_all(&mut self, words: &[&[u8]]) {
        let mut sent = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            sent.extend(format!("${}\r\n", word.len()).into_bytes());
            sent.extend([word, &b"\r\n"[..]].concat());
        }
        self.send(sent);
    }

    pub fn begin_list(&mut self, words: &[&str]) {
        self.begin_all(&words.iter().map(|it| it.as_bytes()).collect::<Vec<_>>());
    }

    /// The reply to a command of these words.
    pub fn ask_all(&mut self, words: &[&[u8]]) -> String {
        self.begin_all(words);
        self.reply()
    }

    pub fn ask_list(&mut self, words: &[&str]) -> String {
        self.begin_list(words);
        self.reply()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// Whether a reply begins within so long; `None`: nothing can be said.
    pub fn comes_within(&mut self, time: Duration) -> Option<bool> {
        let socket = self.socket.get_ref();
        socket.set_read_timeout(Some(time)).ok()?;
        let comes = socket.peek(&mut [0]).is_ok();
        socket.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        Some(comes)
    }

    fn several(&mut self, count: usize) -> String {
        (0..count).map(|_| self.reply()).collect::<Vec<_>>().join(" ")
    }

    /// The next reply: numbers and words as they are, arrays in brackets, nothing as `nil`.
    pub fn reply(&mut self) -> String {
        let Some(line) = self.line() else { return "closed".to_owned() };
        let (kind, rest) = line.split_at(1);
        let count = || rest.parse::<i64>().unwrap();
        match kind {
            "+" | ":" | "," | "-" | "(" => rest.to_owned(),
            "#" => if rest == "t" { "true" } else { "false" }.to_owned(),
            "_" => "nil".to_owned(),
            "$" | "=" | "*" if count() < 0 => "nil".to_owned(),
            "$" | "=" => {
                let mut bytes = vec![0; count() as usize + 2];
                if self.socket.read_exact(&mut bytes).is_err() {
                    return "closed".to_owned();
                }
                bytes.truncate(count() as usize);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            "*" | "~" => format!("[{}]", self.several(count() as usize)),
            ">" => format!("!{}", self.several(count() as usize)),
            "%" => format!("{{{}}}", self.several(count() as usize * 2)),
            other => panic!("a reply begins with {other}"),
        }
    }

    /// Asks the commands of a text, of which each line is `command -> reply`.
    pub fn play(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let (command, expected) = line.split_once("->").unwrap();
            let found = self.ask(command.trim());
            assert_eq!(found, expected.trim(), "{}", command.trim());
        }
    }
}
