//! Attacks that the endpoint must survive: memory and counted work stay within bounds, and the victim's stream is whole.
//!
//! A victim is held to: at most twice its receive buffer and 64 KiB of memory (the sender's records besides, by its
//! window), at most [`MEAN_WORK`] queue entries looked at or moved per hostile segment whatever the length of the queues,
//! and no byte of the stream taken twice. `attacks_on_hosts.rs` has those that concern listeners, addresses and ICMP.

use fleetfoot_core::packet::{Flags, Segment};
use fleetfoot_core::rng::Rng;
use fleetfoot_core::seq::SeqNumber;
use fleetfoot_core::tcp::{Config, Connection, EstablishedState, Event, Half, Profile, State, WriteFlags};
use fleetfoot_core::time::{Duration, Instant};
use fleetfoot_core::units::Bytes;
use fleetfoot_core::wire;
use fleetfoot_testkit::rig::{CloseWhen, EndSetup, Fate, Hop, Rig};
use std::net::SocketAddr;
use std::sync::Arc;

const ISS: SeqNumber = SeqNumber(u32::MAX - 999);
const IRS: SeqNumber = SeqNumber(u32::MAX - 4);
const T0: Instant = Instant::from_millis(1000);
/// Entries per hostile segment, on average.
const MEAN_WORK: u64 = 64;

/// A connection under attack, and the bytes its driver keeps.
struct Victim {
    connection: Connection,
    now: Instant,
    mss: u32,
    /// How often each byte of the stream was taken.
    taken: Vec<u8>,
    /// Hostile segments, and the work before them.
    hits: u64,
    work: u64,
    out: Vec<Segment>,
}

impl Victim {
    fn new(config: &Config, mss: u32, cwnd: u64) -> Victim {
        let state = EstablishedState {
            srtt: Duration::from_millis(100),
            rttvar: Duration::ZERO,
            cwnd: Bytes(cwnd),
            ssthresh: Bytes::MAX,
            mss,
            iss: ISS,
            irs: IRS,
            peer_window: Bytes(1 << 30),
        };
        Victim {
            connection: Connection::established(T0, &Arc::new(config.clone()), state),
            now: T0,
            mss,
            taken: vec![0; 1 << 20],
            hits: 0,
            work: 0,
            out: Vec::new(),
        }
    }

    fn write(&mut self, bytes: u64) -> usize {
        let taken = self
            .connection
            .write(self.now, Bytes(bytes), WriteFlags::default());
        assert_eq!(taken, Bytes(bytes));
        self.drain();
        self.out.len()
    }

    fn drain(&mut self) {
        self.out.clear();
        while let Some(transmit) = self.connection.poll_transmit(self.now) {
            self.out.push(transmit.segment);
        }
        while self.connection.poll_event().is_some() {}
        self.connection.check(true);
    }

    fn arrive(&mut self, segment: &Segment) {
        let accepted = self.connection.on_segment(self.now, segment);
        let mut pieces: Vec<_> = std::iter::once(accepted.start..accepted.end).collect();
        pieces.extend(core::iter::from_fn(|| self.connection.poll_accepted()));
        for offset in pieces.into_iter().flatten() {
            if let Some(count) = self.taken.get_mut(offset as usize) {
                *count += 1;
                assert_eq!(*count, 1, "byte {offset} is taken once: what came first stays");
            }
        }
        self.drain();
    }

    /// A hostile segment, a microsecond after the last.
    fn hit(&mut self, segment: &Segment) {
        if self.hits == 0 {
            self.work = self.connection.work();
        }
        self.hits += 1;
        self.now += Duration::from_micros(1);
        self.arrive(segment);
    }

    /// The bounds on memory and work; `window`: bytes in flight at most, for the sender's records.
    fn within_bounds(&self, window: u64) {
        let records = (window / u64::from(self.mss) + 1).next_power_of_two() * 80;
        let bound = 2 * self.connection.config().receive_buffer.get() + 65_536 + records;
        let held = self.connection.held();
        assert!(held <= bound, "{held} bytes held, at most {bound}");
        let mean = (self.connection.work() - self.work) / self.hits.max(1);
        assert!(mean <= MEAN_WORK, "{mean} entries per hostile segment");
    }

