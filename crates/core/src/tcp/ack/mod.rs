//! What an acknowledgment means to the sender: delivery, loss detection, recovery, undo, timers.

pub(in crate::tcp) mod checks;
pub(in crate::tcp) mod delivered;
pub(in crate::tcp) mod delivery;
pub(in crate::tcp) mod loss_detection;
pub(in crate::tcp) mod ns2_agent;
pub(in crate::tcp) mod ns2_sack1;
pub(in crate::tcp) mod pipeline;
pub(in crate::tcp) mod prr;
pub(in crate::tcp) mod rack;
pub(in crate::tcp) mod records;
pub(in crate::tcp) mod recovery;
pub(in crate::tcp) mod rto;
pub(in crate::tcp) mod sacked;
pub(in crate::tcp) mod scoreboard;
pub(in crate::tcp) mod state;
pub(in crate::tcp) mod timeout;
pub(in crate::tcp) mod tlp;
pub(in crate::tcp) mod undo;
