//! Switches of the kernel's TCP for one link only: by its routes, by sysctls of the command's namespace, by a queue discipline that
//! paces. Nothing of this machine's other connections is touched.

use crate::ip::ip;
use crate::{Error, Namespace};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

/// What is set of the senders at both ends of a link; `None` is as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderSwitches {
    /// Congestion control, by the route.
    pub congestion_control: Option<String>,
    /// Initial window in segments, by the route.
    pub initial_window: Option<u32>,
    /// Whether connections ask for ECN.
    pub ecn: Option<bool>,
    /// Whether the queue discipline `fq` paces what is sent.
    pub pacing: Option<bool>,
}

impl SenderSwitches {
    /// The congestion control of connections that choose none, as this machine has it.
    pub fn usual_congestion_control() -> String {
        let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        name.map_or_else(|_| String::from("an unknown one"), |name| name.trim().to_owned())
    }

    /// What is set here, and otherwise what `other` sets.
    #[must_use]
    pub fn or(self, other: &SenderSwitches) -> SenderSwitches {
        SenderSwitches {
            congestion_control: self
                .congestion_control
                .or_else(|| other.congestion_control.clone()),
            initial_window: self.initial_window.or(other.initial_window),
            ecn: self.ecn.or(other.ecn),
            pacing: self.pacing.or(other.pacing),
        }
    }

    /// Whether what is sent is paced.
    pub fn paces(&self) -> bool {
        self.pacing == Some(true)
    }

    /// Whether nothing is set.
    pub fn is_none(&self) -> bool {
        *self == SenderSwitches::default()
    }

    /// What is set, as it could be typed.
    pub fn commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        let options = self.route_options();
        if !options.is_empty() {
            commands.push(format!("ip route change NETWORK dev DEVICE{options}"));
        }
        if let Some(ecn) = self.ecn {
            commands.push(format!("sysctl net.ipv4.tcp_ecn={}", u8::from(ecn)));
        }
        if self.paces() {
            commands.push(String::from("tc qdisc replace dev DEVICE root fq"));
        }
        commands
    }

    fn route_options(&self) -> String {
        let mut options = String::new();
        if let Some(name) = &self.congestion_control {
            options.push_str(&format!(" congctl {name}"));
        }
        if let Some(segments) = self.initial_window {
            options.push_str(&format!(" initcwnd {segments}"));
        }
        if self.ecn == Some(true) {
            options.push_str(" features ecn");
        }
        options
    }

    /// Sets them on an interface with these addresses, in the namespace of this thread. `through`: the address by which
    /// everything else is reached. `own`: the namespace is there for this link only, and sysctls may be set.
    pub(crate) fn set(
        &self,
        device: &str,
        addresses: &[String; 2],
        through: Option<&[String; 2]>,
        own: bool,
    ) -> Result<(), Error> {
        let options = self.route_options();
        if !options.is_empty() {
            let [four, six] = addresses;
            let mut lines = String::new();
            if let Ok(address) = four.parse::<Ipv4Addr>() {
                let network = Ipv4Addr::from_bits(address.to_bits() & !3);
                lines.push_str(&format!(
                    "route change {network}/30 dev {device} proto kernel scope link src {four}{options}\n"
                ));
            }
            if let Some([four, _]) = through {
                lines.push_str(&format!(
                    "route change default via {four} dev {device}{options}\n"
                ));
            }
            ip(&lines)?;
            // Where there is no IPv6, there is none on this link.
            if let Ok(address) = six.parse::<Ipv6Addr>() {
                let network = Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX));
                let _ = ip(&format!(
                    "route change {network}/64 dev {device} proto kernel metric 256{options}"
                ));
                if let Some([_, six]) = through {
                    let _ = ip(&format!("route change default via {six} dev {device}{options}"));
                }
            }
        }
        if let Some(ecn) = self.ecn.filter(|_| own) {
            let path = "/proc/sys/net/ipv4/tcp_ecn";
            std::fs::write(path, if ecn { "1" } else { "0" })
                .map_err(|cause| Error::new(format!("cannot set {path}"), cause))?;
        }
        if self.paces() {
            let output = Command::new("tc")
                .args(["qdisc", "replace", "dev", device, "root", "fq"])
                .output()
                .map_err(|cause| Error::new("cannot run tc (Debian package iproute2)", cause))?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Err(Error::new(
                    format!("tc qdisc replace dev {device} root fq"),
                    std::io::Error::other(text),
                ));
            }
        }
        Ok(())
    }

    /// Whether the kernel offers the queue discipline that paces; tried in a network namespace that is gone afterwards.
    ///
    /// # Errors
    /// Why it does not.
    pub fn try_pacing() -> Result<(), Error> {
        Namespace::run(|namespace| namespace.shell("tc qdisc replace dev lo root fq").map(|_| ()))
    }

    /// Congestion controls that the kernel offers.
    pub fn congestion_controls() -> Vec<String> {
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        text.map_or_else(
            |_| Vec::new(),
            |text| text.split_whitespace().map(str::to_owned).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::SenderSwitches;

    #[test]
    fn what_is_set_can_be_typed() {
        assert!(SenderSwitches::default().commands().is_empty());
        let switches = SenderSwitches {
            congestion_control: Some(String::from("bbr")),
            initial_window: Some(4),
            ecn: Some(true),
            pacing: Some(true),
        };
        assert_eq!(
            switches.commands(),
            [
                "ip route change NETWORK dev DEVICE congctl bbr initcwnd 4 features ecn",
                "sysctl net.ipv4.tcp_ecn=1",
                "tc qdisc replace dev DEVICE root fq"
            ]
        );
    }
}
