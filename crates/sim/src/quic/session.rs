//! The handshake and packet protection of QUIC connections in the simulator: messages of the sizes that TLS 1.3 has, and no
//! secrets.
//!
//! A [`crypto::Session`] in place of TLS, because TLS cannot be seeded: the key exchange of both cryptographic libraries that
//! rustls can use draws from the operating system and offers no other source, and a library that could be seeded would be a
//! cipher at full cost for nothing, since nobody listens. What the network sees of TLS is what is kept: who speaks when, at
//! which encryption level, in messages of which sizes. What is inside is filler, so the same seed gives the same bytes.
//!
//! **Source.** RFC 9001 (messages in CRYPTO frames, key changes, 16-byte tags); the sizes of messages are those of [`crate::tls`].
//! **Deviations.** No key update and no client certificates. A certificate chain has the length that the scenario says, and is
//! not compressed. A packet's tag says which key it was made with and its number, and covers nothing else: links discard
//! damaged packets before they arrive. Headers are not masked.

use crate::tls::{
    CERTIFICATE_LISTS, CERTIFICATE_VERIFY, CLIENT_HELLO, ENCRYPTED_EXTENSIONS, FINISHED, HEADER,
    NEW_SESSION_TICKET, PRE_SHARED_KEY, SERVER_HELLO, SERVER_PSK, TAG, TICKETS,
};
use bytes::BytesMut;
use fleetfoot_core::rng::Rng;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

/// What both ends of a group's connections agree on.
#[derive(Debug)]
pub(super) struct Agreement {
    /// The client has a session ticket: the server sends no certificates.
    pub(super) resumed: bool,
    /// The transport parameters of the server that the client remembers with the ticket, encoded: it sends data at once.
    pub(super) remembered: Option<Vec<u8>>,
    /// Bytes of the server's certificate chain.
    pub(super) certificate_chain: usize,
}

impl crypto::ClientConfig for Agreement {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(Box::new(Session::new(self, Side::Client, params)))
    }
}

impl crypto::ServerConfig for Agreement {
    fn initial_keys(&self, _version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Level::Initial, fold(dst_cid), Side::Server))
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        Box::new(Session::new(self, Side::Server, params))
    }
}

/// One end of a handshake.
struct Session {
    agreement: Arc<Agreement>,
    side: Side,
    /// Our transport parameters, encoded.
    own: Vec<u8>,
    /// The peer's, once its first message is here.
    peer: Option<Vec<u8>>,
    /// What has come of a message that is not complete.
    incoming: Vec<u8>,
    /// What is to be written, and the keys that follow it.
    outgoing: Vec<(Vec<u8>, Option<Level>)>,
    /// The client sends data with its first message.
    early: bool,
    handshaking: bool,
}

impl Session {
    fn new(agreement: Arc<Agreement>, side: Side, params: &TransportParameters) -> Session {
        let mut own = Vec::new();
        params.write(&mut own);
        let early = side.is_client() && agreement.remembered.is_some();
        let mut session = Session {
            agreement,
            side,
            own,
            peer: None,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            early,
            handshaking: true,
        };
        if side.is_client() {
            let ticket = if session.agreement.resumed {
                PRE_SHARED_KEY
            } else {
                0
            };
            let hello = session.message(Message::ClientHello, CLIENT_HELLO + PARAMETERS_HEAD + ticket);
            session.outgoing.push((hello, None));
        }
        session
    }

    /// A message of this many bytes beside the transport parameters, which some carry.
    fn message(&self, message: Message, bytes: usize) -> Vec<u8> {
        let carried: &[u8] = match message {
            Message::ClientHello | Message::EncryptedExtensions => &self.own,
            Message::ServerHello
            | Message::Certificate
            | Message::CertificateVerify
            | Message::Finished
            | Message::NewSessionTicket => &[],
        };
        let mut written = vec![0; HEADER + bytes + carried.len()];
        let length = (bytes + carried.len()) as u32;
        written[0] = message as u8;
        written[1..HEADER].copy_from_slice(&length.to_be_bytes()[1..]);
        if !carried.is_empty() {
            written[HEADER] = u8::from(self.early);
            let at = HEADER + 3;
            written[HEADER + 1..at].copy_from_slice(&(carried.len() as u16).to_be_bytes());
            written[at..at + carried.len()].copy_from_slice(carried);
        }
        written
    }

