//! A router between three network namespaces in a row: what arrives, in which order, and what is counted. Needs root; says so and skips
//! without.
#![cfg(target_os = "linux")]

#[path = "router/broadcasts.rs"]
mod broadcasts;
#[path = "router/configs.rs"]
mod configs;
#[path = "router/ipv6_forwarding.rs"]
mod ipv6_forwarding;
#[path = "router/own_addresses.rs"]
mod own_addresses;
#[path = "router/row.rs"]
mod row;
#[path = "router/traffic.rs"]
mod traffic;

use configs::{bridge, queue, rings, routed, xdp};
use fleetfoot_core::queue::{DropReason, Limit};
use fleetfoot_core::units::Rate;
use fleetfoot_live::router::{Config, Discard, Event, Offloads, Order, Queue, Snapshot};
use fleetfoot_live::{Between, Format};
use row::{Row, Running, has, skips};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use traffic::{SIZE, echo, everything, no_loss, numbered, transfer};

#[test]
fn a_bridge_carries_every_byte_both_ways_with_every_ring() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::bridged();
        let config = bridge(queue("fq-codel", None), queue("favourtail", None), None, ring);
        let running = Running::start(&row, config);
        everything(&row, ["10.0.1.3", "fd00:1::3"]);
        let snapshot = running.stop();
        no_loss(&snapshot);
        let [left, right] = &snapshot.interfaces[..] else {
            panic!("two interfaces")
        };
        assert!(left.output.bytes > 2 * SIZE as u64 && right.output.bytes > 2 * SIZE as u64);
        assert_eq!(
            left.input.discarded() + right.input.discarded(),
            0,
            "{snapshot:?}"
        );
    }
}

#[test]
fn a_router_carries_every_byte_both_ways_with_every_ring() {
    if skips() {
        return;
    }
    let mut pairs: Vec<[Format; 2]> = rings().into_iter().map(|ring| [ring; 2]).collect();
    // And one beside another.
    pairs.extend(xdp().map(|ring| [ring, Format::Frames]));
    for pair in pairs {
        let row = Row::routed();
        let mut config = routed(queue("drr", None), queue("sp-fq", None), None, pair[0]);
        config.interfaces[1].ring = pair[1];
        let running = Running::start(&row, config);
        everything(&row, ["10.0.2.1", "fd00:2::1"]);
        // By way of another router, which here is the far host itself.
        row.far.ip("address add 10.0.3.1/24 dev lo");
        everything(&row, ["10.0.3.1", "fd00:2::1"]);
        let snapshot = running.stop();
        no_loss(&snapshot);
        let [left, right] = &snapshot.interfaces[..] else {
            panic!("two interfaces")
        };
        assert!(left.output.bytes > 4 * SIZE as u64 && right.output.bytes > 4 * SIZE as u64);
        assert!(
            left.input.kernel > 0,
            "ARP and neighbour discovery are the kernel's"
        );
        let fates = left.input.kernel + left.input.discarded() + right.output.queued;
        assert_eq!(left.input.received, fates, "each is counted once: {snapshot:?}");
    }
}

#[test]
fn a_shaped_bridge_keeps_its_rate_and_counts_what_its_queue_drops() {
    if skips() {
        return;
    }
    let row = Row::bridged();
    let rate = Some(Rate::from_bps(20_000_000));
    let small = queue("drop-tail", Some(Limit::Packets(20)));
    let running = Running::start(&row, bridge(small.clone(), small, rate, Format::Frames));
    let began = std::time::Instant::now();
    transfer(&row, "10.0.1.3".parse().expect("an address"));
    // Whatever this machine does besides only adds to it.
    let least = Duration::from_secs_f64(SIZE as f64 * 8.0 / 20e6);
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    let snapshot = running.stop();
    let full: u64 = snapshot
        .interfaces
        .iter()
        .map(|at| at.output.drops[DropReason::Full as usize])
        .sum();
    let dropped: u64 = snapshot.interfaces.iter().map(|at| at.output.dropped()).sum();
    assert!(
        full > 0 && full == dropped,
        "TCP fills a queue of 20 packets: {snapshot:?}"
    );
    assert!(snapshot.interfaces.iter().all(|at| at.output.delay.sum_ns > 0));
}

