//! For whom a request is: under this the texts of a client are kept, so that no other is answered faster because of them.

use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Clients with the same key, or all of them where there are no keys. An extension of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant(Option<Arc<str>>);

impl Tenant {
    /// Those with this key. The name stands in the file of the texts: it is the same for a later server, and the key cannot be
    /// had from it.
    pub(super) fn of_key(key: &[u8]) -> Self {
        let sum = Sha256::new().chain_update(b"llama-spec tenant\0").chain_update(key).finalize();
        let name: String = sum.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self(Some(name.into()))
    }

    /// The name, where there are several.
    pub(super) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::Tenant;

    #[test]
    fn a_key_has_one_name_from_which_it_cannot_be_read() {
        let names = ["key", "kez", "ke", ""].map(|key| Tenant::of_key(key.as_bytes()).name().unwrap().to_owned());
        assert_eq!(names[0], Tenant::of_key(b"key").name().unwrap());
        for (place, name) in names.iter().enumerate() {
            assert!(name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
            assert!(!names[..place].contains(name), "{names:?}");
        }
        assert_eq!(Tenant::default().name(), None);
    }
}
