//! Packet size: what large frames save in headers, and which size a channel with bit errors likes best.

pub(super) mod flow_sizes;
pub(super) mod wireless;