#[test]
fn a_reload_under_load_loses_and_moves_nothing() {
    if skips() {
        return;
    }
    reload_under_load(Format::Frames, bridge, &Row::bridged(), "10.0.1.3");
    for ring in [Some(Format::Frames), xdp()].into_iter().flatten() {
        reload_under_load(ring, routed, &Row::routed(), "10.0.2.1");
    }
}

type Configure = fn(Queue, Queue, Option<Rate>, Format) -> Config;

fn reload_under_load(ring: Format, configure: Configure, row: &Row, to: &str) {
    // Four packets of 1028 bytes in a millisecond at most are 33 Mbit/s: below each rate, so that what is lost, a reload has lost.
    let rates = [
        None,
        Some(Rate::from_bps(50_000_000)),
        Some(Rate::from_bps(400_000_000)),
    ];
    let names = [
        "drop-tail",
        "fq-codel",
        "favourtail",
        "superpacket",
        "pie",
        "drr",
        "sp-h",
    ];
    let plain = || queue("drop-tail", None);
    let running = Running::start(row, configure(plain(), plain(), None, ring));
    // So that the neighbours are known: three packets for each wait at most.
    echo(row, to.parse().expect("an address"));
    let got = numbered(row, to, 8000, |number| {
        if number % 100 == 50 {
            let round = (number / 100) as usize;
            let (name, rate) = (names[round % names.len()], rates[round % rates.len()]);
            let config = configure(queue("codel", None), queue(name, None), rate, ring);
            running.order(Order::Reload(Ok(Box::new(config))));
        }
    });
    let missing: Vec<u32> = (0..8000).filter(|number| !got.contains(number)).collect();
    assert!(
        missing.is_empty(),
        "{ring:?}: {missing:?}: {:?}",
        running.snapshot()
    );
    assert!(got.len() == 8000 && got.is_sorted(), "{ring:?}");
    let events = running.events();
    let reloads = events
        .iter()
        .filter(|event| matches!(event, Event::Reloaded { .. }))
        .count();
    assert_eq!(reloads, 80, "{events:?}");
    let snapshot = running.stop();
    assert_eq!(snapshot.reloads, 80);
    no_loss(&snapshot);
}

#[test]
fn a_file_that_cannot_be_followed_leaves_the_one_before() {
    if skips() {
        return;
    }
    let row = Row::bridged();
    let good = bridge(queue("codel", None), queue("codel", None), None, Format::Frames);
    let running = Running::start(&row, good.clone());
    running.order(Order::Reload(Err(String::from("router.toml:3: unknown key"))));
    let mut other = good.clone();
    other.interfaces[0].name = String::from("b9");
    running.order(Order::Reload(Ok(Box::new(other))));
    let offloads = Offloads::Refuse;
    running.order(Order::Reload(Ok(Box::new(Config { offloads, ..good }))));
    echo(&row, "10.0.1.3".parse().expect("an address"));
    let refused: Vec<String> = running
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::ReloadRefused(why) => Some(why),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), 3);
    assert!(
        refused[0].contains("unknown key") && refused[1..].iter().all(|why| why.contains("restart")),
        "{refused:?}"
    );
    let snapshot = running.stop();
    assert_eq!((snapshot.reloads, snapshot.refused_reloads), (0, 3));
}

