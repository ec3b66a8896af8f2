//! Keys: where they come from, and holding requests against them.

use super::api::ApiError;
use super::config::Flags;
use super::tenant::Tenant;
use crate::failure::Failure;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};
use subtle::{Choice, ConstantTimeEq};

/// The longest key in bytes. All are compared as if they were so long.
const LONGEST: usize = 256;

/// The keys that clients may give.
#[derive(Clone, Default)]
pub struct Keys(Arc<[Key]>);

/// A key, padded.
#[derive(Clone, Copy)]
struct Key {
    bytes: [u8; LONGEST],
    length: u64,
}

impl Key {
    fn new(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self { bytes, length: key.len() as u64 })
    }

    fn is(&self, other: &Self) -> Choice {
        self.bytes.ct_eq(&other.bytes) & self.length.ct_eq(&other.length)
    }
}

impl Keys {
    /// Those of the flags and of their file.
    ///
    /// # Errors
    /// When the file cannot be read or has no key, or what is given can be no key.
    pub fn new(flags: &Flags) -> Result<Self, Failure> {
        let mut keys = Vec::new();
        for key in &flags.api_key {
            keys.push(key_of(key).map_err(|why| Failure::Usage(format!("--api-key or LLAMA_SPEC_API_KEY: {why}")))?);
        }
        if let Some(path) = &flags.api_key_file {
            keys.extend(of_file(path)?);
        }
        Ok(Self(keys.into()))
    }

    /// Whether none is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For whom the request is, if it has one of them or none is needed. The time this takes says nothing of the keys.
    pub fn admit(&self, headers: &HeaderMap) -> Option<Tenant> {
        if self.is_empty() {
            return Some(Tenant::default());
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.as_bytes().split_at_checked("bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
        });
        let given = bearer.or_else(|| headers.get("x-api-key").map(|value| value.as_bytes()));
        let given = given?;
        let key = Key::new(given)?;
        let found = self.0.iter().fold(Choice::from(0), |found, known| found | known.is(&key));
        bool::from(found).then(|| Tenant::of_key(given))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("count", &self.0.len()).finish_non_exhaustive()
    }
}

/// Never with the key in the message: it is written to a log.
fn key_of(text: &str) -> Result<Key, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let key = Key::new(text.as_bytes()).filter(|_| plain);
    key.ok_or_else(|| format!("a key has 1 to {LONGEST} letters, digits and signs of ASCII, and no spaces"))
}

fn of_file(path: &Path) -> Result<Vec<Key>, Failure> {
    let name = path.display();
    let read = |source| Failure::Input { from: name.to_string(), source };
    let text = fs::read_to_string(path).map_err(read)?;
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys = lines
        .map(|(index, line)| key_of(line).map_err(|why| Failure::Usage(format!("{name} line {}: {why}", index + 1))));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    match keys.is_empty() {
        true => Err(Failure::Usage(format!("{name} has no key"))),
        false => Ok(keys),
    }
}

/// Refuses to serve anybody who can reach these addresses.
///
/// # Errors
/// When one of them is not of this machine only, there is no key, and that was not allowed.
pub fn require_key_in_public(addresses: &[SocketAddr], keys: &Keys, allowed: bool) -> Result<(), Failure> {
    let public = addresses.iter().find(|address| !address.ip().to_canonical().is_loopback());
    match public {
        Some(address) if keys.is_empty() && !allowed => Err(Failure::Usage(format!(
            "other machines can reach {}, and no key is set: give --api-key-file FILE, or --allow-public-without-key",
            address.ip()
        ))),
        _ => Ok(()),
    }
}

/// Lets requests pass that have a key, and those that need none: whether the server is alive and ready.
pub async fn check(State(keys): State<Keys>, mut request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/health" | "/v1/health" | "/ready");
    match keys.admit(request.headers()) {
        Some(tenant) => _ = request.extensions_mut().insert(tenant),
        None if open => {}
        None => return ApiError::unauthorized().into_response(),
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Keys {
        Keys(keys.iter().map(|key| key_of(key).unwrap()).collect())
    }

    fn admits(keys: &Keys, headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        keys.admit(&map).is_some()
    }

    #[test]
    fn each_key_is_a_tenant_of_its_own() {
        let keys = keys(&["first", "second"]);
        let tenant = |name: &'static str, value: &str| {
            let mut map = HeaderMap::new();
            map.append(name, value.parse().unwrap());
            (keys.admit(&map).unwrap(), Keys::default().admit(&map).unwrap())
        };
        let (first, nobody) = tenant("authorization", "Bearer  first ");
        assert_eq!(tenant("x-api-key", "first"), (first.clone(), nobody.clone()));
        assert_ne!(tenant("x-api-key", "second").0, first);
        assert_eq!((first.name().is_some(), nobody), (true, Tenant::default()));
    }

    #[test]
    fn any_of_the_keys_opens() {
        let keys = keys(&["first", "second"]);
        for key in ["first", "second"] {
            assert!(admits(&keys, &[("x-api-key", key)]));
            for scheme in ["Bearer", "bearer", "BEARER"] {
                assert!(admits(&keys, &[("authorization", &format!("{scheme} {key}"))]));
            }
        }
    }

    #[test]
    fn nothing_else_does() {
        let keys = keys(&["first", "second"]);
        let long = "f".repeat(LONGEST + 1);
        for wrong in ["", "firs", "firstt", "first\tsecond", "First", "first,second", &long] {
            assert!(!admits(&keys, &[("authorization", &format!("Bearer {wrong}"))]), "{wrong}");
            assert!(!admits(&keys, &[("x-api-key", wrong)]), "{wrong}");
        }
        assert!(!admits(&keys, &[]));
        assert!(!admits(&keys, &[("authorization", "first")]));
        assert!(!admits(&keys, &[("authorization", "Basic first")]));
        assert!(!admits(&keys, &[("authorization", "Bearer")]));
    }

    #[test]
    fn without_keys_everybody_may() {
        assert!(admits(&Keys::default(), &[]));
        assert!(admits(&Keys::default(), &[("authorization", "Bearer anything")]));
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_named() {
        for wrong in ["", "two words", "gr\u{fc}n", "line\n", &"x".repeat(LONGEST + 1)] {
            let why = key_of(wrong).err().unwrap();
            assert!(wrong.is_empty() || !why.contains(wrong), "{why}");
        }
    }

    #[test]
    fn addresses_of_other_machines_need_a_key() {
        let none = Keys::default();
        for public in ["0.0.0.0:80", "[::]:80", "192.168.1.2:80", "[::ffff:10.0.0.1]:80"] {
            let addresses = ["127.0.0.1:80".parse().unwrap(), public.parse().unwrap()];
            let refused = require_key_in_public(&addresses, &none, false).unwrap_err();
            assert!(refused.status() == 2 && refused.to_string().contains("--api-key-file"), "{refused}");
            require_key_in_public(&addresses, &none, true).unwrap();
            require_key_in_public(&addresses, &keys(&["k"]), false).unwrap();
        }
        for own in ["127.0.0.1:80", "127.1.2.3:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            require_key_in_public(&[own.parse().unwrap()], &none, false).unwrap();
        }
    }
}
