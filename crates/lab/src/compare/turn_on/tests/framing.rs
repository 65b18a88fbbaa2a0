//! The bytes that a line adds to a packet, and the margin that they leave.

use super::*;

#[test]
fn dsl_lines_count_their_own_bytes() {
    let vdsl = line("50 Mbit/s", "10 Mbit/s", "medium = \"vdsl\"");
    let vdsl_steps = steps(&vdsl, "cake", UP);
    assert!(vdsl_steps[0].commands[0].contains("cake bandwidth 9500kbit pppoe-ptm besteffort"));
    let without = line("50 Mbit/s", "10 Mbit/s", "medium = \"vdsl\"\nframing = 22");
    assert!(steps(&without, "cake", UP)[0].commands[0].contains("9500kbit bridged-ptm "));
    // Of 65 bytes 64 carry packets: 9.5 Mbit/s times 64/65 is 9353 kbit/s.
    let below = &steps(&vdsl, "fq-codel", UP)[0];
    assert!(
        below
            .why
            .contains("of 65 bytes of this line 64 carry packets, hence the rate 9353kbit"),
        "{below:?}"
    );
    assert!(!vdsl_steps[0].why.contains("of 65 bytes"), "{vdsl_steps:?}");
    let below = &below.commands[1];
    assert!(
        below.contains("stab overhead 16 linklayer ethernet htb") && below.contains("rate 9353kbit"),
        "{below}"
    );
    let adsl = line("8 Mbit/s", "1 Mbit/s", "medium = \"adsl\"");
    assert!(
        steps(&adsl, "cake", UP)[0].commands[0].contains("cake bandwidth 950kbit pppoe-llcsnap besteffort")
    );
    let below = &steps(&adsl, "fq-codel", UP)[0].commands[1];
    assert!(
        below.contains("stab overhead 26 linklayer atm htb") && below.contains("rate 950kbit"),
        "{below}"
    );
}

#[test]
fn the_margin_counts_what_the_scenario_does_not() {
    let of = |more: &str, mechanism: &str, place: &str| {
        let plan = planned(&line("16 Mbit/s", "1 Mbit/s", more), &[mechanism], place);
        // Without results: of full packets.
        let found = crate::compare::turn_on::with_results(&plan, 1, None);
        let margin = found[0].margin.expect("a shaper");
        ((1000.0 * margin).round() / 10.0, found[0].why.clone())
    };
    // Full packets of 1500 bytes: 33 cells of 53 bytes with 40 more; 1530 bytes times 65/64; 1518; 1538.
    for (medium, mechanism, place, margin) in [
        ("adsl", "cake", UP, 18.5),
        ("adsl", "fq-codel", UP, 18.5),
        ("adsl", "cake", DOWN, 22.8),
        ("vdsl", "cake", UP, 8.3),
        ("docsis", "cake", UP, 6.1),
        ("gpon", "cake", UP, 7.3),
        // A file of the router counts half a cell with each packet.
        ("adsl", "favourtail", UP, 17.5),
    ] {
        let (found, why) = of(&format!("medium = \"{medium}\""), mechanism, place);
        assert_eq!(found, margin, "{medium} {mechanism}: {why}");
        assert!(why.contains(" in the scenario (`framing`)"), "{why}");
    }
    let (found, why) = of("medium = \"adsl\"", "cake", UP);
    assert!(
        found == 18.5
            && why.ends_with(
                "A full packet of 1500 bytes takes 1749 bytes of the rate so, and 1500 in the scenario (`framing`): the line carries 81.5 % of what was simulated."
            ),
        "{why}"
    );
    let (found, why) = of("medium = \"docsis\"\nframing = 18", "cake", UP);
    assert!(found == 5.0 && !why.contains("full packet"), "{found} {why}");
    let (found, _) = of("framing = 80", "cake", UP);
    assert_eq!(found, 5.0, "it counts what the scenario counts");
}