#[test]
fn hostile_frames_are_counted_by_reason_and_come_out_nowhere() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("drop-tail", None), queue("drop-tail", None), None, ring),
        );
        echo(&row, "10.0.2.1".parse().expect("an address"));
        let hardware = row.hardware("b0");
        let frames = row::hostile(hardware);
        let before = running.snapshot();
        row.near.run({
            let frames: Vec<Vec<u8>> = frames.iter().map(|(frame, _)| frame.clone()).collect();
            move || row::inject("a0", &frames)
        });
        let discarded = |snapshot: &Snapshot| snapshot.interfaces[0].input.discarded();
        let sent = frames.iter().filter(|(_, why)| why.is_some()).count() as u64;
        let snapshot = running.until(|snapshot| discarded(snapshot) >= discarded(&before) + sent);
        for reason in Discard::ALL {
            let counted = |snapshot: &Snapshot| snapshot.interfaces[0].input.discards[reason as usize];
            let sent = frames.iter().filter(|(_, why)| *why == Some(reason)).count() as u64;
            assert_eq!(counted(&snapshot) - counted(&before), sent, "{}", reason.name());
        }
        let out = |snapshot: &Snapshot| snapshot.interfaces[1].output.queued;
        assert_eq!(out(&snapshot), out(&before), "nothing of it came out");
        // The end of a time to live, an unknown network, and a packet that is too long may be answered, and nothing else is.
        let answers = snapshot.icmp_errors - before.icmp_errors;
        let may = frames
            .iter()
            .filter(|(_, why)| matches!(why, Some(Discard::TtlExpired | Discard::NoRoute)))
            .count()
            - 1; // the source of one is a broadcast address
        assert!(answers <= may as u64 && answers > 0, "{answers} of {may}");
        // And honest packets still pass.
        echo(&row, "10.0.2.1".parse().expect("an address"));
        running.stop();
    }
}

#[test]
fn hosts_are_told_of_an_expired_time_to_live_and_of_a_smaller_mtu() {
    if skips() || !has("ping") {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        row.middle.ip("link set dev b1 mtu 1300");
        row.far.ip("link set dev c0 mtu 1300");
        let running = Running::start(
            &row,
            routed(queue("drop-tail", None), queue("drop-tail", None), None, ring),
        );
        let ping = |arguments: &str| {
            let arguments: Vec<String> = arguments.split(' ').map(String::from).collect();
            let output = row.near.run(move || {
                let mut command = std::process::Command::new("ping");
                command.args(["-n", "-c", "1", "-W", "10"]).args(arguments);
                command.output().expect("ping is there")
            });
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        for (arguments, answer) in [
            ("-t 1 10.0.2.1", "Time to live exceeded"),
            ("-t 1 fd00:2::1", "Hop limit"),
            ("-M do -s 1400 10.0.2.1", "mtu = 1300"),
            ("-M do -s 1400 fd00:2::1", "mtu=1300"),
            ("10.9.9.9", "Net Unreachable"),
            ("-s 100 10.0.2.1", " 0% packet loss"),
        ] {
            let said = ping(arguments);
            assert!(
                said.to_lowercase().contains(&answer.to_lowercase()),
                "ping {arguments}: {said}"
            );
        }
        // A transfer finds the smaller MTU by itself.
        transfer(&row, "10.0.2.1".parse().expect("an address"));
        let snapshot = running.stop();
        assert!(snapshot.interfaces[0].input.discards[Discard::TtlExpired as usize] >= 2);
        assert!(snapshot.interfaces[0].input.discards[Discard::LongerThanMtu as usize] >= 2);
    }
}

#[test]
fn vlan_tags_pass_a_bridge() {
    if skips() {
        return;
    }
    for ring in rings() {
        if ring == Format::Xdp && !has("ethtool") {
            continue;
        }
        let row = Row::bridged();
        for (place, parent, address) in [(&row.near, "a0", "10.0.7.1/24"), (&row.far, "c0", "10.0.7.3/24")] {
            if ring == Format::Xdp {
                // Which does not see what lies beside a frame.
                place.shell(&format!("ethtool -K {parent} txvlan off"));
            }
            if !place.try_ip(&format!("link add link {parent} name {parent}.7 type vlan id 7")) {
                println!("skipped: this kernel has no VLAN interfaces");
                return;
            }
            place.ip(&format!(
                "address add {address} dev {parent}.7\nlink set {parent}.7 up"
            ));
        }
        let running = Running::start(
            &row,
            bridge(queue("fq-codel", None), queue("fq-codel", None), None, ring),
        );
        echo(&row, "10.0.7.3".parse().expect("an address"));
        transfer(&row, "10.0.7.3".parse().expect("an address"));
        no_loss(&running.stop());
    }
}

#[test]
fn tags_that_the_kernel_takes_out_are_put_back_and_everything_else_stays() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::bridged();
        let running = Running::start(
            &row,
            bridge(queue("fq-codel", None), queue("sp-h", None), None, ring),
        );
        let plain = row::frame([2, 0, 0, 0, 0, 3], "10.0.7.1:1", "10.0.7.3:2", 9);
        let with = |tags: &[u8]| [&plain[..12], tags, &plain[12..]].concat();
        let mut full = with(&[0x81, 0, 0x20, 7]);
        full.resize(14 + 4 + 1500, 0x5a); // a whole packet and a tag
        let mut sent = vec![
            plain.clone(),
            with(&[0x81, 0, 0x20, 7]),
            with(&[0x88, 0xa8, 0, 9, 0x81, 0, 0xe0, 7]),
            with(&[0x81, 0, 0, 0]),
            full,
            // No protocol that anybody knows, and an end that the test waits for.
            [&plain[..12], &[0x88, 0xb5], &[7; 50]].concat(),
        ];
        for (number, frame) in sent.iter_mut().enumerate() {
            frame[11] = number as u8;
        }
        let last = sent.last().cloned().expect("the last");
        let inject = sent.clone();
        let got = row::captured(
            &row.far,
            "c0",
            move |frame| frame == last,
            || {
                row.near.run(move || row::inject("a0", &inject));
            },
        );
        // Beside what the kernels of both ends say to each other.
        let got: Vec<Vec<u8>> = got.into_iter().filter(|frame| frame[..6] == plain[..6]).collect();
        assert_eq!(got, sent, "{ring:?}");
        no_loss(&running.stop());
    }
}

