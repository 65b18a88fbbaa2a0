//! Address tokens: what a client brings that has been at its server before, from the address that it has now.
//!
//! A server that sees one knows that the client is where it says it is, and may answer its first datagram with more than three
//! times its bytes. quinn reads the token and decides; it is made here, as the earlier connection would have brought it in a
//! NEW_TOKEN frame, because a connection of the simulator has no earlier one.
//!
//! **Source.** RFC 9000 8.1 (the limit), 8.1.3 (tokens of earlier connections); the form is that of quinn-proto 0.11.19
//! (`token.rs`): kind, address and time, sealed with the server's key, then the nonce.
//! **Deviations.** Servers send no NEW_TOKEN frames (about 60 bytes after the handshake), and each token is used once without
//! a list of those that were used.

use super::session::Seeded;
use bytes::Bytes;
use fleetfoot_core::rng::Rng;
use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::{TokenLog, TokenReuseError, TokenStore, ValidationTokenConfig};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration as Span, SystemTime};

/// The token that a server with this key has given to a client at `address`. `rng` draws the nonce.
pub(super) fn of(address: IpAddr, key: Seeded, rng: &mut Rng) -> Bytes {
    let mut token = vec![VALIDATION];
    match address {
        IpAddr::V4(address) => {
            token.push(0);
            token.extend(address.octets());
        }
        IpAddr::V6(address) => {
            token.push(1);
            token.extend(address.octets());
        }
    }
    // The time of issue, in seconds: time of day does not pass here.
    token.extend([0; 8]);
    let mut nonce = [0; 16];
    super::session::fill(rng, &mut nonce);
    let sealed = key.aead_from_hkdf(&nonce).seal(&mut token, &[]);
    debug_assert!(sealed.is_ok(), "it always succeeds");
    token.extend(nonce);
    token.into()
}

/// How servers treat tokens: each that opens with their key is good, and they send none.
pub(super) fn accepted() -> ValidationTokenConfig {
    let mut config = ValidationTokenConfig::default();
    config.log(Arc::new(Once)).sent(0);
    config
}

/// What a client knows: the token of its server, if it has one.
pub(super) struct Store(Mutex<Option<Bytes>>);

impl Store {
    pub(super) fn new(token: Option<Bytes>) -> Store {
        Store(Mutex::new(token))
    }
}

impl TokenStore for Store {
    fn insert(&self, _server_name: &str, _token: Bytes) {}

    fn take(&self, _server_name: &str) -> Option<Bytes> {
        self.0.lock().ok()?.take()
    }
}

/// No token is ever used twice: each is made for one connection.
struct Once;

impl TokenLog for Once {
    fn check_and_insert(
        &self,
        _nonce: u128,
        _issued: SystemTime,
        _lifetime: Span,
    ) -> Result<(), TokenReuseError> {
        Ok(())
    }
}

/// Kind of a token that came in a NEW_TOKEN frame.
const VALIDATION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_token_opens_with_the_key_of_its_server_alone() {
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
        let token = of(address, Seeded(5), &mut Rng::from_seed(1));
        let opened = |key: Seeded| {
            let (sealed, nonce) = token.split_at(token.len() - 16);
            let mut sealed = sealed.to_vec();
            let opened = key.aead_from_hkdf(nonce).open(&mut sealed, &[]).ok()?.to_vec();
            Some(opened)
        };
        // Kind, IPv4, address, second 0.
        assert_eq!(
            opened(Seeded(5)),
            Some(vec![1, 0, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0])
        );
        assert_eq!(opened(Seeded(6)), None);
        assert_eq!(token, of(address, Seeded(5), &mut Rng::from_seed(1)));
    }
}