/// tc-stab(8) and tc-cake(8) count 53 bytes for each cell and 65 for 64 of PTM, so what they are given is a share of the line's own rate: of ADSL at
/// 800 kbit/s, of which packets get 48/53, 724.5 kbit/s, 95 % are 760 kbit/s. Who follows the note gets the command of before.
#[test]
fn commands_count_from_the_rate_of_the_line_itself() {
    for (medium, own, net, framing) in [
        ("adsl", "800 kbit/s", 800_000 * 48 / 53, 40),
        ("vdsl", "10 Mbit/s", 10_000_000 * 64 / 65, 30),
    ] {
        let noted = line("8 Mbit/s", own, &format!("medium = \"{medium}\""));
        let followed = format!("medium = \"{medium}\"\nframing = {framing}\nrate_is_net = true");
        let followed = line("8 Mbit/s", &format!("{net} bit/s"), &followed);
        for name in ["cake", "fq-codel", "favourtail"] {
            let [before, after] = [&noted, &followed].map(|text| steps(text, name, UP).swap_remove(0));
            let rates = [&before, &after].map(|one| match name {
                "favourtail" => written(&one.commands[0]).config.interfaces[1]
                    .rate
                    .map_or(0, Rate::bps),
                _ => kbit(one.commands.last().expect("a command")) * 1000,
            });
            // One bit a second less of the rate can be one kilobit less of the command.
            assert!(
                rates[0].abs_diff(rates[1]) <= 1000 && rates[0] > 600_000,
                "{medium} {name}: {rates:?}"
            );
            assert!(
                after.why.contains(", 95 % of ") && after.why.contains("(the line's own rate)"),
                "{}",
                after.why
            );
            assert!(!after.why.contains("is taken for"), "{}", after.why);
        }
    }
    // Full packets of 1500 bytes with 40 more need 33 cells and 1584 bytes of the net rate, of PTM 1530.
    let margin = |medium: &str, framing: u32| {
        let more = format!("medium = \"{medium}\"\nframing = {framing}\nrate_is_net = true");
        let plan = planned(&line("8 Mbit/s", "1 Mbit/s", &more), &["cake"], UP);
        let found = crate::compare::turn_on::with_results(&plan, 1, None);
        (1000.0 * found[0].margin.expect("a shaper")).round() / 10.0
    };
    assert_eq!(margin("adsl", 40), 7.6);
    assert_eq!(margin("vdsl", 30), 5.0);
}

/// The rate of a line with `framing` is its own unless the file says otherwise: a share of more would be faster than the line.
#[test]
fn a_rate_that_is_not_said_to_be_net_is_that_of_the_line() {
    let adsl = line("8 Mbit/s", "720 kbit/s", "medium = \"adsl\"\nframing = 40");
    let below = &steps(&adsl, "fq-codel", UP)[0];
    assert_eq!(kbit(&below.commands[1]), 684);
    // 720 kbit/s times 53/48 times 0.95.
    assert!(
        below.why.ends_with("720 kbit/s is taken for the line's own rate: if it is 48/53 of that already, without the cells, write rate_is_net = true into the link, and the command gets 755kbit."),
        "{}",
        below.why
    );
    for text in [
        "medium = \"adsl\"",
        "medium = \"vdsl\"\nframing = 30",
        "medium = \"docsis\"\nframing = 18",
    ] {
        let steps = steps(&line("8 Mbit/s", "720 kbit/s", text), "fq-codel", UP);
        assert!(!steps[0].why.contains("is taken for"), "{text}");
    }
}

/// The rate of a shaper in a command, kbit/s.
fn kbit(command: &str) -> u64 {
    let rate = command
        .split_whitespace()
        .find_map(|word| word.strip_suffix("kbit"));
    rate.and_then(|rate| rate.parse().ok()).expect("a rate in kbit")
}

#[test]
fn a_line_of_dsl_without_framing_is_noted() {
    let notes = |more: &str| {
        let plan = planned(&line("16 Mbit/s", "1 Mbit/s", more), &["cake"], UP);
        let (options, never) = (Options::default(), AtomicBool::new(false));
        let batch = execute(&plan.jobs(), &plan.seeds, &options, &never, &engine, &|_| ());
        let notes = build(&plan, &batch.expect("it runs"), "").document.notes;
        notes.into_iter().find(|note| note.contains("`framing` 0"))
    };
    let adsl = notes("medium = \"adsl\"").expect("it is noted");
    assert!(
        adsl.starts_with("`medium` is adsl and `framing` 0 at ")
            && adsl.contains("1749 bytes")
            && adsl.ends_with(
                "`framing = \"40 B\"` and 48/53 of the rate, with `rate_is_net = true`, come near"
            ),
        "{adsl}"
    );
    assert!(notes("medium = \"vdsl\"").is_some_and(|note| note.contains("64/65 of the rate")));
    assert_eq!(notes("medium = \"adsl\"\nframing = 40"), None);
    assert_eq!(notes("medium = \"docsis\""), None);
}

