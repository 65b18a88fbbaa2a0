//! TLS of traffic over TCP: keys `tls`, `handshake` and `certificate_chain`.

use super::error::Error;
use super::read::Section;
use fleetfoot_sim::spec::{Tls, TlsHandshake, TrafficKind};

/// The TLS of a group of this kind; `None`: it has none.
///
/// # Errors
/// A key of the handshake is written and there is none.
pub(super) fn tls(kind: TrafficKind, section: &Section) -> Result<Option<Tls>, Error> {
    if !matches!(kind, TrafficKind::Web | TrafficKind::RequestResponse) {
        return Ok(None); // QUIC has keys of the same names
    }
    let (handshake, chain) = (section.need("handshake")?, section.need("certificate_chain")?);
    if section.need("tls")?.choice()? == "none" {
        return match [&handshake, &chain].into_iter().find(|field| field.given) {
            Some(field) => {
                let name = field.path.rsplit('.').next().unwrap_or_default();
                Err(field
                    .fail(format!("`{name}` has no effect: there is no TLS"))
                    .help(field.place(), "write tls = \"1.3\", or leave it out"))
            }
            None => Ok(None),
        };
    }
    Ok(Some(Tls {
        handshake: TlsHandshake::by_name(handshake.choice()?).unwrap_or(TlsHandshake::Full),
        certificate_chain: chain.bytes()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use super::*;
    use fleetfoot_core::units::Bytes;
    use fleetfoot_sim::spec::{GroupSpec, Traffic};

    fn read(keys: &str) -> Result<GroupSpec, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\" }}\n\
             [[traffic]]\nthink = \"1 s\"\n{keys}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        Ok(resolved.spec.groups[0].clone())
    }

    #[test]
    fn tls_and_streams_can_be_written() {
        let plain = read("kind = \"web\"").expect("pages");
        assert_eq!(plain.tls, None);
        assert!(matches!(plain.traffic, Traffic::Web(web) if !web.multiplex && web.connections == 6));
        let secure = read("kind = \"web\"\ntls = \"1.3\"\nmultiplex = true").expect("pages");
        let usual = Tls {
            handshake: TlsHandshake::Full,
            certificate_chain: Bytes(2_500),
        };
        assert_eq!(secure.tls, Some(usual));
        assert!(matches!(secure.traffic, Traffic::Web(web) if web.multiplex));
        let exchanges = "kind = \"request-response\"\nresponse = \"10 kB\"\ntls = \"1.3\"\n\
                         handshake = \"0-rtt\"\ncertificate_chain = \"4 kB\"";
        let written = Tls {
            handshake: TlsHandshake::ZeroRtt,
            certificate_chain: Bytes(4_000),
        };
        assert_eq!(read(exchanges).expect("exchanges").tls, Some(written));
    }

    #[test]
    fn mistakes_are_reported_with_their_place_and_what_would_do() {
        for (keys, said) in [
            ("kind = \"web\"\ntls = \"1.2\"", ["1.3", ":7:"]),
            (
                "kind = \"web\"\nhandshake = \"0-rtt\"",
                ["`handshake` has no effect", "tls = \"1.3\""],
            ),
            (
                "kind = \"web\"\ntls = \"none\"\ncertificate_chain = \"4 kB\"",
                ["`certificate_chain` has no effect", ":8:"],
            ),
            (
                "kind = \"closed-loop\"\nsize = \"1 kB\"\ntls = \"1.3\"",
                ["tls", ":8:"],
            ),
        ] {
            let error = read(keys).expect_err(keys);
            for said in said {
                assert!(error.contains(said), "{keys}: {said}: {error}");
            }
        }
    }
}
