//! What one port has: one queue, as the last command told it, and none of what an earlier one did.

use super::super::can_be_had;
use super::*;

/// Hosts whose own lines are the slowest.
fn from_hosts() -> String {
    cable().replace(
        "pairs = 2",
        "pairs = 2\naccess = { rate = \"5 Mbit/s\", queue = \"drop-tail\" }",
    )
}

#[test]
fn a_queue_and_fq_at_one_port_cannot_both_be_had() {
    let text = from_hosts();
    let pair = "fq-codel + pacing";
    let plan = planned(&text, &[pair, "pacing", "fq-codel"], "access:forward");
    let names: Vec<&str> = plan
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names[1..], ["pacing", "fq-codel"]);
    let [left_out] = plan.inapplicable.as_slice() else {
        panic!("{:?}", plan.inapplicable);
    };
    assert_eq!(left_out.name, pair);
    assert!(
        left_out
            .reason
            .starts_with("Cannot be had beside the queue at 2 links access forward"),
        "{}",
        left_out.reason
    );
    // In a router there is a port for each.
    let elsewhere = planned(&text, &[pair], UP);
    assert_eq!(elsewhere.variants[1].name, pair);
    assert!(can_be_had(&elsewhere, 1));
    // Where the senders are paced as described, no queue takes the place of theirs.
    let paced = text.replace("[run]", "[tcp]\npacing = \"linux\"\n[run]");
    let plan = planned(&paced, &["fq-codel"], "access:forward");
    assert_eq!((plan.variants.len(), plan.inapplicable.len()), (1, 1));
    // BBR's packets are spaced by TCP itself.
    let bbr = paced.replace("[tcp]", "[tcp]\ncongestion_control = \"bbr\"");
    assert_eq!(planned(&bbr, &["fq-codel"], "access:forward").variants.len(), 2);
}

#[test]
fn a_variant_of_a_file_with_both_says_that_it_cannot_be_had() {
    let both = "[[variant]]\nname = \"both\"\nset = { \"tcp.pacing\" = \"linux\", \"network.access.queue\" = \"fq-codel\" }\n[run]";
    let plan = planned(&from_hosts().replace("[run]", both), &["both"], "access:forward");
    assert!(!can_be_had(&plan, 1));
    let result = measured(&plan, 0.1, 0.1);
    let steps = instructions_of(&plan, 1, &result, &result);
    let commands = || steps.iter().flat_map(|step| &step.commands);
    assert!(
        commands().any(|command| command.ends_with("root fq_codel")),
        "{steps:?}"
    );
    assert!(
        !commands().any(|command| command.ends_with("root fq")),
        "{steps:?}"
    );
    let said = steps
        .iter()
        .find(|step| step.place == "servers")
        .expect("senders are to be paced");
    assert!(
        said.needs.contains("Cannot be had beside the queue at") && said.commands.is_empty(),
        "{said:?}"
    );
}

/// `tc qdisc replace` changes a queue of the same kind, which keeps what it was told before and is not told now.
#[test]
fn nothing_of_an_earlier_queue_is_left() {
    let port = line("100 Mbit/s", "100 Mbit/s", "medium = \"switch\"");
    let (port, cable) = (steps(&port, "fq-codel", UP), steps(&cable(), "cake", UP));
    for (command, earlier, told) in [
        (&port[0].commands[0], "fq_codel target 77ms", "target 77ms"),
        (
            &cable[0].commands[0],
            "cake bandwidth 1mbit rtt 777ms",
            "rtt 777ms",
        ),
    ] {
        assert!(
            command.contains("root 2>/dev/null; tc qdisc replace dev $"),
            "{command}"
        );
        let script = format!(
            "ip link add eth0 type veth peer name eth1 || exit 3\ntc qdisc replace dev eth0 root {earlier} || exit 3\n\
             tc qdisc show dev eth0\n{command}\ntc qdisc show dev eth0"
        );
        let output = Command::new("unshare").args(["-n", "sh", "-c", &script]).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            eprintln!("skipped: no network namespace with tc and {earlier} here");
            continue;
        };
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(shown.matches(told).count(), 1, "{shown}");
    }
}