    /// The peer sends `bytes` in order from `at`, and all arrives.
    fn receives(&mut self, at: u32, bytes: u32) {
        let mut sent = at;
        while sent < bytes {
            let payload = 1000.min(bytes - sent);
            self.now += Duration::from_millis(1);
            self.arrive(&data(sent, payload));
            sent += payload;
            self.connection.read(self.now, Bytes::MAX);
            self.drain();
        }
        assert_eq!(self.connection.received(), u64::from(bytes));
        assert!(
            self.taken[..bytes as usize].iter().all(|&count| count == 1),
            "the stream is whole"
        );
    }

    /// The peer acknowledges everything that is out until nothing is.
    fn delivers(&mut self, written: u64) {
        for _ in 0..100_000 {
            if self.connection.acked() == written {
                return;
            }
            let sent = self
                .out
                .iter()
                .map(|segment| segment.seq + segment.sequence_len());
            let info = self.connection.info(self.now);
            let next = SeqNumber::from_offset(ISS, 1 + info.acked + info.flight.get());
            assert!(sent.clone().all(|end| end.le(next)));
            self.now += Duration::from_millis(20);
            if let Some(at) = self.connection.poll_timeout()
                && at <= self.now
            {
                self.connection.on_timeout(self.now);
            }
            self.arrive(&ack((info.acked + info.flight.get()) as u32, &[]));
        }
        panic!("{:?}", self.connection.info(self.now));
    }
}

fn bare(mtu: u32) -> Config {
    let mut config = Config::profile(Profile::Rfc);
    config.mtu = mtu;
    config.timestamps = false;
    config.nagle = false;
    config
}

/// An ACK of everything before byte `to`, with SACK blocks in bytes.
fn ack(to: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut segment = Segment {
        seq: IRS + 1,
        ack: ISS + 1 + to,
        window: 65_535,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    };
    for (left, right) in blocks {
        segment.push_sack_block(ISS + 1 + *left, ISS + 1 + *right);
    }
    segment
}

fn data(at: u32, payload: u32) -> Segment {
    Segment {
        seq: IRS + 1 + at,
        ack: ISS + 1,
        payload,
        window: 65_535,
        flags: Flags::ACK,
        overhead: 40,
        ..Segment::default()
    }
}

#[test]
fn attack_01_sack_panic() {
    // CVE-2019-11477: many segments of 48 bytes, and blocks that join and split them.
    let mut config = bare(88);
    config.send_buffer = Bytes(16 << 20);
    let mut victim = Victim::new(&config, 48, 2_000_000);
    let out = victim.write(2_000_000);
    assert!(out > 41_000, "{out}");
    let mut rng = Rng::from_seed(1);
    for _ in 0..20_000 {
        let mut blocks = [(0, 0); 3];
        for block in &mut blocks {
            let left = rng.below(1_990_000) as u32;
            *block = (left, left + 1 + rng.below(5000) as u32);
        }
        victim.hit(&ack(0, &blocks));
    }
    victim.within_bounds(2_500_000);
    victim.delivers(2_000_000);
}

#[test]
fn attack_02_fragmentation_of_the_retransmission_queue() {
    // CVE-2019-11478: blocks that cover parts of segments. Records are never split.
    let mut victim = Victim::new(&bare(1040), 1000, 1_000_000);
    victim.write(1_000_000);
    let before = victim.connection.held();
    for index in 0..10_000_u32 {
        let at = index * 97 % 999_000;
        victim.hit(&ack(0, &[(at + 1, at + 2)]));
    }
    assert_eq!(victim.connection.held(), before);
    assert_eq!(victim.connection.info(victim.now).delivered, Bytes::ZERO);
    victim.within_bounds(1_000_000);
    victim.delivers(1_000_000);
}

#[test]
fn attack_03_tiny_mss() {
    // CVE-2019-11479.
    for (mss, floor) in [(0, 48), (1, 48), (8, 400), (47, 48)] {
        let mut syn = Segment {
            seq: IRS,
            options: [mss, 0, 0, 0, 0, 0],
            window: 65_535,
            flags: Flags::SYN.with(Flags::MSS),
            overhead: 44,
            ..Segment::default()
        };
        syn.payload = 0;
        let mut config = bare(1500);
        config.path.min_mss = floor;
        let mut connection = Connection::accept(T0, &Arc::new(config), ISS, &syn);
        assert!(connection.poll_transmit(T0).is_some());
        connection.on_segment(T0, &ack(0, &[]));
        assert_eq!(connection.state(), State::Established);
        connection.write(T0, Bytes(100_000), WriteFlags::default());
        let mut least = u32::MAX;
        while let Some(transmit) = connection.poll_transmit(T0) {
            least = least.min(transmit.segment.payload);
        }
        assert!(least >= floor, "{least} bytes in a segment");
    }
}