    /// The transport parameters in the body of a message, and whether early data goes with it.
    fn take_parameters(&mut self, body: &[u8]) {
        self.early &= self.side.is_client();
        self.early |= self.side.is_server() && body[0] == 1;
        let length = usize::from(u16::from_be_bytes([body[1], body[2]]));
        self.peer = Some(body[3..3 + length].to_vec());
    }

    fn take(&mut self, message: u8, body: &[u8]) {
        let is = |wanted: Message| message == wanted as u8;
        if is(Message::ClientHello) {
            self.take_parameters(body);
            let (certificates, psk) = if self.agreement.resumed {
                (None, SERVER_PSK)
            } else {
                (Some(self.agreement.certificate_chain), 0)
            };
            let hello = self.message(Message::ServerHello, SERVER_HELLO + psk);
            self.outgoing.push((hello, Some(Level::Handshake)));
            let mut flight = self.message(
                Message::EncryptedExtensions,
                ENCRYPTED_EXTENSIONS + PARAMETERS_HEAD,
            );
            if let Some(bytes) = certificates {
                flight.extend(self.message(Message::Certificate, CERTIFICATE_LISTS + bytes));
                flight.extend(self.message(Message::CertificateVerify, CERTIFICATE_VERIFY));
            }
            flight.extend(self.message(Message::Finished, FINISHED));
            self.outgoing.push((flight, Some(Level::Data)));
        } else if is(Message::ServerHello) {
            self.outgoing.push((Vec::new(), Some(Level::Handshake)));
        } else if is(Message::EncryptedExtensions) {
            self.take_parameters(body);
        } else if is(Message::Finished) {
            self.handshaking = false;
            if self.side.is_client() {
                let finished = self.message(Message::Finished, FINISHED);
                self.outgoing.push((finished, Some(Level::Data)));
            } else {
                let ticket = self.message(Message::NewSessionTicket, NEW_SESSION_TICKET);
                self.outgoing.push((ticket.repeat(TICKETS), None));
            }
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        keys(Level::Initial, fold(dst_cid), side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let key = Key::new(Level::Early, 0, Side::Client);
        self.early.then(|| {
            (
                Box::new(Plain) as Box<dyn HeaderKey>,
                Box::new(key) as Box<dyn PacketKey>,
            )
        })
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(self.early)
    }

    fn is_handshaking(&self) -> bool {
        self.handshaking
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.incoming.extend_from_slice(buf);
        while let [message, a, b, c, body @ ..] = &self.incoming[..] {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if body.len() < length {
                break;
            }
            let (message, body) = (*message, body[..length].to_vec());
            self.incoming.drain(..HEADER + length);
            self.take(message, &body);
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let known = self.peer.as_ref().or(self.agreement.remembered.as_ref());
        let Some(encoded) = known.filter(|_| self.peer.is_some() || self.side.is_client()) else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(
            self.side,
            &mut Cursor::new(&encoded[..]),
        )?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        if self.outgoing.is_empty() {
            return None;
        }
        let (bytes, level) = self.outgoing.remove(0);
        buf.extend(bytes);
        level.map(|level| keys(level, 0, self.side))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys(Level::Updated, 0, self.side).packet)
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Which keys protect a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Initial = 1,
    Early,
    Handshake,
    Data,
    Updated,
}

/// Both keys of an end at this level; `salt` distinguishes connections whose parameters do not.
fn keys(level: Level, salt: u64, side: Side) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(Plain),
            remote: Box::new(Plain),
        },
        packet: KeyPair {
            local: Box::new(Key::new(level, salt, side)),
            remote: Box::new(Key::new(level, salt, !side)),
        },
    }
}

/// Names the packets of one sender at one level.
#[derive(Clone, Copy, Debug)]
struct Key(u64);

impl Key {
    fn new(level: Level, salt: u64, sender: Side) -> Key {
        Key(salt.rotate_left(8) ^ (level as u64) << 1 ^ u64::from(sender.is_server()))
    }

    fn tag(self, packet: u64) -> [u8; TAG] {
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&self.0.to_be_bytes());
        tag[8..].copy_from_slice(&packet.to_be_bytes());
        tag
    }
}

impl PacketKey for Key {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        let end = buf.len() - TAG;
        buf[end..].copy_from_slice(&self.tag(packet));
    }

    fn decrypt(&self, packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let end = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[end..] != self.tag(packet) {
            return Err(CryptoError);
        }
        payload.truncate(end);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Headers as they are.
struct Plain;

impl HeaderKey for Plain {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Makes reset tokens, and seals and opens address tokens, from a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(pub(super) u64);

impl HmacKey for Seeded {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        fill(&mut Rng::from_seed(self.0 ^ fold(data)), signature_out);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        (expected == signature).then_some(()).ok_or(CryptoError)
    }
}

impl HandshakeTokenKey for Seeded {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(*self)
    }
}

