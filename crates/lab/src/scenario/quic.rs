//! Traffic over QUIC: kinds `quic` and `quic-web`.

use super::distribution::{arrivals, distribution};
use super::document::Table;
use super::error::{Error, ErrorKind};
use super::keys::Dimension;
use super::read::Section;
use super::resolve::group_nodes;
use fleetfoot_core::units::Bytes;
use fleetfoot_sim::spec::{
    QUIC_BUILT, Quic, QuicController, QuicTransport, QuicWeb, TlsHandshake, TrafficKind,
};

/// The transfers in `section`, whose packets pass links of `path_mtu` bytes.
pub(super) fn transfers(section: &Section, path_mtu: u32) -> Result<Quic, Error> {
    Ok(Quic {
        size: distribution(&section.need("size")?, Dimension::Bytes)?,
        interarrival: arrivals(&section.need("arrivals")?)?,
        count: section.find("count")?.map(|field| field.integer()).transpose()?,
        transport: transport(section, path_mtu)?,
    })
}

/// The pages in `section`, whose packets pass links of `path_mtu` bytes.
pub(super) fn pages(section: &Section, path_mtu: u32) -> Result<QuicWeb, Error> {
    Ok(QuicWeb {
        count: section.need("count")?.integer()? as u32,
        document: distribution(&section.need("document")?, Dimension::Bytes)?,
        objects: section.need("objects")?.integer()? as u32,
        object: distribution(&section.need("object")?, Dimension::Bytes)?,
        request: section.need("request")?.bytes()?,
        think: distribution(&section.need("think")?, Dimension::Time)?,
        server_time: distribution(&section.need("server_time")?, Dimension::Time)?,
        transport: transport(section, path_mtu)?,
    })
}

/// Whether this program can play the traffic of the document.
///
/// # Errors
/// The first group that needs QUIC, of [`ErrorKind::NotBuilt`], in a program without it.
pub(super) fn built(document: &Table) -> Result<(), Error> {
    if QUIC_BUILT {
        return Ok(());
    }
    let kinds = group_nodes(document)
        .iter()
        .filter_map(|node| node.as_table()?.get("kind"));
    for kind in kinds {
        let word = kind.as_text().unwrap_or_default();
        if [TrafficKind::Quic, TrafficKind::QuicWeb]
            .iter()
            .any(|quic| quic.name() == word)
        {
            return Err(Error::at(
                &kind.place,
                "traffic.kind",
                format!("`{word}` needs QUIC, and this program was built without it"),
            )
            .help(
                &kind.place,
                "build it with `--features quic`, or use `transfer` or `web` for TCP",
            )
            .of_kind(ErrorKind::NotBuilt));
        }
    }
    Ok(())
}

fn transport(section: &Section, path_mtu: u32) -> Result<QuicTransport, Error> {
    let tcp = section.need("tcp")?;
    if tcp.given {
        return Err(tcp
            .fail("`tcp` has no effect on QUIC, whose endpoints have keys of their own")
            .help(
                tcp.place(),
                "use `controller`, `initial_window`, `ecn` and the other keys of this kind",
            ));
    }
    let room = path_mtu.saturating_sub(UDP_HEADERS);
    if room < SMALLEST {
        return Err(Error::at(
            &section.place,
            &section.path,
            format!("QUIC needs datagrams of {SMALLEST} bytes (RFC 9000 14), and the path takes {room} (mtu {path_mtu})"),
        )
        .help(&section.place, format!("an `mtu` of at least {} on every link of the path", SMALLEST + UDP_HEADERS)));
    }
    let largest_datagram = match section.find("largest_datagram")? {
        Some(field) => {
            let bytes = field.bytes()?.get() as u32;
            if bytes > room {
                return Err(field
                    .fail(format!(
                        "datagrams of {bytes} B do not fit through the path (mtu {path_mtu})"
                    ))
                    .help(field.place(), format!("at most \"{room} B\"")));
            }
            bytes
        }
        None => room.min(USUAL),
    };
    let number = |key| -> Result<Option<u32>, Error> {
        let field = section.find(key)?;
        Ok(field.map(|field| field.integer()).transpose()?.map(|n| n as u32))
    };
    let handshake = TlsHandshake::by_name(section.need("handshake")?.choice()?).unwrap_or(TlsHandshake::Full);
    let token = match section.find("token")? {
        Some(field) => field.flag()?,
        None => handshake != TlsHandshake::Full,
    };
    Ok(QuicTransport {
        controller: QuicController::by_name(section.need("controller")?.choice()?)
            .unwrap_or(QuicController::QuinnCubic),
        initial_window: section.need("initial_window")?.bytes()?,
        ecn: section.need("ecn")?.flag()?,
        handshake,
        token,
        certificate_chain: Bytes(section.need("certificate_chain")?.bytes()?.get()),
        largest_datagram: largest_datagram as u16,
        ack_every: number("ack_every")?,
        max_ack_delay: section
            .find("max_ack_delay")?
            .map(|field| field.duration())
            .transpose()?,
        stream_window: section.need("stream_window")?.bytes()?,
    })
}

/// IPv4 and UDP headers.
const UDP_HEADERS: u32 = 28;