#[test]
fn attack_04_long_walks_of_rack() {
    // CVE-2019-5599: the mean work does not grow with the window.
    for (config, name) in [(bare(1040), "rack"), (without_rack(), "rfc 6675")] {
        let mut means = Vec::new();
        for segments in [500_u32, 4000] {
            let mut victim = Victim::new(&config, 1000, u64::from(segments) * 1000);
            victim.write(u64::from(segments) * 1000);
            let mut rng = Rng::from_seed(4);
            for _ in 0..2 * segments {
                let at = (1 + rng.below(u64::from(segments) - 2) as u32) * 1000;
                victim.hit(&ack(0, &[(at, at + 1000)]));
            }
            victim.within_bounds(u64::from(segments) * 1000);
            means.push((victim.connection.work() - victim.work) / victim.hits);
            victim.delivers(u64::from(segments) * 1000);
        }
        println!("{name}: {means:?} entries per block with 500 and 4000 segments out");
    }
}

fn without_rack() -> Config {
    let mut config = bare(1040);
    config.rack = false;
    config
}

#[test]
fn attack_05_many_tiny_segments_out_of_order() {
    // CVE-2018-5390, SegmentSmack.
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    let mut rng = Rng::from_seed(5);
    for _ in 0..60_000 {
        victim.hit(&data(2 + 2 * rng.below(200_000) as u32, 1));
    }
    victim.within_bounds(14_600);
    assert_eq!(victim.connection.received(), 0);
    // In order, in the order of the numbers, backwards: none is dear.
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    for index in 0..30_000 {
        victim.hit(&data(2 + 2 * index, 1));
        victim.hit(&data(400_000 - 2 * index, 1));
    }
    victim.within_bounds(14_600);
}

#[test]
fn attack_06_the_reassembly_queue_has_a_limit_and_the_connection_lives() {
    // CVE-2018-6922.
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    for index in 0..50_000 {
        victim.hit(&data(1 + 3 * index, 1));
    }
    victim.within_bounds(14_600);
    let kept: u64 = victim.taken.iter().map(|&count| u64::from(count)).sum();
    assert!((100..10_000).contains(&kept), "{kept} bytes kept");
    // An honest retransmission of everything fills the holes, whatever was refused.
    let mut at = 0;
    for _ in 0..100_000 {
        if at >= 200_000 {
            break;
        }
        victim.now += Duration::from_millis(1);
        victim.arrive(&data(at, 1000));
        victim.connection.read(victim.now, Bytes::MAX);
        victim.drain();
        at = victim.connection.received() as u32;
    }
    assert!(at >= 200_000);
    assert!(victim.taken[..at as usize].iter().all(|&count| count == 1));
}

#[test]
fn attack_07_overlaps_of_alternating_bytes() {
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    for index in 0..500 {
        victim.hit(&data(1 + 2 * index, 1));
    }
    let mut rng = Rng::from_seed(7);
    for _ in 0..2000 {
        let at = rng.below(990) as u32;
        victim.hit(&data(at + 1, 1 + rng.below(u64::from(1000 - at)) as u32));
    }
    victim.within_bounds(14_600);
    while victim.connection.received() < 2000 {
        let at = victim.connection.received() as u32;
        victim.arrive(&data(at, 2000 - at));
    }
    victim.receives(2000, 30_000);
}

