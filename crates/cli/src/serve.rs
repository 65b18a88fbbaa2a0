//! `fleetfoot serve`: the explorer's page with the program behind it.
//!
//! It listens on this machine only unless told otherwise. A request must name a host that is an address or `localhost`, and come
//! from its own page: no other page of the browser, and no name that somebody else points at this machine, can use it. Other
//! programs of this machine can, whoever runs them, so of all files that a request names only those below the folder of FILE are
//! read, and those that FILE itself names: messages quote lines.

use crate::failure::Failure;
use crate::output::Common;
use crate::session::stop_flag;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use clap::Args;
use fleetfoot_lab::input;
use fleetfoot_lab::scenario::Scenario;
use fleetfoot_web::{MOST_CAPTURE, MOST_FILES, MOST_TEXT, call, page, parted};
use futures_util::stream::unfold;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

/// Flags of `serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scenario that the page begins with; none is the built-in home line.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The port; 0 is any that is free.
    #[arg(long, value_name = "PORT", default_value_t = 7411)]
    port: u16,
    /// The address to listen on. Whoever reaches it can use this machine's processors, and name files below the folder of FILE.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
}

/// Requests that are worked on at a time; others wait.
const AT_A_TIME: usize = 4;

/// The longest request (bytes): a scenario, what is changed in it, and the files that it names; or a capture.
const MOST_REQUEST: usize = 2 * (MOST_TEXT + MOST_FILES);
const _: () = assert!(MOST_REQUEST > MOST_TEXT + MOST_CAPTURE);

/// How often it looks whether it shall stop.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Shared {
    page: Arc<str>,
    turns: Arc<Semaphore>,
}

pub(crate) fn execute(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let given = match &arguments.file {
        None => None,
        Some(file) => {
            // A mistake is reported before a browser is opened.
            let scenario = Scenario::load(file)?;
            let text = input::text_or_reason(file, MOST_TEXT as u64).map_err(Failure::usage)?;
            Some((file, text, scenario.files()))
        }
    };
    let (folder, named) = match &given {
        Some((file, _, named)) => (Some(file.parent().unwrap_or(Path::new(""))), named.as_slice()),
        None => (None, [].as_slice()),
    };
    input::confine(folder, named)
        .map_err(|error| Failure::usage(format!("cannot read the folder of the scenario: {error}")))?;
    let given = given
        .as_ref()
        .map(|(file, text, _)| (file.display().to_string(), text.as_str()));
    let shared = Shared {
        page: page(given.as_ref().map(|(name, text)| (name.as_str(), *text))).into(),
        turns: Arc::new(Semaphore::new(AT_A_TIME)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| Failure::other(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(serve(arguments, shared, common));
    // Runs that go on end with the process.
    runtime.shutdown_background();
    served
}

async fn serve(arguments: &Arguments, shared: Shared, common: &Common) -> Result<(), Failure> {
    let wanted = SocketAddr::new(arguments.listen, arguments.port);
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        Failure::usage(format!(
            "cannot listen on {wanted}: {error}; --port 0 takes any port that is free"
        ))
    })?;
    let address = listener.local_addr().unwrap_or(wanted);
    let place = format!("http://{address}/");
    if common.json {
        crate::output::print(&format!("{}\n", serde_json::json!({ "address": place })))?;
    } else {
        common.say(&format!("The explorer is at {place} until Ctrl-C."));
    }
    let stop = stop_flag();
    let router = Router::new()
        .route("/", get(front))
        .route("/api/call", post(answer))
        .layer(DefaultBodyLimit::max(MOST_REQUEST))
        .with_state(shared);
    let server = axum::serve(listener, router);
    tokio::select! {
        ended = server.into_future() => ended.map_err(|error| Failure::other(format!("the server ended: {error}"))),
        () = stopped(&stop) => Ok(()),
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

async fn front(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refused(&headers) {
        return refusal;
    }
    let mut response = Html(shared.page.to_string()).into_response();
    let own = response.headers_mut();
    own.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    own.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    own.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Lines of JSON: `{"progress": ...}` any number of times, then the answer.
async fn answer(State(shared): State<Shared>, headers: HeaderMap, message: Bytes) -> Response {
    if let Some(refusal) = refused(&headers) {
        return refusal;
    }
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "application/json is wanted\n").into_response();
    }
    let Ok(turn) = Arc::clone(&shared.turns).acquire_owned().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let asked = Arc::clone(&stop);
    tokio::task::spawn_blocking(move || {
        let told = sender.clone();
        let (request, attached) = parted(&message);
        let line = call(&request, attached, &asked, &|progress| {
            // Nobody listens any more once the page has gone.
            let _ = told.send(format!("{}\n", serde_json::json!({ "progress": progress })));
        });
        let _ = sender.send(format!("{line}\n"));
        drop(turn);
    });
    let lines = unfold((receiver, Gone(stop)), |(mut receiver, gone)| async move {
        let line = receiver.recv().await?;
        Some((Ok::<_, Infallible>(line), (receiver, gone)))
    });
    let mut response = Body::from_stream(lines).into_response();
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Ends the work when the page has gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Why a request is not answered: it names a host that may be anybody's, or comes from another page.
fn refused(headers: &HeaderMap) -> Option<Response> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let host = text(header::HOST).unwrap_or("");
    if !is_own(host) {
        let message = "this host name is not answered: use an address or localhost\n";
        return Some((StatusCode::FORBIDDEN, message).into_response());
    }
    let origin = text(header::ORIGIN)?;
    (origin != format!("http://{host}"))
        .then(|| (StatusCode::FORBIDDEN, "only the page itself is answered\n").into_response())
}

/// Whether a name with or without a port is an address or `localhost`, which nobody else can point elsewhere.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn only_addresses_and_localhost_are_answered() {
        for own in [
            "localhost",
            "localhost:7411",
            "127.0.0.1:1",
            "[::1]:7411",
            "192.168.1.7:80",
            "[::1]",
        ] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "",
            "example.org",
            "example.org:7411",
            "localhost.example.org",
            "127.0.0.1.example.org",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
