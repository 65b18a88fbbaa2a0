//! Proportional rate reduction: how much to send during recovery and CWR.
//!
//! Every acknowledgment says how many bytes may leave, so that in-flight data ends at `ssthresh` without a pause.
//!
//! **Source.** RFC 6937 (its bounds CRB and SSRB) and RFC 9937, which obsoletes it: `RecoverFS` leaves out what was
//! SACKed before the episode and counts what the entering ACK acknowledged, and the bound depends on whether an ACK is
//! safe (`SND.UNA` advanced, nothing newly lost).
//! `Linux` is `tcp_cwnd_reduction` since 4.3: the share is of the window at the start of the episode (`prior_cwnd`).
//! From 3.2 to 4.2 it had the same share with the bound SSRB; the profile `linux-3.2` takes RFC 6937's share.
//! **Deviations.** RFC 9937 6.2 forces a fast retransmit when "SndCnt is 0" and nothing was sent; counted in bytes less than a
//! segment is no segment either, so here the first may always leave whole.

use crate::tcp::config::Prr as Variant;
use serde::{Deserialize, Serialize};

/// State of one episode. Units are those of the window.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(in crate::tcp) struct Prr {
    /// Delivered since the episode began.
    delivered: u64,
    /// Sent since the episode began.
    out: u64,
    /// Flight size at the start.
    recover_fs: u64,
}

/// What the ACK that starts the episode reported.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Entry {
    /// SND.NXT - SND.UNA after the ACK.
    pub(in crate::tcp) flight: u64,
    /// SACKed in the scoreboard, without what this ACK newly SACKed.
    pub(in crate::tcp) sacked_before: u64,
    /// Newly cumulatively acknowledged by this ACK.
    pub(in crate::tcp) acked: u64,
    /// Congestion window before it was reduced.
    pub(in crate::tcp) window: u64,
}

/// What one ACK reported.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct PrrAck {
    /// Newly acknowledged and SACKed.
    pub(in crate::tcp) delivered: u64,
    /// In flight after it.
    pub(in crate::tcp) in_flight: u64,
    /// SND.UNA advanced and nothing was newly marked lost.
    pub(in crate::tcp) safe: bool,
}

impl Prr {
    /// No episode.
    pub(in crate::tcp) const NONE: Prr = Prr {
        delivered: 0,
        out: 0,
        recover_fs: 0,
    };

    pub(in crate::tcp) fn enter(variant: Variant, entry: Entry) -> Prr {
        let recover_fs = match variant {
            Variant::Rfc9937 => (entry.flight + entry.acked).saturating_sub(entry.sacked_before),
            Variant::Linux => entry.window,
            Variant::Rfc6937Crb | Variant::Rfc6937Ssrb | Variant::Off => entry.flight,
        };
        Prr {
            delivered: 0,
            out: 0,
            recover_fs: recover_fs.max(1),
        }
    }