#[test]
fn attack_08_challenge_acknowledgments_are_counted_per_connection() {
    // CVE-2016-5696: a counter shared between connections, or known in advance, shows an outsider what it hit.
    let mut counts = Vec::new();
    for index in 0..20_u32 {
        let mut victim = Victim::new(&bare(1500), 1460, 14_600);
        victim.now += Duration::from_millis(u64::from(index) * 7);
        let mut bad = data(5000, 0);
        bad.flags = Flags::RST;
        for _ in 0..1000 {
            victim.hit(&bad);
        }
        counts.push(victim.connection.stats().challenge_acks);
        victim.receives(0, 10_000);
    }
    assert!(counts.iter().all(|count| (50..150).contains(count)), "{counts:?}");
    let distinct: std::collections::BTreeSet<_> = counts.iter().collect();
    assert!(distinct.len() > 10, "the allowance is drawn: {counts:?}");
}

#[test]
fn attack_09_blind_resets() {
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    let mut reset = data(0, 0);
    reset.flags = Flags::RST;
    for offset in [1, 2, 1000, 60_000] {
        reset.seq = IRS + 1 + offset;
        victim.hit(&reset);
        assert_eq!(victim.out.len(), 1, "a challenge ACK");
        assert_eq!(victim.connection.state(), State::Established);
    }
    // Outside of the window nothing is said at all.
    for offset in [0x8000_0000, u32::MAX - 10] {
        reset.seq = IRS + 1 + offset;
        victim.hit(&reset);
        assert_eq!(
            (victim.out.len(), victim.connection.state()),
            (0, State::Established)
        );
    }
    victim.receives(0, 50_000);
}

#[test]
fn attack_10_blind_syns() {
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    let mut syn = data(0, 0);
    for offset in [0, 1, 1000, 0x8000_0000, u32::MAX] {
        for flags in [Flags::SYN, Flags::SYN.with(Flags::ACK)] {
            syn.seq = IRS + 1 + offset;
            syn.flags = flags;
            victim.hit(&syn);
            assert_eq!(
                (victim.out.len(), victim.connection.state()),
                (1, State::Established)
            );
            assert_eq!(victim.out[0].flags.without(Flags::DF), Flags::ACK);
        }
    }
    victim.receives(0, 50_000);
}

/// RFC 9293: MAY-12
#[test]
fn attack_11_blind_data_with_a_guessed_ack() {
    // RFC 5961 5: data is taken only with an ACK within SND.UNA - MAX.SND.WND to SND.NXT.
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    victim.write(5000);
    for ack in [5001, 100_000, 0x8000_0000, 0xb000_0000_u32] {
        let mut segment = data(0, 100);
        segment.ack = ISS + 1 + ack;
        victim.hit(&segment);
        assert_eq!(victim.connection.received(), 0);
        assert_eq!(victim.out.len(), 1, "an ACK says where we are");
    }
    victim.receives(0, 10_000);
}

#[test]
fn attack_12_split_and_optimistic_acknowledgments() {
    for profile in Profile::ALL {
        let mut config = Config::profile(profile);
        config.mtu = 1040;
        config.timestamps = false;
        config.max_window_segments = None;
        let grown = |pieces: u32| {
            let mut victim = Victim::new(&config, 1000, 10_000);
            victim.write(100_000);
            victim.now += Duration::from_millis(100);
            for piece in 1..=pieces {
                victim.hit(&ack(10_000 * piece / pieces, &[]));
            }
            victim.connection.info(victim.now).cwnd.get()
        };
        let (whole, split) = (grown(10), grown(1000));
        assert!(
            split <= whole,
            "{profile:?}: {split} with split ACKs, {whole} without"
        );
        // Optimistic: what was never sent.
        let mut victim = Victim::new(&config, 1000, 10_000);
        victim.write(100_000);
        let before = victim.connection.info(victim.now);
        for ahead in [10_001, 20_000, 100_000, 0x7fff_0000] {
            victim.now += config.challenge_interval; // sooner, Linux does not answer
            victim.hit(&ack(ahead, &[]));
            assert_eq!(victim.out.len(), 1, "answered");
            assert_eq!(victim.out[0].payload, 0);
            let after = victim.connection.info(victim.now);
            assert_eq!(
                (after.cwnd, after.acked, after.pipe),
                (before.cwnd, 0, before.pipe),
                "and ignored"
            );
        }
        victim.delivers(100_000);
    }
}

