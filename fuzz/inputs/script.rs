//! Any bytes as a packetdrill script: nothing panics; they are a script, or are refused with a place and a message. A
//! script is then played against our TCP.

use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_drill::backend::Setup;
use fleetfoot_drill::virtual_time::Virtual;
use fleetfoot_drill::{Definitions, Rules, parse};
use fleetfoot_lab::scenario::set_switch;
use std::net::{IpAddr, Ipv4Addr};

/// One input of the fuzzer.
pub(crate) fn run(text: &[u8]) {
    match parse(text, &Definitions::default()) {
        Ok(script) => {
            let setup = Setup {
                local: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
                remote: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
                mtu: 1500,
                mapped: false,
            };
            let mut backend = Virtual::new(&setup, Config::profile(Profile::Linux), set_switch);
            let _ = fleetfoot_drill::run(&script, &mut backend, &setup, &Rules::default());
        }
        Err(error) => assert!(error.line > 0 && error.column > 0 && !error.message.is_empty()),
    }
}
