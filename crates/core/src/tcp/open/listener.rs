//! What answers in LISTEN and CLOSED: which SYN opens a connection, and who gets a reset.
//!
//! **Source.** RFC 9293 3.10.7.1, 3.10.7.2; RFC 4987 3.6 (SYN cookies).
//! **Deviations.** A SYN with FIN is dropped, as Linux does.

use crate::packet::{Flags, Segment};
use crate::seq::SeqNumber;
use crate::siphash::siphash;
use crate::time::Instant;
use core::net::{IpAddr, SocketAddr};

/// The answer to a segment that belongs to no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Open a connection with [`Connection::accept`](crate::tcp::Connection::accept).
    Accept,
    /// Send this reset.
    Reset(Segment),
    /// Say nothing.
    Drop,
}

/// RFC 9293 3.10.7.2: a segment for a port where somebody listens.
pub fn on_listen(segment: &Segment) -> Answer {
    if segment.flags.contains(Flags::CORRUPT) || segment.flags.contains(Flags::RST) {
        return Answer::Drop;
    }
    if segment.flags.contains(Flags::ACK) {
        return on_closed(segment);
    }
    if segment.flags.contains(Flags::FIN) {
        return Answer::Drop; // with SYN: RFC 9293 lets it open; Linux and the BSDs take it for an attack
    }
    if segment.flags.contains(Flags::SYN) {
        return Answer::Accept;
    }
    Answer::Drop
}

/// RFC 9293 3.10.7.1: a segment for a port where nobody is.
pub fn on_closed(segment: &Segment) -> Answer {
    if segment.flags.contains(Flags::CORRUPT) || segment.flags.contains(Flags::RST) {
        return Answer::Drop;
    }
    let mut reset = Segment {
        flags: Flags::RST.with(Flags::DF),
        ttl: 64,
        overhead: Segment::IPV4_TCP_HEADER,
        ..Segment::default()
    };
    if segment.flags.contains(Flags::ACK) {
        reset.seq = segment.ack;
    } else {
        reset.seq = SeqNumber(0);
        reset.ack = segment.seq + segment.sequence_len();
        reset.flags = reset.flags.with(Flags::ACK);
    }
    Answer::Reset(reset)
}

/// SYN cookies: the SYN-ACK's sequence number holds what the listener would have to remember.
///
/// 24 bits are a keyed hash of names and minute plus the place of the peer's MSS in a table; the top 8 are the minute.
/// Other options survive only in the timestamp that comes back: its low six bits hold scale, SACK and ECN. Accurate ECN needs none:
/// the acknowledgment itself shows it (RFC 9768 5.1).
///
/// **Source.** RFC 4987 3.6 and appendix A; D. J. Bernstein's construction; Linux `syncookies.c` for the bits of the
/// timestamp and the age.
#[derive(Clone, Copy, Debug)]
pub struct SynCookies {
    key: [u64; 2],
}

/// What a cookie can say about the peer's MSS: the most frequent values.
const MSS_TABLE: [u16; 4] = [536, 1300, 1440, 1460];
/// Minutes a cookie is good for.
const COOKIE_AGE: u32 = 2;
/// Low bits of a timestamp that hold options; a scale of 15 is "none".
const OPTION_BITS: u32 = 0x3f;

impl SynCookies {
    /// Cookies under a secret.
    pub const fn new(key: [u64; 2]) -> SynCookies {
        SynCookies { key }
    }

    /// The SYN as it will be remembered: of its options, what a cookie can hold.
    pub fn reduce(syn: &Segment) -> Segment {
        let mut syn = *syn;
        if !syn.flags.contains(Flags::TIMESTAMPS) {
            syn.flags = syn.flags.without(Flags::SACK_PERMITTED.with(Flags::SCALE));
            let accurate = !matches!(syn.ace(), 0 | 0b011);
            syn.set_ace(if accurate { 0b100 } else { 0 });
        }
        let mss = syn.mss().unwrap_or(MSS_TABLE[0]);
        let index = MSS_TABLE.iter().rposition(|&known| known <= mss).unwrap_or(0);
        syn.flags = syn.flags.with(Flags::MSS).without(Flags::COOKIE);
        syn.options[0] = syn.options[0] & 0x00ff_0000 | u32::from(MSS_TABLE[index]);
        syn.payload = 0;
        syn
    }

    /// The sequence number for the answer to `syn` (see [`reduce`](SynCookies::reduce)) from the end named by `tuple`.
    pub fn issue(&self, now: Instant, tuple: (SocketAddr, SocketAddr), syn: &Segment) -> SeqNumber {
        let index = MSS_TABLE
            .iter()
            .position(|&known| Some(known) == syn.mss())
            .unwrap_or(0);
        let minute = minute(now);
        let low = self.hash(tuple, u64::from(minute)).wrapping_add(index as u32) & 0x00ff_ffff;
        let start = self.hash(tuple, u64::MAX).wrapping_add(syn.seq.0);
        SeqNumber(start.wrapping_add(minute << 24).wrapping_add(low))
    }

