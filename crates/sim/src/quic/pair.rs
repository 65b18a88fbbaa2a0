//! The two ends of a QUIC connection, and what applications do with them.

use super::session::{Agreement, Seeded, fill};
use super::token;
use super::{Clock, controller};
use crate::spec::{QuicTransport, TlsHandshake};
use bytes::{Bytes, BytesMut};
use fleetfoot_core::packet::Ecn;
use fleetfoot_core::rng::Rng;
use fleetfoot_core::time::{Duration, Instant};
use quinn_proto::coding::Codec;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    ConnectionStats, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, MtuDiscoveryConfig,
    ServerConfig, StreamEvent, StreamId, TimeSource, TransportConfig, VarInt,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration as Span, SystemTime, UNIX_EPOCH};

/// What all connections of a group have in common.
pub(crate) struct Prepared {
    transport: Arc<TransportConfig>,
    agreement: Arc<Agreement>,
    clock: Clock,
    ecn: bool,
    /// UDP payload that either end takes at most.
    largest: u16,
    /// Clients have a token of an earlier connection.
    token: bool,
}

impl Prepared {
    /// Connections that behave as `spec` says; `seed` is that of controllers.
    pub(crate) fn new(spec: &QuicTransport, seed: u64) -> Prepared {
        let clock = Clock::new();
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u64(spec.stream_window.get()).unwrap_or(VarInt::MAX);
        transport
            .congestion_controller_factory(controller::factory(spec, clock, seed))
            .stream_receive_window(window)
            .send_window(SEND_WINDOW.max(STREAM_WINDOWS * spec.stream_window.get()))
            .max_concurrent_bidi_streams(STREAMS.into())
            .max_concurrent_uni_streams(STREAMS.into());
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(spec.largest_datagram);
        transport.mtu_discovery_config((spec.largest_datagram > SMALLEST).then_some(discovery));
        if spec.ack_every.is_some() || spec.max_ack_delay.is_some() {
            let mut asked = AckFrequencyConfig::default();
            asked
                .ack_eliciting_threshold((spec.ack_every.unwrap_or(2) - 1).into())
                .max_ack_delay(spec.max_ack_delay.map(|delay| Span::from_nanos(delay.as_nanos())));
            transport.ack_frequency_config(Some(asked));
        }
        let agreement = Agreement {
            resumed: spec.handshake != TlsHandshake::Full,
            remembered: (spec.handshake == TlsHandshake::ZeroRtt).then(|| remembered(window)),
            certificate_chain: spec.certificate_chain.get() as usize,
        };
        Prepared {
            transport: Arc::new(transport),
            agreement: Arc::new(agreement),
            clock,
            ecn: spec.ecn,
            largest: spec.largest_datagram.max(USUAL),
            token: spec.token,
        }
    }
}

/// The limits of a server as transport parameters (RFC 9000 18.2), which a client remembers with a ticket.
fn remembered(window: VarInt) -> Vec<u8> {
    let mut encoded = Vec::new();
    let streams = VarInt::from_u32(STREAMS);
    // Of the connection, of streams of either end and of one-way streams; streams of both kinds.
    let limits = [
        (4, VarInt::MAX),
        (5, window),
        (6, window),
        (7, window),
        (8, streams),
        (9, streams),
    ];
    for (parameter, value) in limits {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        encoded.extend([parameter, bytes.len() as u8]);
        encoded.extend(bytes);
    }
    encoded
}

/// What an end reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The handshake is complete.
    Connected,
    /// The peer has opened streams, or a stream of the peer has data.
    Stream,
    /// This stream has data.
    Readable(StreamId),
    /// This stream takes more data.
    Writable(StreamId),
    /// All data of this stream was acknowledged.
    Acknowledged(StreamId),
    /// More streams may be opened.
    Available,
    /// The connection is over, in good or bad order.
    Lost,
}

/// A datagram to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) ecn: Ecn,
}

/// A connection: its two ends, as those of the conversation that it is.
pub(crate) struct Pair {
    ends: [End; 2],
    clock: Clock,
    ecn: bool,
    /// What the end that answered without a connection wrote.
    buffer: Vec<u8>,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
}

