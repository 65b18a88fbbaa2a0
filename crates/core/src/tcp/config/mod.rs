//! The configuration of a connection: [`Config`] and everything that is known of its switches.
//!
//! `table` and `groups` are the one list of switches; `switch` makes fields, profiles, keys and texts of it; `choices`
//! has the types of switches with named values. No behaviour of a connection depends on anything outside [`Config`].

#[macro_use]
mod switch;
mod choices;
mod groups;
mod table;

pub use choices::*;
pub use groups::{PathConfig, RetryLimits, RtoConfig};
pub use switch::{OnlyWith, Switch, SwitchForm};
pub use table::Config;

use crate::cc::CubicArithmetic;
use crate::parameter::ParameterKind;
use crate::tcp::ReceiveMemory;
use crate::time::Duration;
use crate::units::Bytes;

/// Bytes of the timestamps option with its padding.
const TIMESTAMPS: u32 = 12;

/// Times up to a day.
const TIME: ParameterKind = ParameterKind::Duration(Duration::ZERO, secs(86_400));

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

const fn secs(number: u64) -> Duration {
    Duration::from_secs(number)
}

impl Config {
    /// Bytes of IP and TCP headers without options.
    #[inline]
    pub const fn header(&self) -> u32 {
        match self.path.ip {
            IpVersion::V4 => 40,
            IpVersion::V6 => 60,
        }
    }

    /// The MSS this end announces: the MTU less IP and TCP headers (RFC 9293 3.7.1).
    #[inline]
    pub const fn mss(&self) -> u32 {
        self.mtu.saturating_sub(self.header())
    }

    /// Send MSS if the peer sent no option (RFC 9293 MUST-15).
    pub const fn default_mss(&self) -> u32 {
        match self.path.ip {
            IpVersion::V4 => 536,
            IpVersion::V6 => 1220,
        }
    }

    /// Fixes a tuned receive buffer at `receive_buffer`, as `SO_RCVBUF` does: the window scale is then the smallest with which
    /// such a window fits the 16-bit field (`tcp_select_initial_window`). A buffer that is not tuned stays as it is.
    pub fn fix_receive_buffer(&mut self) {
        if self.receive_memory.take().is_some() {
            let beyond = (self.receive_buffer.get() >> 16).checked_ilog2();
            let least = beyond.map_or(0, |bits| bits.min(13) as u8 + 1);
            self.window_scale = self.window_scale.map(|_| least);
        }
    }

    /// Whether HyStart finds that segments are paced. Linux asks since 5.6 (`hystart_update`: `sk_pacing_status`).
    pub(in crate::tcp) fn hystart_knows_pacing(&self) -> bool {
        self.pacing != Pacing::Off && self.cubic_arithmetic != CubicArithmetic::LinuxBefore43
    }

    /// 256ths of a receive buffer that counts memory, as Linux's does, that are window once full segments have come.
    pub fn window_share(&self) -> u64 {
        let options = if self.timestamps { TIMESTAMPS } else { 0 };
        let header = self.header() + options;
        ReceiveMemory::share(self.mtu.saturating_sub(header), header)
    }

    /// The largest window that this end offers to a sender of full segments: what its receive buffer stands for when tuning is done.
    pub fn largest_window(&self) -> Bytes {
        let buffer = match self.receive_memory {
            Some(memory) if memory.locked => memory.buffer,
            Some(memory) => memory.most.max(memory.buffer),
            None => return self.receive_buffer,
        };
        Bytes((u128::from(buffer) * u128::from(self.window_share()) / 256) as u64)
    }

    /// Whether what an undo by D-SACK waits for is counted as today's Linux does: after a timeout has judged what is lost, and with the
    /// probe that is out.
    pub(in crate::tcp) fn undoes_as_linux(&self) -> bool {
        self.timeout_rules == TimeoutRules::Linux && self.dsack_rules == DsackRules::Linux
    }

    /// Whether the connection measures the rate of its path, which estimated Initial Spreading uses.
    pub fn measures_path_rate(&self) -> bool {
        self.initial_spreading == InitialSpreading::Estimated && self.spreading_pair && !self.sack1_recovery
    }

    /// Whether what connections measured of a path is kept for later connections between the same hosts.
    #[inline]
    pub fn remembers_paths(&self) -> bool {
        self.initial_spreading == InitialSpreading::Estimated && !self.spreading_memory.is_zero()
    }
}

impl RtoConfig {
    /// `wait`, the delay of an acknowledgment, or, where that bounds it, a jiffy less than the floor of the timeout (Linux `tcp_delack_max`).
    #[inline(always)]
    pub(in crate::tcp) fn bound_ack(&self, wait: Duration) -> Duration {
        if !self.bounds_acks || wait + self.granularity <= self.min {
            return wait;
        }
        wait.min(self.longest_ack_delay())
    }

    #[cold]
    fn longest_ack_delay(&self) -> Duration {
        let jiffy = self.granularity.as_nanos().max(1);
        let floor = self.min.as_nanos().div_ceil(jiffy).max(2);
        Duration::from_nanos((floor - 1).saturating_mul(jiffy))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Profile, SwitchForm};
    use crate::parameter::{ParameterKind, Value, ValueError};
    use crate::units::Bytes;
    extern crate std;
    use std::collections::BTreeSet;

