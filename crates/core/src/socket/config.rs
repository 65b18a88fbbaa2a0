//! `StackConfig`: the host a [`Stack`](super::Stack) is, with the defaults its sockets start from.
//!
//! **Source.** `ip-sysctl` of Linux: the names are in each field's line. The defaults are Linux's.

use crate::tcp::{Config, IpVersion, KeepAlive, ReceiveMemory};
use crate::time::Duration;
use crate::units::Bytes;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Sizes of a socket's buffer as `tcp_rmem` and `tcp_wmem` give them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Least a socket gets under pressure.
    pub min: u64,
    /// What a socket starts with.
    pub default: u64,
    /// What tuning may raise it to.
    pub max: u64,
}

/// When SYN cookies are sent (`tcp_syncookies`, RFC 4987 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SynCookies {
    /// Never: a SYN that finds the queue full is dropped.
    Off,
    /// When the SYN queue is full.
    OnOverflow,
    /// Always, without keeping state.
    Always,
}

/// What TCP Fast Open may do (RFC 7413; the bits of `tcp_fastopen`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen {
    /// Send data on SYNs (bit 1).
    pub client: bool,
    /// Accept data on SYNs (bit 2).
    pub server: bool,
    /// Send data without a cookie (bit 4).
    pub client_without_cookie: bool,
    /// Accept data without a cookie (bit 0x200).
    pub server_without_cookie: bool,
    /// Every listener serves it, without `TCP_FASTOPEN` (bit 0x400).
    pub every_listener: bool,
    /// Key the server's cookies are made with.
    pub key: [u32; 4],
}

impl FastOpen {
    /// What a value of `tcp_fastopen` means.
    pub const fn from_bits(bits: u32, key: [u32; 4]) -> FastOpen {
        FastOpen {
            client: bits & 1 != 0,
            server: bits & 2 != 0,
            client_without_cookie: bits & 4 != 0,
            server_without_cookie: bits & 0x200 != 0,
            every_listener: bits & 0x400 != 0,
            key,
        }
    }
}

/// A host: its addresses and what new sockets start with.
#[derive(Clone, Debug, PartialEq)]
pub struct StackConfig {
    /// Own addresses; the first of a family is the source of connections opened here.
    pub addresses: Vec<IpAddr>,
    /// The endpoint's switches: profile, MTU, ECN, SYN retries, RTO.
    pub tcp: Config,
    /// `tcp_rmem`: the maximum decides the window scale.
    pub receive_memory: Memory,
    /// `initrwnd` of the route: segments that the first window holds at most.
    pub first_receive_segments: Option<u32>,
    /// `tcp_wmem`.
    pub send_memory: Memory,
    /// `net.core.rmem_max`: cap of `SO_RCVBUF` before doubling.
    pub receive_memory_cap: u64,
    /// `net.core.wmem_max`: cap of `SO_SNDBUF` before doubling.
    pub send_memory_cap: u64,
    /// `tcp_synack_retries`.
    pub syn_ack_retries: u8,
    /// `tcp_fin_timeout`: how long a closed socket waits in FIN-WAIT-2.
    pub fin_timeout: Duration,
    /// How long TIME-WAIT lasts (Linux: 60 s, not configurable).
    pub time_wait: Duration,
    /// `tcp_max_tw_buckets`: connections in TIME-WAIT, and closed ones in FIN-WAIT-2, that are remembered at once (Linux: by its memory).
    pub time_wait_limit: u32,
    /// `tcp_rfc1337`: a reset does not end TIME-WAIT.
    pub rfc1337: bool,
    /// `tcp_orphan_retries` (0 means 8): retransmissions of a connection nobody holds.
    pub orphan_retries: u8,
    /// `somaxconn`: cap of `listen`'s backlog.
    pub somaxconn: u32,
    /// `tcp_max_syn_backlog`: half-open connections per listener.
    pub syn_backlog: u32,
    /// `tcp_syncookies`.
    pub syn_cookies: SynCookies,
    /// `tcp_abort_on_overflow`: reset instead of dropping what finds the accept queue full.
    pub abort_on_overflow: bool,
    /// `tcp_fastopen`, `tcp_fastopen_key`.
    pub fast_open: FastOpen,
    /// `tcp_notsent_lowat`.
    pub notsent_lowat: u64,
    /// `tcp_keepalive_time`, `_intvl`, `_probes`.
    pub keep_alive: KeepAlive,
    /// `ip_default_ttl`.
    pub ttl: u8,
    /// `ip_local_port_range`.
    pub ephemeral_ports: RangeInclusive<u16>,
    /// Where ports, initial sequence numbers and cookie secrets come from.
    pub seed: u64,
}