    /// Puts options into the timestamp of the answer.
    pub fn mark(answer: &mut Segment, syn: &Segment) {
        if !answer.flags.contains(Flags::TIMESTAMPS) {
            return;
        }
        let scale = syn.window_scale().map_or(15, |scale| u32::from(scale.min(14)));
        let sack = u32::from(syn.flags.contains(Flags::SACK_PERMITTED)) << 4;
        let ecn = u32::from(answer.ace() == 1) << 5;
        let marked = answer.tsval & !OPTION_BITS | scale | sack | ecn;
        // Never ahead of the clock.
        answer.tsval = if marked > answer.tsval {
            marked.wrapping_sub(OPTION_BITS + 1)
        } else {
            marked
        };
    }

    /// The SYN and our sequence number that an acknowledgment stands for, if its cookie is good.
    pub fn redeem(
        &self,
        now: Instant,
        tuple: (SocketAddr, SocketAddr),
        ack: &Segment,
    ) -> Option<(SeqNumber, Segment)> {
        if ack.flags.intersects(Flags::SYN.with(Flags::RST)) || !ack.flags.contains(Flags::ACK) {
            return None;
        }
        let (iss, irs) = (ack.ack - 1, ack.seq - 1);
        let rest = iss.0.wrapping_sub(self.hash(tuple, u64::MAX)).wrapping_sub(irs.0);
        let age = (minute(now).wrapping_sub(rest >> 24)) & 0xff;
        if age >= COOKIE_AGE {
            return None;
        }
        let issued = u64::from(minute(now).wrapping_sub(age));
        let index = rest.wrapping_sub(self.hash(tuple, issued)) & 0x00ff_ffff;
        let mss = *MSS_TABLE.get(index as usize)?;
        let mut flags = Flags::SYN.with(Flags::MSS);
        let (mut word, mut tsval) = (u32::from(mss), 0);
        if ack.flags.contains(Flags::TIMESTAMPS) {
            flags = flags.with(Flags::TIMESTAMPS);
            tsval = ack.tsval;
            let scale = ack.tsecr & 15;
            if scale < 15 {
                flags = flags.with(Flags::SCALE);
                word |= scale << 16;
            }
            if ack.tsecr & 16 != 0 {
                flags = flags.with(Flags::SACK_PERMITTED);
            }
            if ack.tsecr & 32 != 0 {
                flags = flags.with(Flags::ECE).with(Flags::CWR);
            }
        }
        if ack.ace() >= 2 {
            flags = flags.with(Flags::AE); // it takes this for a request (RFC 9768 3.1.3)
        }
        let syn = Segment {
            seq: irs,
            tsval,
            options: [word, 0, 0, 0, 0, 0],
            window: ack.window,
            flags,
            ttl: 64,
            overhead: ack.overhead,
            ..Segment::default()
        };
        Some((iss, syn))
    }

    fn hash(&self, tuple: (SocketAddr, SocketAddr), count: u64) -> u32 {
        let mut bytes = [0_u8; 44];
        for (at, address) in [tuple.0, tuple.1].into_iter().enumerate() {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            bytes[16 * at..16 * at + 16].copy_from_slice(&ip);
            bytes[32 + 2 * at..34 + 2 * at].copy_from_slice(&address.port().to_be_bytes());
        }
        bytes[36..].copy_from_slice(&count.to_le_bytes());
        siphash(self.key, &bytes) as u32
    }
}