#[test]
fn attack_13_lying_sack() {
    let mut victim = Victim::new(&bare(1040), 1000, 100_000);
    victim.write(100_000);
    let before = victim.connection.info(victim.now);
    let mut lies = 0;
    for (left, right) in [
        (50_000, 100_001),
        (100_000, 101_000),
        (200_000, 300_000),
        (5000, 5000),
        (6000, 5000),
        (0x7000_0000, 0x7000_1000),
        (0x9000_0000, 0x9000_1000),
        (1000, 0xf000_0000),
    ] {
        victim.hit(&ack(0, &[(left, right)]));
        let after = victim.connection.info(victim.now);
        assert_eq!(
            (after.pipe, after.delivered, after.cwnd),
            (before.pipe, before.delivered, before.cwnd),
            "{left} {right}"
        );
        lies += 1;
        assert_eq!(after.stats.bad_sacks, lies, "{left} {right}");
    }
    // D-SACKs of what was never retransmitted undo nothing; overlapping blocks count once.
    for _ in 0..100 {
        victim.hit(&ack(1000, &[(0, 1000)]));
    }
    assert_eq!(victim.connection.stats().undos, 0);
    victim.hit(&ack(1000, &[(5000, 9000), (6000, 8000), (4000, 9000)]));
    assert_eq!(victim.connection.info(victim.now).delivered, Bytes(6000));
    victim.within_bounds(100_000);
    victim.delivers(100_000);
}

#[test]
fn attack_14_reneging() {
    for config in [bare(1040), without_rack()] {
        let mut victim = Victim::new(&config, 1000, 20_000);
        victim.write(20_000);
        victim.now += Duration::from_millis(100);
        victim.hit(&ack(0, &[(1000, 20_000)]));
        // It forgets them: every ACK is without blocks, and moves by what is retransmitted.
        let mut at = 0;
        for _ in 0..200 {
            if at == 20_000 {
                break;
            }
            if let Some(timeout) = victim.connection.poll_timeout() {
                victim.now = timeout;
                victim.connection.on_timeout(timeout);
                victim.drain();
            }
            let mut next: Vec<u32> = victim
                .out
                .iter()
                .map(|s| s.seq.0.wrapping_sub(ISS.0 + 1))
                .collect();
            next.sort_unstable();
            for start in next {
                if start == at {
                    at += 1000;
                }
            }
            victim.now += Duration::from_millis(100);
            victim.arrive(&ack(at, &[]));
            let mut more: Vec<u32> = victim
                .out
                .iter()
                .map(|s| s.seq.0.wrapping_sub(ISS.0 + 1))
                .collect();
            more.sort_unstable();
            for start in more {
                if start == at {
                    at += 1000;
                }
            }
        }
        assert_eq!(at, 20_000, "everything was sent again");
        victim.arrive(&ack(at, &[]));
        assert_eq!(victim.connection.acked(), 20_000);
        assert!(victim.connection.stats().timeouts >= 1);
    }
}

/// RFC 9293: MUST-37, MUST-38
#[test]
fn attack_17_windows_held_at_nothing_and_opened_by_single_bytes() {
    // Sockstress: probes go on, ever more rarely, and nothing grows.
    let mut victim = Victim::new(&bare(1040), 1000, 10_000);
    victim.write(10_000);
    let mut shut = ack(10_000, &[]);
    shut.window = 0;
    victim.hit(&shut);
    victim.write(100_000);
    assert_eq!(victim.out, []);
    let held = victim.connection.held();
    let mut probes = 0;
    while victim.now < T0 + Duration::from_secs(3600) {
        victim.now = victim.connection.poll_timeout().expect("the persist timer runs");
        victim.connection.on_timeout(victim.now);
        victim.drain();
        probes += victim.out.len();
        victim.hit(&shut);
    }
    assert!((50..80).contains(&probes), "{probes} probes in an hour");
    assert!(victim.connection.held() <= held);
    victim.within_bounds(10_000);
    // One byte at a time: the sender avoids silly windows, so it costs one segment per timeout.
    let mut sent = 0;
    let begin = victim.now;
    for index in 0..10_000_u32 {
        victim.now += Duration::from_millis(1);
        if let Some(at) = victim.connection.poll_timeout()
            && at <= victim.now
        {
            victim.connection.on_timeout(victim.now);
            victim.drain();
            sent += victim.out.len();
        }
        let info = victim.connection.info(victim.now);
        let mut drip = ack((info.acked + info.flight.get()) as u32, &[]);
        drip.window = u16::from(index % 2 == 0);
        victim.connection.on_segment(victim.now, &drip);
        victim.drain();
        sent += victim.out.len();
    }
    let seconds = victim.now.since(begin).as_millis() / 1000;
    assert!(sent as u64 <= 2 * seconds, "{sent} segments in {seconds} s");
    victim.delivers(110_000);
}

