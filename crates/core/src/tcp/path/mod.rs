//! What the path reports: ICMP errors and path MTU discovery.

pub(in crate::tcp) mod cold;
pub(in crate::tcp) mod icmp;
pub(in crate::tcp) mod mtu;