/// Worked by hand from tc-cake(8) and tc-stab(8): ADSL with PPPoE adds 40 bytes, without 32; Linux counts 14 of them at a port
/// of Ethernet and none at a PPP interface.
#[test]
fn below_htb_the_bytes_of_other_kinds_of_dsl_are_numbers() {
    let adsl = line("50 Mbit/s", "10 Mbit/s", "medium = \"adsl\"");
    let [below] = &steps(&adsl, "fq-codel", UP)[..] else {
        panic!("one place");
    };
    assert!(below.commands[1].contains("stab overhead 26 linklayer atm"));
    for part in ["with overhead 40 instead of 26", "overhead 18 is exact"] {
        assert!(below.needs.contains(part), "{part}: {}", below.needs);
    }
    let [cake] = &steps(&adsl, "cake", UP)[..] else {
        panic!("one place");
    };
    assert!(cake.needs.contains("bridged-llcsnap is exact") && !cake.needs.contains("instead of"));
}

/// Packets of a PPP interface have no Ethernet header, and PPPoE adds 8 bytes below it: cake, which counts from the network header, needs them
/// with every keyword but those of DSL with PPPoE. In tc-cake(8) `overhead` behind a keyword takes the place of its bytes and leaves its least length.
#[test]
fn at_a_ppp_interface_cake_is_given_the_bytes_of_pppoe() {
    for (more, words) in [
        ("medium = \"gpon\"", "ethernet overhead 46 instead of ethernet)"),
        (
            "medium = \"ethernet\"",
            "ethernet overhead 46 instead of ethernet)",
        ),
        ("medium = \"docsis\"", "docsis overhead 26 instead of docsis)"),
        ("", "ethernet overhead 46 instead of ethernet)"),
        (
            "medium = \"gpon\"\nframing = 98",
            "noatm overhead 106 mpu 84 instead of noatm overhead 98 mpu 84)",
        ),
        ("framing = 50", "overhead 58 instead of overhead 50)"),
    ] {
        for place in [UP, DOWN] {
            let text = line("25 Mbit/s", "3 Mbit/s", more);
            let shaper = &steps(&text, "cake", place)[0];
            let wanted = format!("(a router that dials in by PPPoE: the PPP interface, with {words}");
            assert!(shaper.needs.contains(&wanted), "{more}: {}", shaper.needs);
            let below = &steps(&text, "sfq", place)[0];
            assert!(
                below.needs.contains("the PPP interface, with overhead "),
                "{more}: {}",
                below.needs
            );
        }
    }
    for medium in ["vdsl", "adsl"] {
        let text = line("25 Mbit/s", "3 Mbit/s", &format!("medium = \"{medium}\""));
        let shaper = &steps(&text, "cake", UP)[0];
        assert!(
            shaper.needs.contains("by PPPoE: the PPP interface)."),
            "{medium}: {}",
            shaper.needs
        );
    }
}

/// The example of a tunnel over VDSL: 98 bytes are added to a packet, of which PTM's own framing are 30.
#[test]
fn a_framing_larger_than_that_of_the_medium_is_counted() {
    for (medium, cake, below) in [
        (
            "vdsl",
            "ptm overhead 98 besteffort",
            "stab overhead 84 linklayer ethernet",
        ),
        (
            "adsl",
            "atm overhead 98 besteffort",
            "stab overhead 84 linklayer atm",
        ),
        (
            "docsis",
            "noatm overhead 98 mpu 64 besteffort",
            "stab overhead 84 mpu 64 linklayer ethernet",
        ),
        (
            "gpon",
            "noatm overhead 98 mpu 84 besteffort",
            "stab overhead 84 mpu 84 linklayer ethernet",
        ),
        (
            "cellular",
            "noatm overhead 98 mpu 84 besteffort",
            "stab overhead 84 mpu 84 linklayer ethernet",
        ),
    ] {
        let text = line(
            "50 Mbit/s",
            "10 Mbit/s",
            &format!("medium = \"{medium}\"\nframing = \"98 B\""),
        );
        let shaper = &steps(&text, "cake", UP)[0];
        assert!(shaper.commands[0].contains(cake), "{medium}: {shaper:?}");
        assert!(shaper.why.contains("counts the 98 bytes"), "{medium}: {shaper:?}");
        assert!(!shaper.needs.contains("is exact"), "{medium}: {shaper:?}");
        let shaper = &steps(&text, "fq-codel", UP)[0];
        assert!(shaper.commands[1].contains(below), "{medium}: {shaper:?}");
        assert!(
            shaper.why.contains("overhead counts the 98 bytes"),
            "{medium}: {shaper:?}"
        );
        let router = &steps(&text, "favourtail", UP)[0];
        let more = if medium == "adsl" { 24 } else { 0 };
        assert_eq!(
            written(&router.commands[0]).config.interfaces[1].framing,
            98 + more,
            "{medium}"
        );
    }
}