    /// What may be sent after this ACK: the window is `in_flight` plus this. `unit` is what windows are counted in: a
    /// byte, or a segment where packets are counted, and then the share is rounded up to whole segments.
    pub(in crate::tcp) fn on_ack(
        &mut self,
        variant: Variant,
        ssthresh: u64,
        mss: u64,
        unit: u64,
        ack: PrrAck,
    ) -> u64 {
        self.delivered += ack.delivered;
        let balance = self.delivered.saturating_sub(self.out);
        let mut count = if ack.in_flight > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            let share = share.div_ceil(u128::from(self.recover_fs) * u128::from(unit)) as u64 * unit;
            share.saturating_sub(self.out)
        } else {
            let limit = match variant {
                Variant::Rfc6937Crb => balance,
                Variant::Rfc6937Ssrb => balance.max(ack.delivered) + mss,
                Variant::Rfc9937 | Variant::Linux | Variant::Off => {
                    balance.max(ack.delivered) + if ack.safe { mss } else { 0 }
                }
            };
            limit.min(ssthresh - ack.in_flight)
        };
        if self.out == 0 {
            count = count.max(mss); // RFC 9937 6.2: force a fast retransmit on entry
        }
        count
    }

    /// What was out when the episode began and is not delivered yet.
    pub(in crate::tcp) fn undelivered(&self) -> u64 {
        self.recover_fs.saturating_sub(self.delivered)
    }

    #[inline]
    pub(in crate::tcp) fn on_sent(&mut self, amount: u64) {
        self.out += amount;
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Prr, PrrAck};
    use crate::tcp::Prr as Variant;
    use std::vec::Vec;

    extern crate std;

    /// Figure 1 of RFC 9937 (RFC 6937's first example): 20 segments out, one lost, ssthresh 10. With limited transmit
    /// two more were sent before the third duplicate ACK; the entering ACK newly SACKs one of three. At ACK 19 in-flight data
    /// is at ssthresh; there the figure sends once more, while the steps of 6.2 ("inflight > ssthresh") wait for ACK 20.
    #[test]
    fn one_loss_sends_on_every_second_ack() {
        let entry = Entry {
            flight: 22,
            sacked_before: 2,
            acked: 0,
            window: 20,
        };
        let sent_at = |variant, recover_fs: Option<u64>| -> Vec<u64> {
            let mut prr = Prr::enter(variant, entry);
            if let Some(recover_fs) = recover_fs {
                prr.recover_fs = recover_fs;
            }
            let mut in_flight = 22 - 3 - 1; // SACKed and lost are out
            let mut sent = Vec::new();
            for ack in 1..=17 {
                // ACKs 3 to 19 of the RFC's figure: the first enters recovery
                if ack > 1 {
                    in_flight -= 1;
                }
                let count = prr.on_ack(
                    variant,
                    10,
                    1,
                    1,
                    PrrAck {
                        delivered: 1,
                        in_flight,
                        safe: false,
                    },
                );
                prr.on_sent(count);
                in_flight += count;
                if count > 0 {
                    sent.push(ack);
                }
            }
            sent
        };
        assert_eq!(Prr::enter(Variant::Rfc9937, entry).recover_fs, 20);
        assert_eq!(
            sent_at(Variant::Rfc9937, None),
            [1, 3, 5, 7, 9, 11, 13, 15],
            "every second ACK sends until in-flight data is at ssthresh"
        );
        // RFC 6937 with limited transmit: RecoverFS 22. ACK 3 retransmits, then 5, 7, 9, 11, 14, 16, 19 send.
        assert_eq!(Prr::enter(Variant::Rfc6937Ssrb, entry).recover_fs, 22);
        let sent = sent_at(Variant::Rfc6937Ssrb, None);
        assert_eq!(sent, [1, 3, 5, 7, 9, 12, 14, 17]);
    }

    /// 15 of 20 lost: the bounds decide. The fifth segment's ACKs are all that comes back.
    #[test]
    fn heavy_loss_separates_the_bounds() {
        let sent = |variant| -> Vec<u64> {
            let mut prr = Prr::enter(
                variant,
                Entry {
                    flight: 20,
                    sacked_before: 2,
                    acked: 0,
                    window: 20,
                },
            );
            let mut in_flight = 20 - 3 - 15;
            let mut sent = Vec::new();
            for ack in 0..3 {
                if ack > 0 {
                    in_flight -= 1;
                }
                let count = prr.on_ack(
                    variant,
                    10,
                    1,
                    1,
                    PrrAck {
                        delivered: 1,
                        in_flight,
                        safe: false,
                    },
                );
                prr.on_sent(count);
                in_flight += count;
                sent.push(count);
            }
            sent
        };
        assert_eq!(sent(Variant::Rfc6937Ssrb), [2, 2, 2]);
        assert_eq!(sent(Variant::Rfc6937Crb), [1, 1, 1]);
        assert_eq!(
            sent(Variant::Rfc9937),
            [1, 1, 1],
            "no ACK is safe: SND.UNA does not move"
        );
    }
}