#[test]
fn checksums_that_were_left_to_a_device_are_completed() {
    if skips() {
        return;
    }
    let row = Row::with_offloads();
    let running = Running::start(
        &row,
        bridge(queue("codel", None), queue("codel", None), None, Format::Frames),
    );
    for address in ["10.0.1.3", "fd00:1::3"] {
        echo(&row, address.parse().expect("an address"));
    }
    let events = running.events();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::UnfinishedChecksums { name } if name == "b0")),
        "{events:?}"
    );
    running.stop();
}

#[test]
fn an_interface_that_goes_down_and_comes_back_carries_on() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("codel", None), queue("codel", None), None, ring),
        );
        for _ in 0..3 {
            echo(&row, "10.0.2.1".parse().expect("an address"));
            row.middle.ip("link set b1 down");
            row.middle.ip("link set b1 up");
            // Its IPv6 addresses went with it; those of IPv4 stay.
            row.wait_for("b1");
            row.wait_for_far("c0");
        }
        echo(&row, "10.0.2.1".parse().expect("an address"));
        let events = running.events();
        let down = Event::Interface {
            name: String::from("b1"),
            up: false,
        };
        assert!(events.contains(&down), "{events:?}");
        running.stop();
    }
}

#[test]
fn an_interface_that_is_gone_ends_the_router_also_where_nothing_is_sent() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let running = Running::start(
            &row,
            routed(queue("codel", None), queue("codel", None), None, ring),
        );
        row.middle.ip("link delete b1");
        let why = running.why_it_ends();
        assert!(
            why.starts_with("the link's interface b1 is gone: "),
            "{ring:?}: {why}"
        );
    }
}

#[test]
fn a_kernel_that_forwards_itself_is_refused() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        row.middle
            .run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("root may"));
        let config = routed(queue("codel", None), queue("codel", None), None, ring);
        let error = Running::try_start(&row, config)
            .err()
            .expect("every packet would leave twice");
        assert!(
            error.contains("sysctl -w net.ipv4.conf.b0.forwarding=0"),
            "{error}"
        );
    }
}

