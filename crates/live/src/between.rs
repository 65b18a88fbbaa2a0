//! A bump in the wire: frames pass between two interfaces that are there.

use crate::claim::Claim;
use crate::ip::Facts;
use crate::offload::Offloads;
use crate::{Clock, Emulator, Error, Passage};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use std::io;
use std::os::fd::AsFd;

/// Two interfaces of this thread's namespace, made ready: what changes packets is switched off at both, and on again when this
/// is dropped.
pub struct Between {
    names: [String; 2],
    mtus: [u32; 2],
    offloads: [Offloads; 2],
    _claims: [Claim; 2],
}

/// What passed, and how much did not.
pub struct Passed {
    /// From the first interface to the second, and back.
    pub directions: [Passage; 2],
    /// Frames that were lost because this machine did not read them in time.
    pub missed: u32,
}

/// Names of the interfaces of this thread's namespace, in the kernel's order.
pub fn interfaces() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for found in getifaddrs().into_iter().flatten() {
        if !names.contains(&found.interface_name) {
            names.push(found.interface_name);
        }
    }
    names
}

impl Between {
    /// Makes the interfaces ready.
    ///
    /// # Errors
    /// One is not there, is a loopback or no Ethernet interface, belongs to a bridge, over which frames would come back, or to another process that
    /// forwards; or something that changes
    /// packets cannot be switched off.
    pub fn prepare(names: [&str; 2]) -> Result<Between, Error> {
        let fail = |text: String| Err(Error::new(text, io::ErrorKind::InvalidInput));
        if names[0] == names[1] {
            return fail(format!("{} is one interface: two are wanted", names[0]));
        }
        let facts = [Facts::of(names[0])?, Facts::of(names[1])?];
        for (name, facts) in names.iter().zip(&facts) {
            if facts.loopback {
                return fail(format!("{name} is a loopback: nothing is behind it"));
            }
            if !facts.ethernet {
                return fail(format!(
                    "{name} is no Ethernet interface (a tunnel): frames that come there have no header that the other side could use"
                ));
            }
            if let Some(master) = &facts.master {
                return fail(format!(
                    "{name} belongs to {master}, over which frames would come back (ip link set {name} nomaster)"
                ));
            }
        }
        let claim = |name: &str| {
            let index = if_nametoindex(name)
                .map_err(|errno| Error::new(format!("cannot find the interface {name}"), errno))?;
            Claim::take(name, index)
        };
        Ok(Between {
            _claims: [claim(names[0])?, claim(names[1])?],
            names: names.map(str::to_owned),
            mtus: facts.map(|facts| facts.mtu),
            offloads: [Offloads::switch_off(names[0])?, Offloads::switch_off(names[1])?],
        })
    }

    /// MTUs of both.
    pub const fn mtus(&self) -> [u32; 2] {
        self.mtus
    }

    /// What was on and is off meanwhile, by interface.
    pub fn switched_off(&self) -> Vec<(&str, Vec<&'static str>)> {
        let both = self.names.iter().zip(&self.offloads);
        both.map(|(name, offloads)| (name.as_str(), offloads.names()))
            .filter(|(_, names)| !names.is_empty())
            .collect()
    }

    /// Lets frames pass until `stop` can be read from. From the first interface to the second they go through `directions[0]`.
    ///
    /// # Errors
    /// An interface is gone, or packet sockets are not permitted.
    pub fn run(&self, directions: [Passage; 2], stop: &impl AsFd) -> Result<Passed, Error> {
        let longest = self.mtus[0].max(self.mtus[1]);
        let sides = [self.names[0].as_str(), self.names[1].as_str()];
        crate::thread::prefer();
        let mut emulator = Emulator::new(sides, longest, directions)?;
        emulator.take_all()?;
        let clock = Clock::start();
        let _awake = crate::thread::stay_awake();
        emulator.run(&clock, stop)?;
        Ok(Passed {
            missed: emulator.missed(),
            directions: emulator.into_directions(),
        })
    }
}
