//! How much may be in flight: the congestion controller, validation of its window, delivery rates, memory of paths.

pub(in crate::tcp) mod controller;
pub(in crate::tcp) mod new_cwv;
pub(in crate::tcp) mod path_memory;
pub(in crate::tcp) mod rates;
pub(in crate::tcp) mod standalone;
pub(in crate::tcp) mod usage;