/// What the log says of packets that leave twice, once that has been said `count` times.
fn said_twice(running: &Running, count: usize) -> Vec<(String, Option<String>)> {
    running.until(|_| twice(running).len() >= count);
    twice(running)
}

fn twice(running: &Running) -> Vec<(String, Option<String>)> {
    let of = |event| match event {
        Event::Twice { name, by } => Some((name, by)),
        _ => None,
    };
    running.events().into_iter().filter_map(of).collect()
}

#[test]
fn forwarding_that_is_switched_on_meanwhile_is_reported_once() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let config = routed(queue("codel", None), queue("codel", None), None, ring);
        let running = Running::start(&row, config.clone());
        assert_eq!(twice(&running), []);
        for (text, settings) in [
            (
                "1",
                Some(["net.ipv4.conf.b0.forwarding", "net.ipv4.conf.b1.forwarding"]),
            ),
            ("0", None),
        ] {
            row.middle
                .run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", text).expect("root may"));
            let before = said_twice(&running, if settings.is_some() { 2 } else { 4 });
            running.order(Order::Reload(Ok(Box::new(config.clone()))));
            let after = twice(&running);
            assert_eq!(after, before, "a reload says it once");
            let by = |at: usize| settings.map(|names| names[at].to_owned());
            let expected = [(String::from("b0"), by(0)), (String::from("b1"), by(1))];
            assert_eq!(after[after.len() - 2..], expected, "{after:?}");
        }
        assert_eq!(twice(&running).len(), 4);
        running.stop();
    }
}

#[test]
fn an_interface_of_a_bridge_is_refused_and_one_that_becomes_so_is_reported() {
    if skips() {
        return;
    }
    let row = Row::bridged();
    if !row.middle.try_ip("link add br7 type bridge") {
        println!("skipped: this kernel has no bridges");
        return;
    }
    let config = bridge(queue("codel", None), queue("codel", None), None, Format::Frames);
    row.middle.ip("link set b1 master br7");
    let error = Running::try_start(&row, config.clone())
        .err()
        .expect("every frame would leave twice");
    assert!(
        error.contains("b1 belongs to br7") && error.contains("ip link set b1 nomaster"),
        "{error}"
    );
    row.middle.ip("link set b1 nomaster");
    let running = Running::start(&row, config);
    row.middle.ip("link set b1 master br7");
    let name = String::from("b1");
    assert_eq!(
        said_twice(&running, 1),
        [(name.clone(), Some(String::from("br7")))]
    );
    row.middle.ip("link set b1 nomaster");
    assert_eq!(said_twice(&running, 2).last(), Some(&(name, None)));
    running.stop();
}

#[test]
fn a_second_process_on_the_same_interfaces_is_refused() {
    if skips() {
        return;
    }
    let row = Row::bridged();
    let config = || bridge(queue("codel", None), queue("codel", None), None, Format::Frames);
    let running = Running::start(&row, config());
    let error = Running::try_start(&row, config())
        .err()
        .expect("every frame would leave twice");
    assert!(
        error.contains("another process forwards what comes by b0"),
        "{error}"
    );
    let between = row.middle.run(|| Between::prepare(["b1", "b0"]).err());
    assert!(
        between.is_some_and(|error| error.what.contains("another process forwards what comes by b1")),
        "a marker is such a process"
    );
    echo(&row, "10.0.1.3".parse().expect("an address"));
    // Interfaces of another namespace have the same numbers.
    let other = Row::bridged();
    Running::start(&other, config()).stop();
    running.stop();
    Running::start(&row, config()).stop();
}