fn minute(now: Instant) -> u32 {
    (now.as_nanos() / 60_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::{MSS_TABLE, SynCookies};
    use crate::packet::{Flags, Segment};
    use crate::seq::SeqNumber;
    use crate::tcp::EcnFeedback;
    use crate::tcp::accecn::{Agreed, of_syn};
    use crate::time::Instant;
    use core::net::{IpAddr, Ipv4Addr, SocketAddr};

    const TUPLE: (SocketAddr, SocketAddr) = (
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 80),
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000),
    );

    fn syn(mss: u16, scale: Option<u8>, timestamps: bool, sack: bool) -> Segment {
        let mut flags = Flags::SYN.with(Flags::MSS);
        let on = |flags: Flags, yes: bool, flag| if yes { flags.with(flag) } else { flags };
        flags = on(flags, scale.is_some(), Flags::SCALE);
        flags = on(flags, timestamps, Flags::TIMESTAMPS);
        flags = on(flags, sack, Flags::SACK_PERMITTED);
        Segment {
            seq: SeqNumber(7_000_000),
            options: [
                u32::from(mss) | u32::from(scale.unwrap_or(0)) << 16,
                0,
                0,
                0,
                0,
                0,
            ],
            tsval: 500,
            window: 1000,
            flags,
            ..Segment::default()
        }
    }

    fn answer_to(cookies: SynCookies, now: Instant, syn: &Segment) -> Segment {
        let mut answer = Segment {
            seq: cookies.issue(now, TUPLE, syn),
            tsval: 0x1234_5678,
            flags: Flags::SYN.with(Flags::ACK),
            ..Segment::default()
        };
        if syn.flags.contains(Flags::TIMESTAMPS) {
            answer.flags = answer.flags.with(Flags::TIMESTAMPS);
        }
        SynCookies::mark(&mut answer, syn);
        answer
    }

    fn ack_of(answer: &Segment, syn: &Segment) -> Segment {
        Segment {
            seq: syn.seq + 1,
            ack: answer.seq + 1,
            tsval: syn.tsval + 1,
            tsecr: answer.tsval,
            window: 900,
            flags: Flags::ACK.with(Flags(answer.flags.0 & Flags::TIMESTAMPS.0)),
            ..Segment::default()
        }
    }

    #[test]
    fn a_cookie_holds_the_options_it_can() {
        let cookies = SynCookies::new([1, 2]);
        let now = Instant::from_millis(100_000_000);
        for mss in [500, 536, 1299, 1300, 1459, 1460, 9000] {
            for scale in [None, Some(0), Some(7), Some(14)] {
                for (timestamps, sack) in [(true, true), (true, false), (false, true)] {
                    let sent = syn(mss, scale, timestamps, sack);
                    let kept = SynCookies::reduce(&sent);
                    let answer = answer_to(cookies, now, &kept);
                    assert!(0x1234_5678 - answer.tsval < 128 || !timestamps);
                    let (iss, got) = cookies
                        .redeem(now, TUPLE, &ack_of(&answer, &sent))
                        .expect("a good cookie");
                    assert_eq!(iss, answer.seq);
                    assert_eq!(got.seq, sent.seq);
                    let best = MSS_TABLE.iter().copied().filter(|&known| known <= mss).max();
                    assert_eq!(got.mss(), Some(best.unwrap_or(536)));
                    assert_eq!(got.window_scale(), scale.filter(|_| timestamps));
                    assert_eq!(got.flags.contains(Flags::SACK_PERMITTED), sack && timestamps);
                }
            }
        }
    }

    /// RFC 9768: AE-82
    #[test]
    fn the_acknowledgment_itself_shows_accurate_ecn() {
        let cookies = SynCookies::new([1, 2]);
        let now = Instant::from_millis(100_000_000);
        for timestamps in [false, true] {
            for asked in [0, 0b011, 0b111] {
                let mut sent = syn(1460, None, timestamps, true);
                sent.set_ace(asked);
                let kept = SynCookies::reduce(&sent);
                // What a server of Accurate ECN answers, and what each acknowledgment stands for.
                for (answered, said) in [(0b001, 0), (0b010, 0b010), (0b011, 0b011), (0b011, 0)] {
                    let mut answer = answer_to(cookies, now, &kept);
                    answer.set_ace(answered);
                    SynCookies::mark(&mut answer, &kept);
                    let mut ack = ack_of(&answer, &sent);
                    ack.set_ace(said);
                    let (_, got) = cookies.redeem(now, TUPLE, &ack).expect("a good cookie");
                    let classic = answered == 1 && timestamps;
                    let expected = match (said >= 2, classic) {
                        (true, _) => Agreed::Accurate,
                        (false, true) => Agreed::Classic,
                        (false, false) => Agreed::No,
                    };
                    assert_eq!(of_syn(got.ace(), EcnFeedback::Accurate), expected, "{asked:03b}");
                }
                // Without timestamps no bit holds classic ECN.
                let agreed = match (asked, timestamps) {
                    (0, _) | (0b011, false) => Agreed::No,
                    (0b011, true) => Agreed::Classic,
                    _ => Agreed::Accurate,
                };
                assert_eq!(of_syn(kept.ace(), EcnFeedback::Accurate), agreed, "{asked:03b}");
            }
        }
    }

    #[test]
    fn a_cookie_ages_and_cannot_be_moved() {
        let cookies = SynCookies::new([1, 2]);
        let sent = syn(1460, None, false, false);
        let now = Instant::from_millis(600_000);
        let answer = answer_to(cookies, now, &sent);
        let ack = ack_of(&answer, &sent);
        let minute = crate::time::Duration::from_secs(60);
        assert!(cookies.redeem(now + minute, TUPLE, &ack).is_some());
        assert!(
            cookies.redeem(now + minute + minute, TUPLE, &ack).is_none(),
            "too old"
        );
        assert!(
            cookies.redeem(now, (TUPLE.1, TUPLE.0), &ack).is_none(),
            "other names"
        );
        assert!(
            SynCookies::new([1, 3]).redeem(now, TUPLE, &ack).is_none(),
            "other secret"
        );
        let guessed = (0..10_000)
            .filter(|&guess| {
                let mut forged = ack;
                forged.ack = ack.ack + 1 + guess * 7919;
                cookies.redeem(now, TUPLE, &forged).is_some()
            })
            .count();
        assert_eq!(guessed, 0);
    }
}