/// Of 8 thresholds up to 12 in packets of 1500 bytes: Linux takes any upper threshold above the lower one.
#[test]
fn red_s_thresholds_are_those_of_the_simulation() {
    let entry = AnyQueue::entry("red").expect("it is registered");
    let plan = planned(&cable(), &["codel"], UP);
    let link = |given: &[(&str, Value)]| {
        let mut link = LinkSpec {
            queue: entry.name,
            queue_values: Values::defaults(entry.parameters),
            ..plan.described.spec.links[0].clone()
        };
        for &(name, value) in given {
            link.queue_values.set(name, value).expect("it fits");
        }
        link
    };
    let thresholds = |min: f64, max: f64| {
        link(&[
            ("min_threshold", Value::Number(min)),
            ("max_threshold", Value::Number(max)),
        ])
    };
    let of = |link: &LinkSpec| {
        let discipline = Discipline::of(link, Some(Rate::from_bps(10_000_000)));
        (discipline.arguments.expect("Linux has it"), discipline.needs)
    };
    let (arguments, needs) = of(&thresholds(8.0, 12.0));
    assert!(arguments.contains(" min 12000 max 18000 "), "{arguments}");
    assert!(!needs.contains("32 bits"), "{needs}");
    // Without a difference tc makes no probability.
    let (arguments, _) = of(&thresholds(8.0, 8.0));
    assert!(arguments.contains(" min 12000 max 12001 "), "{arguments}");
    // 800 packets of 1500 bytes are twice what the average has room beside.
    let (arguments, needs) = of(&thresholds(800.0, 1600.0));
    assert!(arguments.contains(" min 600000 max 1200000 "), "{arguments}");
    assert!(
        needs.contains("the thresholds are 0.50 times those of the simulation"),
        "{needs}"
    );
}

/// HyStart is a file of cubic's module: nothing else reads it.
#[test]
fn hystart_is_turned_off_with_cubic_alone() {
    let step = |controller: &str, how: &str| {
        let variant = format!("[[variant]]\nname = \"own\"\nset = {{ \"tcp.hystart\" = \"{how}\" }}\n[run]");
        let text = cable().replace(
            "[run]",
            &format!("[tcp]\ncongestion_control = \"{controller}\"\n{variant}"),
        );
        let plan = planned(&text, &["own"], UP);
        let result = measured(&plan, 0.1, 0.1);
        instructions_of(&plan, 1, &result, &result).swap_remove(0)
    };
    let file = "echo 0 > /sys/module/tcp_cubic/parameters/hystart";
    assert_eq!(step("cubic", "off").commands, [file]);
    for (how, command) in [("off", None), ("hystart", Some("fleetfoot proxy"))] {
        let reno = step("reno", how);
        assert!(
            !reno.commands.iter().any(|one| one.contains("tcp_cubic")),
            "{reno:?}"
        );
        assert_eq!(reno.commands.len(), usize::from(command.is_some()), "{reno:?}");
        assert!(reno.needs.contains("cubic"), "{reno:?}");
    }
}

/// A file that changes a parameter of the congestion control that it has gets the file of the module.
#[test]
fn a_parameter_alone_is_written_to_its_module() {
    let variant = "[tcp]\ncongestion_control = \"vegas\"\n[[variant]]\nname = \"own\"\nset = { \"tcp.congestion_control.alpha\" = 3, \"tcp.congestion_control.beta\" = 5 }\n[run]";
    let plan = planned(&cable().replace("[run]", variant), &["own"], UP);
    let result = measured(&plan, 0.1, 0.1);
    let steps = instructions_of(&plan, 1, &result, &result);
    assert_eq!(
        steps[0].commands,
        [
            "modprobe tcp_vegas; echo 3 > /sys/module/tcp_vegas/parameters/alpha; echo 5 > /sys/module/tcp_vegas/parameters/beta; sysctl -w net.ipv4.tcp_congestion_control=vegas"
        ]
    );
}