impl StackConfig {
    /// A host with these addresses and Linux's defaults around `tcp`.
    pub fn new(addresses: Vec<IpAddr>, tcp: Config) -> StackConfig {
        StackConfig {
            addresses,
            tcp,
            receive_memory: Memory {
                min: 4096,
                default: 131_072,
                max: 6_291_456,
            },
            first_receive_segments: None,
            send_memory: Memory {
                min: 4096,
                default: 16_384,
                max: 4_194_304,
            },
            receive_memory_cap: 4_194_304,
            send_memory_cap: 4_194_304,
            syn_ack_retries: 5,
            fin_timeout: Duration::from_secs(60),
            time_wait: Duration::from_secs(60),
            time_wait_limit: 65_536,
            rfc1337: false,
            orphan_retries: 0,
            somaxconn: 4096,
            syn_backlog: 512,
            syn_cookies: SynCookies::OnOverflow,
            abort_on_overflow: false,
            fast_open: FastOpen::from_bits(1, [0; 4]),
            notsent_lowat: u64::from(u32::MAX),
            keep_alive: KeepAlive {
                idle: Duration::from_secs(7200),
                interval: Duration::from_secs(75),
                probes: 9,
            },
            ttl: 64,
            ephemeral_ports: 32_768..=60_999,
            seed: 1,
        }
    }

    /// The least scale with which the largest buffer fits a 16-bit window field (RFC 7323 2.3).
    pub(super) fn window_scale(space: u64) -> u8 {
        let mut scale = 0;
        while scale < 14 && space >> scale > 65_535 {
            scale += 1;
        }
        scale
    }

    /// Window that a buffer of `space` bytes can hold: half of it, the rest is overhead (`tcp_win_from_space` with the
    /// ratio connections start with).
    pub(super) const fn window_from_space(space: u64) -> u64 {
        space / 2
    }

    /// The endpoint's configuration for a socket with these options.
    pub(super) fn for_socket(&self, options: &super::Options, v6: bool) -> Config {
        let mut config = self.tcp.clone();
        config.path.ip = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        config.path.pmtu_discovery &= options.mtu_discover != 0; // IP_PMTUDISC_DONT
        if let Some(user) = options.max_segment {
            config.mtu = config.mtu.min(u32::from(user) + config.header());
        }
        let space = match options.receive_buffer {
            Some(locked) => {
                config.receive_buffer = Bytes(StackConfig::window_from_space(locked));
                config.receive_buffer.get()
            }
            None => self.receive_memory.max,
        };
        config.receive_memory = Some(ReceiveMemory {
            buffer: options.receive_buffer.unwrap_or(self.receive_memory.default),
            most: self.receive_memory.max,
            locked: options.receive_buffer.is_some(),
            first_segments: self.first_receive_segments,
        });
        config.window_scale = config.window_scale.map(|_| StackConfig::window_scale(space));
        config.send_buffer = Bytes::MAX; // counted here, by what the kernel's buffers would take
        config.nagle = !options.no_delay;
        config.syn_retries = options.syn_count.unwrap_or(config.syn_retries);
        let patience = &mut config.patience;
        patience.synack_retries = options.syn_count.unwrap_or(self.syn_ack_retries);
        if options.syn_count.is_some() {
            patience.syn_linear_timeouts = 0;
        }
        patience.orphan_retries = Some(self.orphan_retries);
        patience.fin_wait2 = None; // a record waits instead (`time_wait`)
        if !options.user_timeout.is_zero() {
            patience.user_timeout = Some(options.user_timeout);
        }
        config.keep_alive = options.keep_alive.then_some(options.keep_alive_values);
        if let Some(name) = options.congestion {
            config.congestion_control = name;
            config.congestion_control_values = None;
        }
        config.msl = self.time_wait.mul_div(1, 2);
        config
    }
}