#[test]
fn attack_18_pulses_at_the_spacing_of_the_timeout() {
    // Shrew: everything is lost for 150 ms of every second, at which the minimum RTO of one second fires again.
    for profile in Profile::ALL {
        let mut config = Config::profile(profile);
        config.receive_buffer = Bytes(64 << 10);
        config.window_scale = Some(0);
        config.retries = u8::MAX;
        config.syn_retries = u8::MAX;
        config.patience.synack_retries = u8::MAX;
        let config = Arc::new(config);
        let setup = |bytes, close| EndSetup {
            config: Arc::clone(&config),
            iss: ISS,
            bytes,
            close,
            delay: Duration::from_millis(20),
            read_every: Duration::ZERO,
            read_bytes: 0,
        };
        let end = Instant::from_millis(60_000);
        let network = |hop: &Hop| {
            let phase = hop.at.as_nanos() / 1_000_000 % 1000;
            if hop.at > Instant::from_millis(500) && hop.at < end && phase < 150 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        };
        let ends = [
            setup(1 << 32, CloseWhen::Written),
            setup(0, CloseWhen::PeerClosed),
        ];
        let mut rig = Rig::new(ends, false, Duration::ZERO, network);
        let mut at = [0; 3];
        // A timer that was backed off to its cap when the attack stopped may take that long.
        for (index, until) in [60_000, 185_000, 195_000].into_iter().enumerate() {
            while rig.now < Instant::from_millis(until) && rig.step() {}
            at[index] = rig.ends[1].read;
        }
        println!("{profile:?}: {at:?}");
        // 64 KB (ns-2: 20 segments) per 40 ms.
        let full = at[2] - at[1];
        assert!(
            full > 4_000_000,
            "{profile:?}: {full} bytes in 10 s without attack"
        );
        assert!(at[1] - at[0] > full / 2, "{profile:?}: {at:?}");
    }
}

/// RFC 9293: MUST-7
#[test]
fn attack_20_option_bombs() {
    let options: &[&[u8]] = &[
        &[2, 0, 0, 0],
        &[2, 1, 0, 0],
        &[2, 255, 0, 0],
        &[3, 0, 0, 0],
        &[8, 1, 1, 1],
        &[5, 255, 1, 1],
        &[34, 40, 0, 0],
        &[255, 2, 255, 2],
        &[1; 40],
        &[0; 40],
        &[2, 4, 0, 1, 2, 4, 5, 180],
        &[1, 1, 1, 3],
    ];
    for bytes in options {
        if let Ok(segment) = read_syn(bytes) {
            let config = Arc::new(bare(1500));
            let mut connection = Connection::accept(T0, &config, ISS, &segment);
            assert!(connection.poll_transmit(T0).is_some());
            connection.check(false);
        }
    }
    assert!(
        read_syn(&[2, 0, 0, 0]).is_err()
            && read_syn(&[2, 1, 0, 0]).is_err()
            && read_syn(&[2, 255, 0, 0]).is_err()
    );
    // A scale of 255 is 14 (RFC 7323 2.3); of two MSS options the last counts.
    let syn = read_syn(&[3, 3, 255, 0]).expect("well formed");
    let mut connection = Connection::accept(T0, &Arc::new(bare(1500)), ISS, &syn);
    while connection.poll_transmit(T0).is_some() {}
    assert_eq!(connection.detail(T0).snd_scale, 14);
    assert_eq!(
        read_syn(&[2, 4, 0, 1, 2, 4, 5, 180]).map(|syn| syn.mss()),
        Ok(Some(1460))
    );
}

/// A SYN with these option bytes, as the parser reads it.
fn read_syn(options: &[u8]) -> Result<Segment, wire::Error> {
    let (source, destination) = ends();
    let blank = Segment {
        seq: IRS,
        flags: Flags::SYN,
        window: 1000,
        ttl: 64,
        overhead: 40 + options.len() as u8,
        ..Segment::default()
    };
    let mut bytes = [0; 100];
    let len = wire::encode(&mut bytes, &blank, source, destination, &[]).expect("it fits");
    bytes[40..40 + options.len()].copy_from_slice(options);
    correct_checksum(&mut bytes[..len]);
    wire::parse(&bytes[..len]).map(|parsed| parsed.segment)
}

