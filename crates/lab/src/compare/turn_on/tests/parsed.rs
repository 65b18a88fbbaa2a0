//! Every printed line is one that a shell and its programs read, and one that fails takes back what it did.

use super::*;

/// Every mechanism at every kind of line, both ways, with the plan it was made for.
fn table() -> Vec<(String, Instruction)> {
    let mut rows = Vec::new();
    let media = Medium::ALL.iter().map(|(_, name)| format!("medium = \"{name}\""));
    for medium in media.chain([String::new()]) {
        for place in [UP, DOWN] {
            let plan = planned(&line("50 Mbit/s", "10 Mbit/s", &medium), &[], place);
            let [before, after] = [(0.27, 0.3), (0.005, 0.02)].map(|(mean, p99)| measured(&plan, mean, p99));
            assert!(plan.variants.len() > 40, "{}", plan.variants.len());
            for (index, variant) in plan.variants.iter().enumerate() {
                let steps = instructions_of(&plan, index, &after, &before);
                assert_eq!(steps.is_empty(), index == 0, "{} {medium} {place}", variant.name);
                rows.extend(
                    steps
                        .into_iter()
                        .map(|one| (format!("{} {medium} {place}", variant.name), one)),
                );
            }
        }
    }
    rows
}

#[test]
fn every_mechanism_has_steps_at_every_kind_of_line_and_its_commands_parse() {
    let rows = table();
    let mut commands: Vec<&str> = Vec::new();
    for (row, steps) in &rows {
        for text in [&steps.place, &steps.device, &steps.why, &steps.needs] {
            assert!(
                !text.trim().is_empty() && !text.contains('\n'),
                "{row}: {steps:?}"
            );
        }
        assert!(
            !steps.why.contains("  ") && !steps.needs.contains("  "),
            "{row}: {steps:?}"
        );
        assert!(steps.check.is_some(), "{row}: {steps:?}");
        for command in &steps.commands {
            assert!(
                !command.contains('\n') && !command.contains("IF ") && !command.contains("RATE"),
                "{row}: {command}"
            );
            for variable in ["DEV", "WAN", "LAN", "IFB"] {
                let used = command.contains(&format!("${variable}"));
                assert!(
                    !used || command.contains(&format!("{variable}=")),
                    "{row}: {command}"
                );
            }
            commands.push(command);
        }
        // What holds a line of 10 or 50 Mbit/s is slower than it.
        for rate in steps
            .commands
            .iter()
            .flat_map(|command| command.split("rate ").skip(1))
        {
            let kbit: u64 = rate
                .split("kbit")
                .next()
                .and_then(|number| number.parse().ok())
                .unwrap_or(0);
            assert!(kbit <= 47_500, "{row}: {rate}");
        }
    }
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 100, "{}", commands.len());
    let Some(problems) = refused(&commands) else {
        eprintln!("skipped: no network namespace with tc here");
        return;
    };
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Two ports and a default route in a network namespace of their own.
const PREPARE: &str = "ip link add eth0 type veth peer name eth1 && ip link set eth0 up && ip link set eth1 up && ip addr add 10.0.0.2/24 dev eth0 && ip route add default via 10.0.0.1 dev eth0";

/// What routes there are after `command`, twice; `None`: there can be no such namespace here.
pub(super) fn route_after(command: &str) -> Option<String> {
    let script = format!("{PREPARE} || exit 3\n{command} && {command} || echo failed\nip route show");
    let output = Command::new("unshare").args(["-n", "sh", "-c", &script]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_line_that_fails_leaves_no_shaper_behind() {
    let queues = |command: &str| {
        let script =
            format!("{PREPARE} || exit 3\nethtool() {{ :; }}\n{command}\necho code $?; tc qdisc show");
        let output = Command::new("unshare").args(["-n", "sh", "-c", &script]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for place in [UP, DOWN] {
        let steps = steps(&cable(), "short-buffer", place);
        let command = &steps[0].commands[1];
        let Some(shaped) = queues(command).filter(|shown| shown.contains("htb")) else {
            eprintln!("skipped: no network namespace with tc and htb here");
            return;
        };
        assert!(shaped.contains("code 0") && shaped.contains("pfifo"), "{shaped}");
        let unknown = command.replace(" pfifo limit", " no_such_queue limit");
        assert_ne!(&unknown, command);
        let left = queues(&unknown).unwrap_or_default();
        assert!(left.contains("code 1"), "{left}");
        assert!(!left.contains("htb") && !left.contains("ingress"), "{left}");
    }
}

/// What tc, ip and sysctl say against `commands` in a network namespace of their own; what only this kernel or this iproute2
/// lacks is left out. `None`: there can be no such namespace here.
fn refused(commands: &[&str]) -> Option<Vec<String>> {
    let prepare = PREPARE;
    let works = Command::new("unshare")
        .args(["-n", "sh", "-c", &format!("{prepare} && tc qdisc show dev eth0")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !works.is_ok_and(|status| status.success()) {
        return None;
    }
    // `fleetfoot mark` runs until it is stopped, and is tested where the program is built: here its ports are looked at.
    let mark = "fleetfoot() { test $1 != mark || { ip link show ${3%,*} > /dev/null; ip link show ${3#*,} > /dev/null; }; }";
    let mut script = format!("cd $(mktemp -d)\n{prepare}\nmodprobe() {{ :; }}\nethtool() {{ :; }}\n{mark}\n");
    for (index, command) in commands.iter().enumerate() {
        // Parameters of the kernel's modules belong to the machine, not to the namespace.
        if !command.contains("/sys/module") {
            // Twice: what is there already must not be in the way.
            script.push_str(&format!("echo '@{index}' >&2\n{command}\n{command}\n"));
        }
    }
    let mut shell = Command::new("unshare")
        .args(["-n", "sh"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = shell.stdin.take()?;
    input.write_all(script.as_bytes()).ok()?;
    drop(input);
    let output = shell.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut current = "";
    let mut problems = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(index) = line.strip_prefix('@') {
            current = index
                .parse::<usize>()
                .ok()
                .and_then(|index| commands.get(index))
                .unwrap_or(&"");
            continue;
        }
        let lacking = line.contains("Specified qdisc kind is unknown")
            || line.contains("Specified qdisc not found")
            || line.contains("Unknown qdisc \"dualpi2\"")
            || line.contains("tcp_congestion_control\": No such file")
            || line.contains("cannot stat")
            || line.starts_with("RED: set bandwidth")
            // As the instruction says.
            || line.starts_with("RED: WARNING. Burst");
        if !lacking {
            problems.push(format!("{current}: {line}"));
        }
    }
    Some(problems)
}