impl AeadKey for Seeded {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        let mut tag = [0; TAG];
        self.sign(data, &mut tag);
        data.extend(tag);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let (sealed, tag) = data.split_last_chunk_mut::<TAG>().ok_or(CryptoError)?;
        self.verify(sealed, tag)?;
        Ok(sealed)
    }
}

/// Fills `out` with random bytes.
pub(super) fn fill(rng: &mut Rng, out: &mut [u8]) {
    for chunk in out.chunks_mut(8) {
        let bytes = rng.next_u64().to_be_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// 64-bit FNV-1a.
fn fold(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Handshake messages (RFC 8446 4) with their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Message {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateVerify = 15,
    Finished = 20,
}

/// The head of the extension for transport parameters.
const PARAMETERS_HEAD: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::crypto::Session as _;

    fn session(side: Side, resumed: bool) -> Session {
        let agreement = Agreement {
            resumed,
            remembered: None,
            certificate_chain: 2_500,
        };
        let none = TransportParameters::read(Side::Client, &mut Cursor::new(&[][..]));
        Session::new(Arc::new(agreement), side, &none.expect("none are needed"))
    }

    /// What an end writes, with whether keys follow each piece.
    fn written(session: &mut Session) -> Vec<(usize, bool)> {
        let mut pieces = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let keys = session.write_handshake(&mut bytes).is_some();
            if bytes.is_empty() && !keys {
                return pieces;
            }
            pieces.push((bytes.len(), keys));
        }
    }

    /// Hands all that one end has to say to the other, in pieces of `piece` bytes.
    fn carry(from: &mut Session, to: &mut Session, piece: usize) -> Vec<(usize, bool)> {
        let mut sizes = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let keys = from.write_handshake(&mut bytes).is_some();
            if bytes.is_empty() && !keys {
                return sizes;
            }
            sizes.push((bytes.len(), keys));
            for part in bytes.chunks(piece) {
                to.read_handshake(part).expect("well formed");
            }
        }
    }

    #[test]
    fn a_full_handshake_has_the_messages_of_tls_and_their_sizes() {
        let (mut client, mut server) = (session(Side::Client, false), session(Side::Server, false));
        let own = server.own.len();
        assert_eq!(
            carry(&mut client, &mut server, 100),
            [(184 + client.own.len(), false)]
        );
        // ServerHello; EncryptedExtensions, Certificate, CertificateVerify, Finished.
        let flight = (4 + 15 + own) + (4 + 14 + 2_500) + (4 + 68) + (4 + 32);
        assert_eq!(carry(&mut server, &mut client, 999), [(90, true), (flight, true)]);
        assert!(!client.is_handshaking() && server.is_handshaking());
        // The client has keys after the ServerHello, and others after its Finished.
        assert_eq!(carry(&mut client, &mut server, 1), [(0, true), (36, true)]);
        assert!(!server.is_handshaking());
        assert_eq!(written(&mut server), [(2 * 65, false)]);
    }

    #[test]
    fn a_resumed_handshake_has_no_certificates() {
        let (mut client, mut server) = (session(Side::Client, true), session(Side::Server, true));
        let own = server.own.len();
        carry(&mut client, &mut server, 5_000);
        let sizes = carry(&mut server, &mut client, 5_000);
        assert_eq!(sizes, [(96, true), (4 + 15 + own + 36, true)]);
    }

    #[test]
    fn a_packet_opens_with_the_key_and_number_that_it_was_made_with() {
        let client = keys(Level::Data, 0, Side::Client);
        let server = keys(Level::Data, 0, Side::Server);
        let early = keys(Level::Handshake, 0, Side::Server);
        let mut packet = vec![7; 40];
        client.packet.local.encrypt(9, &mut packet, 10);
        let payload = || BytesMut::from(&packet[10..]);
        let mut opened = payload();
        assert!(server.packet.remote.decrypt(9, &[], &mut opened).is_ok());
        assert_eq!(opened.len(), 30 - TAG);
        assert!(server.packet.remote.decrypt(8, &[], &mut payload()).is_err());
        assert!(server.packet.local.decrypt(9, &[], &mut payload()).is_err());
        assert!(early.packet.remote.decrypt(9, &[], &mut payload()).is_err());
        assert!(
            server
                .packet
                .remote
                .decrypt(9, &[], &mut BytesMut::new())
                .is_err()
        );
    }
}