fn ends() -> (SocketAddr, SocketAddr) {
    (
        "10.0.0.1:1".parse().expect("an address"),
        "10.0.0.2:2".parse().expect("an address"),
    )
}

fn correct_checksum(packet: &mut [u8]) {
    let (source, destination) = ends();
    packet[36..38].fill(0);
    let mut sum =
        wire::checksum::Sum::pseudo_header(source.ip(), destination.ip(), 6, packet.len() as u32 - 20);
    sum.add(&packet[20..]);
    packet[36..38].copy_from_slice(&sum.finish().to_be_bytes());
}

/// RFC 9293: MUST-3
#[test]
fn attack_21_damaged_headers_and_pointers_past_the_data() {
    let (source, destination) = ends();
    let mut bytes = [0; 200];
    let len = wire::encode(&mut bytes, &data(0, 50), source, destination, &[7; 50]).expect("it fits");
    let good = bytes[..len].to_vec();
    assert!(wire::parse(&good).is_ok());
    for bit in 0..len * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 0x80 >> (bit % 8);
        assert!(wire::parse(&bad).is_err(), "bit {bit} is noticed");
    }
    for offset in 0..16_u8 {
        let mut bad = good.clone();
        bad[32] = offset << 4;
        correct_checksum(&mut bad);
        let fits = (5..=15).contains(&offset) && 20 + usize::from(offset) * 4 <= len;
        let read = wire::parse(&bad);
        assert!(fits || read.is_err(), "a data offset of {offset}");
    }
    // An urgent pointer past everything: the data is data, and nothing else happens.
    let mut victim = Victim::new(&bare(1500), 1460, 14_600);
    for (pointer, at) in [(65_535, 0), (0, 100), (50, 200), (101, 300)] {
        let mut urgent = data(at, 100);
        urgent.flags = urgent.flags.with(Flags::URG);
        urgent.urgent = pointer;
        victim.hit(&urgent);
        assert_eq!(victim.connection.received(), u64::from(at) + 100);
    }
    victim.within_bounds(14_600);
    victim.receives(400, 10_000);
}

/// A connection in each state that exists after a SYN.
fn in_state(state: State) -> Victim {
    let mut victim = Victim::new(&bare(1040), 1000, 10_000);
    let (now, fin) = (T0, Flags::ACK.with(Flags::FIN));
    let close = |victim: &mut Victim| {
        victim.connection.shutdown(now, Half::Write);
        victim.drain();
    };
    let peer_fin = |victim: &mut Victim, acked: u32| {
        let mut segment = data(0, 0);
        segment.flags = fin;
        segment.ack = ISS + 1 + acked;
        victim.arrive(&segment);
    };
    match state {
        State::Established => {}
        State::FinWait1 => close(&mut victim),
        State::FinWait2 => {
            close(&mut victim);
            victim.arrive(&ack(1, &[]));
        }
        State::CloseWait => peer_fin(&mut victim, 0),
        State::Closing => {
            close(&mut victim);
            peer_fin(&mut victim, 0);
        }
        State::LastAck => {
            peer_fin(&mut victim, 0);
            close(&mut victim);
        }
        State::TimeWait => {
            close(&mut victim);
            peer_fin(&mut victim, 1);
        }
        State::SynReceived => {
            let mut syn = data(0, 0);
            syn.seq = IRS;
            syn.flags = Flags::SYN;
            victim.connection = Connection::accept(now, &Arc::new(bare(1040)), ISS, &syn);
            victim.drain();
        }
        State::SynSent => {
            victim.connection = Connection::connect(now, &Arc::new(bare(1040)), ISS);
            victim.drain();
        }
        State::Closed => victim.connection.abort(now),
    }
    victim.drain();
    assert_eq!(victim.connection.state(), state);
    victim
}