/// UDP payload that QUIC needs (RFC 9000 14).
const SMALLEST: u32 = 1_200;

/// UDP payload up to which quinn searches unless it is told otherwise.
const USUAL: u32 = 1_452;

#[cfg(test)]
mod tests {
    use super::super::{Scenario, Setting};
    use fleetfoot_sim::spec::Traffic;

    fn read(keys: &str, mtu: u32) -> Result<Traffic, String> {
        let text = format!(
            "[network]\nkind = \"dumbbell\"\n\
             bottleneck = {{ rate = \"10 Mbit/s\", delay = \"10 ms\", mtu = {mtu} }}\n[[traffic]]\n{keys}\n"
        );
        let scenario = Scenario::parse("test.toml", &text).map_err(|error| error.to_string())?;
        let resolved = scenario
            .resolve(&Setting::none())
            .map_err(|error| error.to_string())?;
        Ok(resolved.spec.groups[0].traffic.clone())
    }

    const TRANSFERS: &str =
        "kind = \"quic\"\nsize = \"100 kB\"\narrivals = { dist = \"poisson\", rate = \"1 per second\" }\n";

    #[test]
    #[cfg(not(feature = "quic"))]
    fn without_the_feature_one_sentence_names_it() {
        let pages = "kind = \"quic-web\"\nthink = \"1 s\"";
        for (keys, kind) in [(TRANSFERS, "`quic` needs"), (pages, "`quic-web` needs")] {
            let error = read(keys, 1_500).expect_err("not built");
            for said in [kind, "--features quic", "test.toml:5:"] {
                assert!(error.contains(said), "{error}");
            }
        }
    }

    #[cfg(feature = "quic")]
    mod built {
        use super::*;
        use fleetfoot_core::time::Duration;
        use fleetfoot_core::units::Bytes;
        use fleetfoot_sim::spec::{QuicController, QuicTransport, TlsHandshake};

        #[test]
        fn transfers_and_pages_can_be_written() {
            let Ok(Traffic::Quic(plain)) = read(TRANSFERS, 1_500) else {
                panic!("transfers")
            };
            assert_eq!(plain.transport, QuicTransport::default());
            let keys = format!(
                "{TRANSFERS}count = 3\ncontroller = \"reno\"\ninitial_window = \"24 kB\"\necn = false\n\
                 handshake = \"0-rtt\"\ncertificate_chain = \"4 kB\"\nlargest_datagram = \"1300 B\"\n\
                 ack_every = 10\nmax_ack_delay = \"5 ms\"\nstream_window = \"64 kB\""
            );
            let Ok(Traffic::Quic(written)) = read(&keys, 1_500) else {
                panic!("transfers")
            };
            assert_eq!(written.count, Some(3));
            let expected = QuicTransport {
                controller: QuicController::Reno,
                initial_window: Bytes(24_000),
                ecn: false,
                handshake: TlsHandshake::ZeroRtt,
                token: true,
                certificate_chain: Bytes(4_000),
                largest_datagram: 1_300,
                ack_every: Some(10),
                max_ack_delay: Some(Duration::from_millis(5)),
                stream_window: Bytes(64_000),
            };
            assert_eq!(written.transport, expected);
            for (keys, token) in [
                ("", false),
                ("token = true", true),
                ("handshake = \"resumed\"", true),
                ("handshake = \"0-rtt\"\ntoken = false", false),
            ] {
                let Ok(Traffic::Quic(read)) = read(&format!("{TRANSFERS}{keys}"), 1_500) else {
                    panic!("transfers")
                };
                assert_eq!(read.transport.token, token, "{keys}");
            }
            let Ok(Traffic::QuicWeb(web)) = read("kind = \"quic-web\"\nthink = \"1 s\"", 1_300) else {
                panic!("pages")
            };
            assert_eq!((web.count, web.objects, web.request), (1, 40, Bytes(300)));
            assert_eq!(web.transport.largest_datagram, 1_272);
        }

        #[test]
        fn mistakes_are_reported_with_their_place_and_what_would_do() {
            let with = |keys: &str| format!("{TRANSFERS}{keys}");
            for (keys, mtu, said) in [
                (
                    with("controller = \"bbr\""),
                    1_500,
                    vec!["bbr", "quinn-bbr", "westwood", ":8:"],
                ),
                (
                    with("handshake = \"1-rtt\""),
                    1_500,
                    vec!["full", "resumed", "0-rtt", ":8:"],
                ),
                (with("initial_window = \"1 kB\""), 1_500, vec!["2400", ":8:"]),
                (
                    with("largest_datagram = \"1473 B\""),
                    1_500,
                    vec!["do not fit", "1472 B", ":8:"],
                ),
                (with("ack_every = 0"), 1_500, vec!["1", ":8:"]),
                (
                    with("data_unit = \"1000 B\""),
                    1_500,
                    vec!["largest_datagram", ":8:"],
                ),
                (with(""), 1_227, vec!["1200", "1228", ":4:"]),
            ] {
                let error = read(&keys, mtu).expect_err(&keys);
                for said in said {
                    assert!(error.contains(said), "{keys}: {said}: {error}");
                }
            }
        }
    }
}
