//! Pages of strangers are kept out where no key does it. A browser on this machine sends them on: from a name of theirs that
//! suddenly means this machine (DNS rebinding), or to this machine's own name, and then it says from which origin.

use super::api::ApiError;
use super::auth::Keys;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What a server that serves this machine alone, without a key, holds requests against.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// Origins whose pages may use it; `*` is any.
    origins: Arc<[String]>,
}

impl Neighbours {
    /// Nothing where a key is asked for, or where other machines may come: under which names is not known here.
    pub fn new(addresses: &[SocketAddr], keys: &Keys, origins: &[String]) -> Option<Self> {
        let local = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
        (local && keys.is_empty()).then(|| Self { origins: origins.into() })
    }

    /// # Errors
    /// Why the request is not answered.
    fn admit(&self, headers: &HeaderMap, authority: Option<&Authority>) -> Result<(), ApiError> {
        let refuse = |code, message: &str| Err(ApiError::new(StatusCode::FORBIDDEN, code, message));
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let mut hosts: Vec<String> = headers.get_all(header::HOST).iter().map(text).collect();
        hosts.extend(authority.map(Authority::to_string));
        // Who names no host is no browser.
        if !hosts.iter().all(|host| is_this_machine(host)) {
            let message = "this server has no key and answers only for localhost: ask for http://localhost or \
                           http://127.0.0.1, or start it with --api-key-file";
            return refuse("foreign_host", message);
        }
        let own = |origin: &str| {
            let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            place.is_some_and(|place| hosts.iter().any(|host| host.eq_ignore_ascii_case(place)))
        };
        let named = |origin: &str| self.origins.iter().any(|known| known == "*" || known.eq_ignore_ascii_case(origin));
        match headers.get_all(header::ORIGIN).iter().map(text).find(|origin| !own(origin) && !named(origin)) {
            Some(_) => {
                let message = "pages of this origin may not use the server: name it with --cors-origin if they are to";
                refuse("foreign_origin", message)
            }
            None => Ok(()),
        }
    }
}

/// Whether a host, with a port or without, can only be this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        // No name server is asked for it.
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// Lets requests pass that do not come from pages of strangers.
pub async fn check(State(neighbours): State<Neighbours>, request: Request, next: Next) -> Response {
    match neighbours.admit(request.headers(), request.uri().authority()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(origins: &[&str], headers: &[(&'static str, &str)]) -> Option<String> {
        let origins: Vec<String> = origins.iter().map(|origin| (*origin).to_owned()).collect();
        let neighbours = Neighbours::new(&["127.0.0.1:80".parse().unwrap()], &Keys::default(), &origins).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let code = |error: ApiError| error.body()["error"]["code"].as_str().unwrap().to_owned();
        neighbours.admit(&map, None).err().map(code)
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for own in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[::ffff:127.0.0.1]", "x.localhost"]
        {
            assert_eq!(refused(&[], &[("host", own)]), None, "{own}");
        }
        assert_eq!(refused(&[], &[]), None);
        for other in ["evil.example", "localhost.evil.example:80", "10.0.0.1", "0.0.0.0", "127.0.0.1.nip.io", "", "a b"]
        {
            assert_eq!(refused(&[], &[("host", other)]).as_deref(), Some("foreign_host"), "{other}");
        }
        assert!(refused(&["*"], &[("host", "localhost"), ("host", "evil.example")]).is_some());
    }

    #[test]
    fn only_named_origins_are_answered_beside_its_own() {
        let from = |origins: &[&str], origin: &str| refused(origins, &[("host", "localhost:8080"), ("origin", origin)]);
        for own in ["http://localhost:8080", "https://localhost:8080"] {
            assert_eq!(from(&[], own), None, "{own}");
        }
        for other in ["http://evil.example", "http://localhost:3000", "http://127.0.0.1:8080", "null", "localhost:8080"]
        {
            assert_eq!(from(&["https://named.example"], other).as_deref(), Some("foreign_origin"), "{other}");
            assert_eq!(from(&["*"], other), None, "{other}");
        }
        assert_eq!(from(&["https://named.example"], "https://named.example"), None);
    }

    #[test]
    fn where_a_key_is_asked_for_or_others_may_come_names_do_not_matter() {
        let none = Keys::default();
        assert!(Neighbours::new(&["0.0.0.0:80".parse().unwrap()], &none, &[]).is_none());
        assert!(Neighbours::new(&["[::1]:80".parse().unwrap()], &none, &[]).is_some());
    }
}