#[test]
fn attack_22_fin_rst_and_syn_with_data_in_every_state() {
    // (state, after FIN, after RST, after SYN), each with 100 bytes at RCV.NXT and a good ACK; RFC 9293 3.10.7, RFC 5961.
    use State::{
        CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, SynReceived, SynSent, TimeWait,
    };
    let table = [
        (SynSent, SynSent, SynSent, Established),
        (SynReceived, CloseWait, Closed, SynReceived),
        (Established, CloseWait, Closed, Established),
        (FinWait1, Closing, Closed, FinWait1),
        (FinWait2, TimeWait, Closed, FinWait2),
        (CloseWait, CloseWait, Closed, CloseWait),
        (Closing, Closing, Closed, Closing),
        (LastAck, LastAck, Closed, LastAck),
        (TimeWait, TimeWait, TimeWait, TimeWait),
        (Closed, Closed, Closed, Closed),
    ];
    for (state, fin, reset, syn) in table {
        for (flag, then) in [(Flags::FIN, fin), (Flags::RST, reset), (Flags::SYN, syn)] {
            let mut victim = in_state(state);
            let after_fin = matches!(state, CloseWait | Closing | LastAck | TimeWait);
            let mut segment = data(u32::from(after_fin), 100);
            segment.flags = Flags::ACK.with(flag);
            if state == SynSent && flag == Flags::RST {
                segment.ack = ISS + 500; // an ACK of nothing we sent: not a refusal
            }
            victim.hit(&segment);
            assert_eq!(victim.connection.state(), then, "{state:?} and {flag:?}");
            let opens = state == SynSent && flag == Flags::SYN; // RFC 9293 3.10.7.3: its data is queued
            let open = matches!(state, SynReceived | Established | FinWait1 | FinWait2);
            let takes = opens || open && flag == Flags::FIN;
            assert_eq!(
                victim.connection.received(),
                if takes { 100 } else { 0 },
                "{state:?} and {flag:?}"
            );
        }
    }
}

#[test]
fn attack_23_assassination_of_time_wait() {
    // RFC 1337: an old duplicate draws an ACK, the peer's reset in answer must not end TIME-WAIT.
    let mut victim = in_state(State::TimeWait);
    let until = victim.connection.poll_timeout().expect("2 MSL");
    victim.hit(&data(1, 100));
    assert_eq!(victim.out.len(), 1);
    let mut reset = data(1, 0);
    reset.flags = Flags::RST;
    victim.hit(&reset);
    assert_eq!(victim.connection.state(), State::TimeWait);
    assert_eq!(victim.connection.poll_timeout(), Some(until), "nor restart it");
    victim.now = until;
    victim.connection.on_timeout(until);
    assert!(core::iter::from_fn(|| victim.connection.poll_event()).any(|event| event == Event::Closed));
    assert_eq!(victim.connection.state(), State::Closed);
}

#[test]
fn attack_24_poisoned_timestamps() {
    let mut config = bare(1500);
    config.timestamps = true;
    let mut victim = Victim::new(&config, 1448, 14_480);
    victim.write(1000);
    let echo = victim.out[0].tsval;
    let first = victim.out[0].tsecr;
    let stamped = |at: u32, payload: u32, tsval: u32| {
        let mut segment = data(at, payload);
        segment.flags = segment.flags.with(Flags::TIMESTAMPS);
        segment.tsval = tsval;
        segment.tsecr = echo;
        segment
    };
    // The sequence number is right, the acknowledgment a guess.
    for (ack, flags) in [
        (0x4000_0000, Flags::ACK),
        (5000, Flags::ACK),
        (0, Flags::default()),
        (0, Flags::SYN),
    ] {
        let mut poison = stamped(0, 100, first.wrapping_add(0x7fff_0000));
        poison.ack = ISS + 1 + ack;
        poison.flags = Flags::TIMESTAMPS.with(flags);
        victim.hit(&poison);
        assert_eq!(victim.connection.received(), 0);
    }
    // Out of the window with a good ACK.
    victim.hit(&stamped(0x4000_0000, 100, first.wrapping_add(0x7fff_0000)));
    victim.hit(&stamped(0, 100, first.wrapping_add(1)));
    assert_eq!(
        victim.connection.received(),
        100,
        "the peer's own segments are not old"
    );
    assert_eq!(
        victim.out.last().map(|s| s.tsecr),
        victim.out.last().map(|_| first.wrapping_add(1))
    );
}
