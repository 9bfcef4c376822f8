//! A web service that keeps its users' sessions in Muesli, with the HTTP framework axum.
//!
//! `cargo run -p muesli-examples --bin web_sessions` serves a few requests to itself and ends;
//! with an address (`-- 127.0.0.1:8080`) it stays, and another terminal can ask:
//!
//! ```console
//! $ curl -X POST http://127.0.0.1:8080/login/ann
//! 4f1c…
//! $ curl -H 'authorization: Bearer 4f1c…' http://127.0.0.1:8080/me
//! ann, 1 visits
//! ```

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use muesli::{Db, Error, KeyRange, Named, Options, SpaceOptions, TypedSpace};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// What is kept of a session. `named` rows carry the names of their fields, so that a later
/// version of the program may add some.
#[derive(Serialize, Deserialize)]
struct Session {
    user: String,
    visits: u64,
    /// When it ends, in seconds since 1970.
    until: u64,
}

/// What handlers share: the handle of the database is cheap to clone, and works on any executor.
#[derive(Clone)]
struct App {
    db: Db,
    sessions: TypedSpace<String, Session, Named>,
}

/// Errors as answers: what may go well later is 503, and everything else is our own mistake.
fn failed(error: Error) -> (StatusCode, String) {
    let code = match error.is_retryable() {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (code, error.to_string())
}

type Answer = Result<String, (StatusCode, String)>;

async fn login(State(app): State<App>, Path(user): Path<String>) -> Answer {
    // A real service would look at a password, and draw the token from a secure source.
    let token = format!("{:032x}", fastrand::u128(..));
    let until = now() + LIFETIME.as_secs();
    let (sessions, key) = (app.sessions, token.clone());
    let stored = app.db.transact(async move |tx| {
        sessions.put(tx, &key, &Session { user: user.clone(), visits: 0, until }).await
    });
    stored.await.map_err(failed)?;
    Ok(token)
}

/// Reads the session and counts the visit, in one transaction.
async fn me(State(app): State<App>, headers: HeaderMap) -> Answer {
    let (sessions, token) = (app.sessions, bearer(&headers)?);
    let visit = app.db.transact(async move |tx| {
        let Some(session) = sessions.get(tx, &token).await? else { return Ok(None) };
        if session.until < now() {
            sessions.delete(tx, &token).await?;
            return Ok(None);
        }
        let session = Session { visits: session.visits + 1, ..session };
        sessions.put(tx, &token, &session).await?;
        Ok(Some(session))
    });
    let session = visit.await.map_err(failed)?.ok_or_else(unknown)?;
    Ok(format!("{}, {} visits", session.user, session.visits))
}

async fn logout(State(app): State<App>, headers: HeaderMap) -> Answer {
    let (sessions, token) = (app.sessions, bearer(&headers)?);
    let gone = app.db.transact(async move |tx| sessions.delete(tx, &token).await);
    gone.await.map_err(failed)?;
    Ok("goodbye".to_owned())
}

/// How many sessions there are: a read-only transaction over all keys.
async fn count(State(app): State<App>) -> Answer {
    let sessions = app.sessions;
    let db = app.db.read_only();
    let all = db.transact(async move |tx| sessions.range(tx, KeyRange::all()).await);
    Ok(all.await.map_err(failed)?.len().to_string())
}

fn bearer(headers: &HeaderMap) -> Result<String, (StatusCode, String)> {
    let value = headers.get("authorization").and_then(|value| value.to_str().ok());
    value.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned).ok_or_else(unknown)
}

fn unknown() -> (StatusCode, String) {
    (StatusCode::UNAUTHORIZED, "log in first".to_owned())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options { loops: 2, repositories: 2, ..Options::default() };
    let db = Db::open(options.space("sessions", SpaceOptions::default()))?;
    let sessions = db.space("sessions")?.named();
    let routes = Router::new()
        .route("/login/{user}", post(login))
        .route("/logout", post(logout))
        .route("/me", get(me))
        .route("/sessions", get(count))
        .with_state(App { db, sessions });
    let given = std::env::args().nth(1);
    let listener = TcpListener::bind(given.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    println!("listening on http://{address}");
    let serving = tokio::spawn(async move { axum::serve(listener, routes).await });
    if given.is_some() {
        return Ok(serving.await??);
    }
    let token = ask(address, "POST /login/ann", None).await?;
    assert_eq!(ask(address, "GET /me", Some(&token)).await?, "ann, 1 visits");
    assert_eq!(ask(address, "GET /me", Some(&token)).await?, "ann, 2 visits");
    assert_eq!(ask(address, "GET /sessions", None).await?, "1");
    assert_eq!(ask(address, "POST /logout", Some(&token)).await?, "goodbye");
    assert_eq!(ask(address, "GET /me", Some(&token)).await?, "log in first");
    println!("ann logged in, came twice, and logged out");
    Ok(())
}

/// A request as a browser would send it; gives the answer's body.
async fn ask(to: SocketAddr, what: &str, token: Option<&str>) -> std::io::Result<String> {
    let token = token.map_or_else(String::new, |it| format!("authorization: Bearer {it}\r\n"));
    let request = format!("{what} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{token}\r\n");
    let (mut stream, mut answer) = (TcpStream::connect(to).await?, String::new());
    stream.write_all(request.as_bytes()).await?;
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}