#[test]
fn an_mtu_that_shrinks_and_grows_again_counts_at_once() {
    if skips() {
        return;
    }
    for ring in rings() {
        let row = Row::routed();
        let config = |name| routed(queue(name, None), queue(name, None), None, ring);
        let running = Running::start(&row, config("codel"));
        let changes = || {
            let all = running.events().into_iter();
            all.filter(|event| matches!(event, Event::Mtu { .. }))
                .collect::<Vec<_>>()
        };
        row.middle.ip("link set b1 mtu 1300");
        running.until(|_| changes().len() == 1);
        // Another queue must not keep the smaller one.
        running.order(Order::Reload(Ok(Box::new(config("drr")))));
        running.snapshot();
        row.middle.ip("link set b1 mtu 9000");
        running.until(|_| changes().len() == 2);
        let mtu = |mtu| Event::Mtu {
            name: String::from("b1"),
            mtu,
        };
        assert_eq!(changes(), [mtu(1300), mtu(1500)]);
        row.middle.ip("link set b1 mtu 1500");
        for address in ["10.0.2.1", "fd00:2::1"] {
            echo(&row, address.parse().expect("an address"));
        }
        no_loss(&running.stop());
    }
}

#[test]
fn metrics_are_those_of_the_router() {
    if skips() {
        return;
    }
    let row = Row::bridged();
    let mut config = bridge(queue("fq-codel", None), queue("pie", None), None, Format::Frames);
    config.metrics = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    row.middle.ip("link set lo up");
    let running = Running::start(&row, config);
    echo(&row, "10.0.1.3".parse().expect("an address"));
    let address = running
        .events()
        .into_iter()
        .find_map(|event| match event {
            Event::MetricsAt(address) => Some(address),
            _ => None,
        })
        .expect("its address is in the log");
    let ask = |request: &'static str| {
        row.middle.run(move || {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        })
    };
    let text = ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let snapshot = running.snapshot();
    let right = &snapshot.interfaces[1];
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    for line in [
        format!(
            "fleetfoot_router_sent_frames_total{{interface=\"b1\"}} {}",
            right.output.sent
        ),
        String::from("fleetfoot_router_discarded_frames_total{interface=\"b0\",reason=\"runt\"} 0"),
        format!(
            "fleetfoot_router_queue_delay_seconds_count{{interface=\"b1\",queue=\"pie\"}} {}",
            right.output.sent
        ),
        String::from("# TYPE fleetfoot_router_queue_delay_seconds histogram"),
        String::from("# EOF"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    for (request, code) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        assert!(
            ask(request).starts_with(&format!("HTTP/1.1 {code} ")),
            "{request}"
        );
    }
    running.stop();
}

#[test]
fn a_ring_that_is_not_possible_is_refused_with_the_reason() {
    if skips() {
        return;
    }
    let refused = |row: &Row, config: Config| {
        let error = Running::try_start(row, config).err().expect("it is refused");
        assert!(error.starts_with("b0 cannot have `ring = \"xdp\"`"), "{error}");
        error
    };
    let plain = || queue("codel", None);
    if !cfg!(feature = "xdp") {
        let error = refused(&Row::bridged(), bridge(plain(), plain(), None, Format::Xdp));
        assert!(error.contains("--features xdp"), "{error}");
        return;
    }
    let row = Row::bridged();
    row.middle.ip("link set b0 mtu 9000\nlink set b1 mtu 9000");
    let error = refused(&row, bridge(plain(), plain(), None, Format::Xdp));
    assert!(error.contains("its MTU is above 3818"), "{error}");
    row.middle.ip("link set b0 mtu 1500\nlink set b1 mtu 1500");
    let running = Running::start(&row, bridge(plain(), plain(), None, Format::Xdp));
    echo(&row, "10.0.1.3".parse().expect("an address"));
    running.stop();
    // Nothing is left attached.
    let running = Running::start(&row, bridge(plain(), plain(), None, Format::Xdp));
    row.middle.ip("link set b1 down\nlink set b1 up");
    row.wait_for("b1");
    row.wait_for_far("c0");
    echo(&row, "10.0.1.3".parse().expect("an address"));
    let events = running.events();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Xdp { name, .. } if name == "b1")),
        "{events:?}"
    );
    running.stop();
}