impl Pair {
    /// A connection that the end `client` opens now. `rng` seeds whatever is random in it.
    pub(crate) fn connect(now: Instant, prepared: &Prepared, client: usize, rng: &mut Rng) -> Pair {
        let mut token_key = Seeded(0);
        let mut end = |side: usize| {
            let server = side != client;
            let mut seed = [0; 32];
            fill(rng, &mut seed);
            let mut config = EndpointConfig::new(Arc::new(Seeded(rng.next_u64())));
            let identifiers = rng.next_u64();
            config
                .max_udp_payload_size(prepared.largest)
                .expect("more than the least that is allowed")
                .cid_generator(move || Box::new(Identifiers(Rng::from_seed(identifiers))))
                .rng_seed(Some(seed));
            let server = server.then(|| {
                token_key = Seeded(rng.next_u64());
                let agreement = Arc::clone(&prepared.agreement);
                let mut config = ServerConfig::new(agreement, Arc::new(token_key));
                config
                    .transport_config(Arc::clone(&prepared.transport))
                    .validation_token_config(token::accepted())
                    .time_source(Arc::new(NoTime));
                Arc::new(config)
            });
            End {
                endpoint: Endpoint::new(Arc::new(config), server, true, None),
                connection: None,
                address: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1 + side as u8)), 443),
            }
        };
        let ends = [end(0), end(1)];
        let mut pair = Pair {
            ends,
            clock: prepared.clock,
            ecn: prepared.ecn,
            buffer: Vec::new(),
        };
        let mut config = ClientConfig::new(Arc::clone(&prepared.agreement) as Arc<_>);
        let first = Mutex::new(Rng::from_seed(rng.next_u64()));
        let address = pair.ends[client].address.ip();
        let token = prepared.token.then(|| token::of(address, token_key, rng));
        config
            .transport_config(Arc::clone(&prepared.transport))
            .token_store(Arc::new(token::Store::new(token)))
            .initial_dst_cid_provider(Arc::new(move || {
                let mut bytes = [0; 20];
                if let Ok(mut rng) = first.lock() {
                    fill(&mut rng, &mut bytes);
                }
                ConnectionId::new(&bytes)
            }));
        let server = pair.ends[1 - client].address;
        let now = pair.clock.moment_of(now);
        let opened = pair.ends[client]
            .endpoint
            .connect(now, config, server, "server.example");
        pair.ends[client].connection = opened.ok();
        pair
    }

    /// Whether the end `side` may send data before the handshake is complete.
    pub(crate) fn sends_early(&self, side: usize) -> bool {
        self.connection(side).is_some_and(Connection::has_0rtt)
    }

    fn connection(&self, side: usize) -> Option<&Connection> {
        self.ends[side].connection.as_ref().map(|(_, one)| one)
    }

    fn connection_mut(&mut self, side: usize) -> Option<&mut Connection> {
        self.ends[side].connection.as_mut().map(|(_, one)| one)
    }

    /// A datagram arrives at an end.
    pub(crate) fn receive(&mut self, now: Instant, side: usize, ecn: Ecn, bytes: BytesMut) {
        let now = self.clock.moment_of(now);
        let remote = self.ends[1 - side].address;
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let End {
            endpoint, connection, ..
        } = &mut self.ends[side];
        match endpoint.handle(now, remote, None, ecn, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if connection.is_none() => {
                *connection = endpoint.accept(incoming, now, &mut self.buffer, None).ok();
            }
            // A second connection cannot be, and to what belongs to none nobody listens any more.
            Some(DatagramEvent::NewConnection(incoming)) => endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.buffer.clear();
    }

    /// The deadline of an end has passed.
    pub(crate) fn on_timeout(&mut self, now: Instant, side: usize) {
        let now = self.clock.moment_of(now);
        if let Some(connection) = self.connection_mut(side) {
            connection.handle_timeout(now);
        }
    }

    /// The next deadline of an end.
    pub(crate) fn poll_timeout(&mut self, side: usize) -> Option<Instant> {
        let clock = self.clock;
        let at = self.connection_mut(side)?.poll_timeout()?;
        Some(clock.time_of(at))
    }

    /// Hands what an end sends now to `send`; whether there was anything.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        side: usize,
        mut send: impl FnMut(Leaving<'_>),
    ) -> bool {
        let now = self.clock.moment_of(now);
        let Some((_, connection)) = &mut self.ends[side].connection else {
            return false;
        };
        self.buffer.clear();
        let Some(transmit) = connection.poll_transmit(now, TOGETHER, &mut self.buffer) else {
            return false;
        };
        let ecn = match transmit.ecn.filter(|_| self.ecn) {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::Ce,
        };
        let all = &self.buffer[..transmit.size];
        for bytes in all.chunks(transmit.segment_size.unwrap_or(transmit.size).max(1)) {
            send(Leaving { bytes, ecn });
        }
        self.buffer.clear();
        true
    }

    /// What happened at an end.
    pub(crate) fn poll(&mut self, side: usize) -> Option<Heard> {
        let End {
            endpoint, connection, ..
        } = &mut self.ends[side];
        let (handle, connection) = connection.as_mut()?;
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        loop {
            return Some(match connection.poll()? {
                Event::Connected => Heard::Connected,
                Event::ConnectionLost { .. } => Heard::Lost,
                Event::Stream(StreamEvent::Opened { .. }) => Heard::Stream,
                Event::Stream(StreamEvent::Readable { id }) => Heard::Readable(id),
                Event::Stream(StreamEvent::Writable { id }) => Heard::Writable(id),
                Event::Stream(StreamEvent::Finished { id }) => Heard::Acknowledged(id),
                Event::Stream(StreamEvent::Available { .. }) => Heard::Available,
                Event::Stream(StreamEvent::Stopped { .. })
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => continue,
            });
        }
    }

    /// Opens a stream at an end, if the peer allows one more.
    pub(crate) fn open(&mut self, side: usize, dir: Dir) -> Option<StreamId> {
        self.connection_mut(side)?.streams().open(dir)
    }

    /// The next stream that the peer has opened.
    pub(crate) fn accept(&mut self, side: usize) -> Option<StreamId> {
        let mut streams = self.connection_mut(side)?.streams();
        streams.accept(Dir::Bi).or_else(|| streams.accept(Dir::Uni))
    }

    /// Writes up to `bytes` to a stream; how many were taken. With the last of them the stream ends.
    pub(crate) fn write(&mut self, side: usize, stream: StreamId, bytes: u64) -> u64 {
        let Some(connection) = self.connection_mut(side) else {
            return 0;
        };
        let mut stream = connection.send_stream(stream);
        let mut written = 0;
        while written < bytes {
            let piece = (bytes - written).min(FILLER.len() as u64) as usize;
            match stream.write_chunks(&mut [Bytes::from_static(&FILLER[..piece])]) {
                Ok(taken) if taken.bytes > 0 => written += taken.bytes as u64,
                Ok(_) | Err(_) => break,
            }
        }
        if written == bytes {
            // Stopped by the peer: nobody waits for the end either.
            let _ = stream.finish();
        }
        written
    }

    /// Reads what is there of a stream: bytes, and whether it has ended.
    pub(crate) fn read(&mut self, side: usize, stream: StreamId) -> (u64, bool) {
        let Some(connection) = self.connection_mut(side) else {
            return (0, false);
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else {
            return (0, false);
        };
        let mut bytes = 0;
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        // What it opens for the peer leaves with the next transmission.
        let _ = chunks.finalize();
        (bytes, ended)
    }

    /// An end closes the connection.
    pub(crate) fn close(&mut self, now: Instant, side: usize) {
        let now = self.clock.moment_of(now);
        if let Some(connection) = self.connection_mut(side) {
            connection.close(now, 0_u32.into(), Bytes::new());
        }
    }

    /// Whether nothing more will happen at an end: it has closed, and stragglers are not expected any more.
    pub(crate) fn is_over(&self, side: usize) -> bool {
        self.connection(side).is_none_or(Connection::is_drained)
    }

    /// What an end has counted, and the least round-trip time that it saw.
    pub(crate) fn counted(&self, side: usize) -> Option<(ConnectionStats, Duration)> {
        let connection = self.connection(side)?;
        let least = Duration::from_nanos(connection.min_rtt().as_nanos() as u64);
        Some((connection.stats(), least))
    }
}

/// Connection identifiers of an endpoint.
struct Identifiers(Rng);

impl ConnectionIdGenerator for Identifiers {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next_u64().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Span> {
        None
    }
}

/// The time of day does not pass.
struct NoTime;

impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}

