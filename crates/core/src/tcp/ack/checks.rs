//! What must hold on a scoreboard after every event; `state::invariants` asks.
//!
//! **Source.** None: it is not seen from outside.
//! **Deviations.** None.

use crate::tcp::ack::records::SACKED;
use crate::tcp::ack::scoreboard::Scoreboard;

impl Scoreboard {
    /// Asserts that the records are those from `una` to `nxt`, and that no sum is more than what is out.
    pub(in crate::tcp) fn check_ends(&self, una: u64, nxt: u64) {
        if let (Some(first), Some(last)) = (self.ring.front(), self.ring.back()) {
            assert!(
                first.seq == una && last.end() == nxt,
                "records from {} to {}, SND.UNA {una}, SND.NXT {nxt}",
                first.seq,
                last.end()
            );
        }
        assert!(
            self.marks.sacked <= self.out && self.marks.lost + self.marks.sacked <= self.out,
            "sums of the scoreboard: {:?}",
            self.sums()
        );
    }

    /// Asserts that the sums are what a recount gives, that records follow each other and that the SACKed runs agree with them.
    pub(in crate::tcp) fn check_sums(&self) {
        let counted = self.recount();
        assert_eq!(
            counted,
            self.sums(),
            "the scoreboard's sums are what a recount gives"
        );
        let (out, sacked, lost, retrans, ..) = counted;
        let gone = sacked + lost + u64::from(self.marks.duplicates) * u64::from(self.mss);
        assert_eq!(self.pipe(), (out + retrans).saturating_sub(gone), "the pipe");
        let mut end = None;
        for record in self.ring.iter() {
            assert!(
                record.len > 0 && end.is_none_or(|end| end == record.seq),
                "records follow each other"
            );
            end = Some(record.end());
        }
        let mut at = 0;
        for run in &self.marks.runs {
            assert!(
                at < run.start && run.start < run.end,
                "runs are apart and in order"
            );
            at = run.end;
            let (first, last) = (self.index_from(run.start), self.index_from(run.end));
            assert!(
                (first..last).all(|index| self.ring[index].is(SACKED))
                    && last - first == run.segments as usize,
                "what a run covers is SACKED"
            );
        }
        let in_runs: u32 = self.marks.runs.iter().map(|run| run.segments).sum();
        assert_eq!(
            in_runs, self.marks.sacked_segments,
            "the runs cover all that is SACKed"
        );
    }
}
