//! The life of the server: settings, files, port, engine, requests, end.

use super::access;
use super::api::{self, ApiError, ApiOptions, ApiState};
use super::auth::{self, Keys};
use super::config::{Flags, Wanted};
use super::limits::{self, Bodies};
use super::listen::{self, Connections};
use super::origin::{self, Neighbours};
use super::plan::Plan;
use super::{fault, greeting, news, page};
use crate::failure::Failure;
use crate::logging;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};
use llama_spec::supervise::Supervisor;
use std::any::Any;
use std::io::{self, Write as _};
use tokio::runtime::Runtime;
use tokio::signal;
use tokio::sync::oneshot;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{self, CorsLayer};

/// Serves until a signal comes, or writes the settings if those are wanted.
///
/// # Errors
/// What prevents it: settings, files, the port, or an engine that does not work when it is tried.
pub fn run(wanted: Wanted) -> Result<(), Failure> {
    let flags = match wanted {
        Wanted::Serve(flags) => flags,
        Wanted::Print(text) => return io::stdout().write_all(text.as_bytes()).map_err(Failure::output),
    };
    flags.color.apply();
    fault::announce(flags.inject_fault)?;
    logging::serve(flags.log_format, flags.verbose)?;
    let keys = Keys::new(&flags)?;
    let cors = cors(&flags.cors_origin)?;
    let plan = Plan::new(&flags)?;
    let runtime = Runtime::new().map_err(|why| Failure::Other(format!("cannot start threads: {why}")))?;
    let served = runtime.block_on(serve(&flags, plan, keys, cors));
    // Whatever still runs is not waited for.
    runtime.shutdown_background();
    served
}

async fn serve(flags: &Flags, plan: Plan, keys: Keys, cors: Option<CorsLayer>) -> Result<(), Failure> {
    let addresses = listen::addresses(&flags.host, flags.port).await?;
    auth::require_key_in_public(&addresses, &keys, flags.allow_public_without_key)?;
    let mut signals = Signals::new().map_err(|why| Failure::Other(format!("cannot handle signals: {why}")))?;
    let listener = listen::bind(&addresses).await?;
    let address = listener.local_addr().map_err(|why| Failure::Other(format!("no address: {why}")))?;
    greeting::plan(flags, &plan);

    let supervisor = Supervisor::builder(plan.load).patience(flags.patience);
    let supervisor = if flags.no_supervise { supervisor.in_process() } else { supervisor }.start()?;
    let neighbours = Neighbours::new(&addresses, &keys, &flags.cors_origin);
    let router = router(flags, supervisor.clone(), &keys, plan.name, cors);
    let router = match neighbours {
        Some(neighbours) => router.layer(middleware::from_fn_with_state(neighbours, origin::check)),
        None => router,
    };
    let router = router.layer(CatchPanicLayer::custom(panicked)).layer(middleware::from_fn(access::log));
    let (close, closed) = oneshot::channel::<()>();
    let end = async move {
        // It also ends when nobody can send any more.
        let _ = closed.await;
    };
    // From here on clients can ask how far it is.
    let server = tokio::spawn(listen::serve(listener, router, Connections::new(flags), end));
    greeting::listening(flags, address);
    let news = tokio::spawn(news::tell(supervisor.clone()));
    tokio::select! {
        loaded = news::first_load(flags, &supervisor) => {
            loaded?;
            greeting::ready(flags, address, !keys.is_empty());
            signals.next().await;
        }
        () = signals.next() => {}
    }

    greeting::stopping(flags);
    news.abort();
    tokio::select! {
        () = supervisor.shutdown(flags.grace) => {}
        () = signals.next() => return Ok(()),
    }
    drop(close);
    tokio::select! {
        // A panic there was told when it happened.
        _ = server => {}
        () = signals.next() => {}
    }
    Ok(())
}

/// Everything that is served: the interface behind what looks at a request before it does, and the page.
fn router(flags: &Flags, supervisor: Supervisor, keys: &Keys, name: String, cors: Option<CorsLayer>) -> Router {
    let options = ApiOptions {
        alias: Some(name),
        admin: !keys.is_empty() || flags.allow_admin_without_key,
        supervised: !flags.no_supervise,
        prompt_bytes: (flags.max_prompt as usize) << 10,
        ..ApiOptions::default()
    };
    let router = api::router(ApiState::new(supervisor, options))
        // What was read is within the limit.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Bodies::new(flags), limits::read_body))
        .layer(middleware::from_fn_with_state(keys.clone(), auth::check))
        .merge(page::routes());
    match cors {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

/// A panic ends a request and not the server.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    let message = "something failed that should not have; the log of the server says what";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
}

/// Lets pages of these origins use the server, if there are any.
fn cors(origins: &[String]) -> Result<Option<CorsLayer>, Failure> {
    if origins.is_empty() {
        return Ok(None);
    }
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(cors::AllowHeaders::mirror_request())
        .expose_headers([header::RETRY_AFTER]);
    if origins.iter().any(|origin| origin == "*") {
        return Ok(Some(layer.allow_origin(cors::Any)));
    }
    let read = |origin: &String| {
        let host = origin.split_once("://").filter(|(scheme, host)| !scheme.is_empty() && !host.is_empty());
        let value = host.filter(|(_, host)| !host.contains('/')).and_then(|_| HeaderValue::from_str(origin).ok());
        value.ok_or_else(|| {
            Failure::Usage(format!("--cors-origin {origin}: expected an origin such as https://example.org, or *"))
        })
    };
    let origins = origins.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(layer.allow_origin(origins)))
}

/// The signals that ask a server to end.
struct Signals {
    #[cfg(unix)]
    terminate: signal::unix::Signal,
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        // Where it cannot be waited for, the system ends the program.
        if signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