/// What streams carry.
static FILLER: [u8; 1 << 16] = [0; 1 << 16];

/// Streams of either kind that an end may have open at a time (quinn's default).
const STREAMS: u32 = 100;

/// Windows of streams that a connection may fill with what is not acknowledged yet (quinn's default).
const STREAM_WINDOWS: u64 = 8;

/// Bytes that are not acknowledged, of all streams of a connection, at most, unless streams have larger windows (quinn's
/// default).
const SEND_WINDOW: u64 = 10_000_000;

/// Datagrams that leave in one call, as quinn hands them to a socket that splits them.
const TOGETHER: usize = 10;

/// UDP payload that an end takes unless it is told otherwise (quinn's default).
const USUAL: u16 = 1_472;

/// Least UDP payload that every path carries (RFC 9000 14).
const SMALLEST: u16 = 1200;

#[cfg(test)]
mod tests {
    use super::*;

    /// What both ends of a connection send, one after the other without delay, until the client has an answer of 100 kB
    /// to a request and has closed.
    fn conversation(seed: u64, transport: &QuicTransport) -> Vec<Vec<u8>> {
        let prepared = Prepared::new(transport, 1);
        let mut now = Instant::from_millis(5);
        let mut pair = Pair::connect(now, &prepared, 1, &mut Rng::from_seed(seed));
        let (mut sent, mut left) = (Vec::new(), 100_000);
        let mut answer = None;
        while !(pair.is_over(0) && pair.is_over(1)) || sent.is_empty() {
            for side in [1, 0] {
                while let Some(heard) = pair.poll(side) {
                    match (side, heard) {
                        (1, Heard::Connected) => {
                            let stream = pair.open(1, Dir::Bi).expect("the server allows streams");
                            assert_eq!(pair.write(1, stream, 10), 10);
                        }
                        (0, Heard::Stream) => {
                            let stream = pair.accept(0).expect("it was opened");
                            assert_eq!(pair.read(0, stream), (10, true));
                            answer = Some(stream);
                        }
                        (1, Heard::Readable(stream)) if pair.read(1, stream).1 => pair.close(now, 1),
                        _ => {}
                    }
                }
                if let Some(stream) = answer.filter(|_| side == 0 && left > 0) {
                    left -= pair.write(0, stream, left);
                }
                let mut leaving = Vec::new();
                while pair.poll_transmit(now, side, |one| leaving.push((one.bytes.to_vec(), one.ecn))) {}
                for (bytes, ecn) in leaving {
                    pair.receive(now, 1 - side, ecn, BytesMut::from(&bytes[..]));
                    sent.push(bytes);
                }
            }
            now = now.saturating_add(Duration::from_millis(1));
            for side in 0..2 {
                if pair.poll_timeout(side).is_some_and(|at| at <= now) {
                    pair.on_timeout(now, side);
                }
            }
        }
        sent
    }

    #[test]
    fn the_same_seed_gives_the_same_datagrams() {
        let back = QuicTransport {
            handshake: TlsHandshake::ZeroRtt,
            token: true,
            ..QuicTransport::default()
        };
        for transport in [QuicTransport::default(), back] {
            let sent = conversation(7, &transport);
            assert!(sent.len() > 80 && sent[0].len() == 1_200, "{}", sent.len());
            assert!(sent == conversation(7, &transport));
            assert!(sent != conversation(8, &transport));
        }
    }

    #[test]
    fn what_a_client_remembers_of_a_server_is_what_the_server_grants() {
        let encoded = remembered(VarInt::from_u32(64_000));
        let read = quinn_proto::transport_parameters::TransportParameters::read(
            quinn_proto::Side::Client,
            &mut std::io::Cursor::new(&encoded[..]),
        );
        let text = format!("{:?}", read.expect("well formed"));
        for said in [
            "initial_max_data: 4611686018427387903",
            "initial_max_stream_data_uni: 64000",
            "initial_max_streams_bidi: 100",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
}