    #[test]
    fn every_switch_has_a_name_of_its_own_a_text_and_sources() {
        let mut names = BTreeSet::new();
        for switch in Config::SWITCHES {
            assert!(names.insert(switch.name()), "{} stands twice", switch.name());
            assert!(
                switch.doc.ends_with('.') && !switch.doc.contains("  "),
                "{}",
                switch.doc
            );
            if let SwitchForm::Values(kinds) = switch.form {
                assert!(
                    switch.key.is_none() || !kinds.is_empty(),
                    "{} cannot be written",
                    switch.name()
                );
            }
            for profile in Profile::ALL {
                let (value, source) = switch.cell(profile);
                assert_eq!(
                    value,
                    switch.shown(&Config::profile(profile)),
                    "{}",
                    switch.name()
                );
                assert!(!value.is_empty() && !source.is_empty(), "{}", switch.name());
            }
        }
        for name in ["mtu", "max_window", "min_rto", "path.ip", "patience.fin_wait2"] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn a_buffer_of_ones_own_has_the_least_scale_that_fits_it() {
        for (bytes, scale) in [
            (5_800, 0),
            (65_535, 0),
            (65_536, 1),
            (8_000_000, 7),
            (33_554_432, 10),
            (1 << 40, 14),
        ] {
            let mut config = Config::profile(Profile::Linux);
            config.receive_buffer = Bytes(bytes);
            config.fix_receive_buffer();
            assert_eq!(
                (config.receive_memory, config.window_scale),
                (None, Some(scale)),
                "{bytes}"
            );
        }
        for profile in [Profile::Linux2015, Profile::Ns2Sack, Profile::Rfc] {
            let mut config = Config::profile(profile);
            config.fix_receive_buffer();
            assert_eq!(config, Config::profile(profile));
        }
    }

    #[test]
    fn hystart_knows_of_pacing_since_linux_5_6() {
        use super::Pacing;
        let known = |profile: Profile, pacing: Pacing| {
            let mut config = Config::profile(profile);
            config.pacing = pacing;
            config.hystart_knows_pacing()
        };
        for pacing in [Pacing::Linux, Pacing::Full] {
            assert!(known(Profile::Linux, pacing) && known(Profile::Rfc, pacing));
            assert!(!known(Profile::Linux2015, pacing) && !known(Profile::Linux3_2, pacing));
        }
        assert!(!known(Profile::Linux, Pacing::Off));
    }

    #[test]
    fn a_tuned_buffer_stands_for_the_window_that_its_segments_carry() {
        // A packet of 1500 bytes occupies 256 + 2048 of memory, and 1448 of them are data: 1448 x 256 / 2304 is 160 of 256.
        let mut config = Config::profile(Profile::Linux);
        assert_eq!(config.window_share(), 160);
        assert_eq!(config.largest_window(), Bytes(33_554_432 * 160 / 256));
        config.timestamps = false;
        assert_eq!(config.window_share(), 162); // 1460 x 256 / 2304
        // One of one's own is the window.
        config.receive_buffer = Bytes(500_000);
        config.fix_receive_buffer();
        assert_eq!(config.largest_window(), Bytes(500_000));
        assert_eq!(
            Config::profile(Profile::Linux2015).largest_window(),
            Bytes(6_291_456)
        );
    }

    #[test]
    fn profiles_have_names_of_their_own_and_differ() {
        for (index, profile) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(Profile::by_name(profile.name()), Some(profile));
            let same = |other: &&Profile| Config::profile(**other) == Config::profile(profile);
            assert_eq!(Profile::ALL[..index].iter().find(same), None);
        }
        assert_eq!(Profile::by_name("linux-2.4"), None);
    }

    #[test]
    fn every_word_of_every_switch_sets_what_it_says_and_others_are_refused() {
        for switch in Config::SWITCHES {
            let SwitchForm::Values(kinds) = switch.form else {
                continue;
            };
            let mut config = Config::profile(Profile::Linux);
            for kind in kinds {
                if let ParameterKind::Choice(words) = kind {
                    for word in *words {
                        switch.set(&mut config, Value::Choice(word)).expect(word);
                        assert_eq!(switch.shown(&config), *word, "{}", switch.name());
                    }
                    let unknown = switch.set(&mut config, Value::Choice("word"));
                    assert_eq!(unknown, Err(ValueError::Range), "{}", switch.name());
                }
                if let ParameterKind::Integer(low, high) = *kind {
                    for number in [low, high] {
                        switch.set(&mut config, Value::Integer(number)).expect("in range");
                    }
                    let above = switch.set(&mut config, Value::Integer(high + 1));
                    assert_eq!(above, Err(ValueError::Range), "{}", switch.name());
                }
                if let ParameterKind::Flag = kind {
                    switch.set(&mut config, Value::Flag(true)).expect("a flag");
                    assert_eq!(switch.set(&mut config, Value::Integer(1)), Err(ValueError::Type));
                }
            }
        }
    }
}
