//! `fleetfoot router` as a program: its file, signals, exit status, statistics, and what is left of it. Needs root; says so and skips
//! without.
#![cfg(target_os = "linux")]

mod folder;

use fleetfoot_live::Namespace;
use folder::Folder;
use std::process::{Command, Output};

fn skips() -> bool {
    match Namespace::available() {
        Ok(()) => false,
        Err(reason) => {
            println!("skipped: {reason}");
            true
        }
    }
}

const BRIDGE: &str = r#"mode = "bridge"
[[interface]]
name = "one"
queue = { kind = "fq-codel" }
[[interface]]
name = "two"
rate = "50 Mbit/s"
queue = { kind = "favourtail", limit = "20 ms" }
[log]
format = "json"
"#;

/// Runs a shell script beside two pairs of interfaces, `one`-`left` and `two`-`right`, in a network namespace of its own; `$FLEETFOOT`
/// is the program, `router.toml` a bridge.
fn script(folder: &Folder, script: &str) -> String {
    std::fs::write(folder.path().join("router.toml"), BRIDGE).expect("a file");
    let set_up = "
        ip link add one type veth peer name left && ip link add two type veth peer name right &&
        for name in one left two right; do ip link set $name up; done";
    let folder = folder.path().display();
    let program = env!("CARGO_BIN_EXE_fleetfoot");
    let whole = format!("set -e; cd {folder}; FLEETFOOT={program}; {set_up}\n{script}");
    Namespace::run(|namespace| namespace.shell(&whole)).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until a file holds a word, 20 s at most.
const WAIT: &str = r#"
    holds() { n=0; until grep -q "$2" "$1"; do n=$((n+1)); [ $n -lt 1000 ] || { cat "$1"; exit 9; }; sleep 0.02; done; }
"#;

fn direct(folder: &Folder, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fleetfoot"))
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .expect("the program was built")
}

#[test]
fn a_check_says_what_a_file_describes() {
    if skips() {
        return;
    }
    let folder = Folder::new("check");
    let said = script(
        &folder,
        "$FLEETFOOT router router.toml --check; $FLEETFOOT router router.toml --check --json",
    );
    let (line, document) = said.split_once('\n').expect("a line and a document");
    assert_eq!(
        line,
        "bridge between one (fq-codel at line rate) and two (favourtail at 50 Mbit/s)"
    );
    for part in [
        "\"schema\": \"fleetfoot-router\"",
        "\"mode\": \"bridge\"",
        "\"rate_bps\": 50000000",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
}

#[test]
fn a_mistake_has_its_place_and_exit_status_2() {
    let folder = Folder::new("mistake");
    for (text, said) in [
        (
            "mode = \"bridge\"\n[[interface]]\nname = \"nowhere-0\"\nqueue = { kind = \"codel\" }\n",
            "router.toml:3:8",
        ),
        ("mode = \"brige\"\ninterface = []\n", "did you mean `bridge`?"),
        ("", "describes nothing"),
    ] {
        std::fs::write(folder.path().join("router.toml"), text).expect("a file");
        for flags in [
            &["router", "router.toml"][..],
            &["router", "router.toml", "--check"],
        ] {
            let output = direct(&folder, flags);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{error}");
            assert!(error.contains(said), "{error}");
        }
    }
}

#[test]
fn a_next_router_that_no_host_on_the_link_can_be_is_refused() {
    if skips() {
        return;
    }
    let folder = Folder::new("via");
    let route = "[[route]]\nto = \"0.0.0.0/0\"\ninterface = \"two\"\nvia = \"192.0.3.1\"\n";
    let text = format!("{}{route}", BRIDGE.replace("\"bridge\"", "\"route\""));
    std::fs::write(folder.path().join("via.toml"), text).expect("a file");
    let said = script(
        &folder,
        "ip address add 192.0.2.7/24 dev two
        $FLEETFOOT router via.toml --check 2>&1 || echo status $?
        ip address add 192.0.3.7/24 dev two
        $FLEETFOOT router via.toml --check",
    );
    for part in [
        "via.toml:14:7",
        "192.0.3.1 is on no network of `two`, which has 192.0.2.7/24",
        "status 2",
        "router between one (fq-codel at line rate), two (favourtail at 50 Mbit/s), 1 route",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn signals_reload_and_end_it_and_nothing_is_left() {
    if skips() {
        return;
    }
    let folder = Folder::new("signals");
    let said = script(
        &folder,
        &format!(
            r#"{WAIT}
            $FLEETFOOT router router.toml --json > document 2> log & router=$!
            holds log '"event":"started"'
            ip -d link show one | grep -c 'promiscuity 1'
            sed -i 's/50 Mbit/60 Mbit/' router.toml; kill -HUP $router
            holds log '"event":"reloaded","queues":"two"'
            sed -i 's/60 Mbit/sixty Mbit/' router.toml; kill -HUP $router
            holds log '"event":"reload_refused"'
            # One that the router refuses changes nothing, the format of the log included.
            sed 's/sixty Mbit/60 Mbit/; s/"json"/"text"/; 1a offloads = "refuse"' -i.before router.toml; kill -HUP $router
            holds log '"event":"reload_refused".*`offloads`'
            mv router.toml.before router.toml
            kill -TERM $router; wait $router; echo status $?
            grep -c 'sixty Mbit' log
            grep -c '"lateness_s"' document; grep -c '"read_delay_s"' document
            grep -o '"reloads": 1' document; grep -o '"refused_reloads": 2' document
            ip -d link show one | grep -c 'promiscuity 0'
            # A second one after a kill.
            sed -i 's/sixty Mbit/60 Mbit/' router.toml
            $FLEETFOOT router router.toml 2> log & router=$!
            holds log '"event":"started"'
            kill -KILL $router; wait $router || true
            ip -d link show one | grep -c 'promiscuity 0'
            $FLEETFOOT router router.toml 2> log & router=$!
            holds log '"event":"started"'
            kill -INT $router; wait $router; echo status $?
            grep -c 'reloads, 0 refused' log
            "#
        ),
    );
    let wanted = "1\nstatus 0\n1\n2\n2\n\"reloads\": 1\n\"refused_reloads\": 2\n1\n1\nstatus 0\n1\n";
    assert_eq!(said, wanted);
}

#[test]
fn a_missing_capability_and_an_offload_that_is_on_are_refused_by_name() {
    if skips() || Command::new("setpriv").arg("--version").output().is_err() {
        return;
    }
    let folder = Folder::new("refusal");
    let said = script(
        &folder,
        r#"
        setpriv --bounding-set -net_raw $FLEETFOOT router router.toml 2>&1 || echo status $?
        sed -i '1a offloads = "refuse"' router.toml
        $FLEETFOOT router router.toml 2>&1 || echo status $?
        "#,
    );
    assert!(
        said.contains("needs CAP_NET_RAW, which this process does not have"),
        "{said}"
    );
    assert!(said.contains("setcap cap_net_raw,cap_net_admin+ep"), "{said}");
    assert!(said.contains("ethtool -K one gro off"), "{said}");
    assert_eq!(said.matches("status 1").count(), 2, "{said}");
}

const ROUTE: &str = r#"mode = "route"
[[interface]]
name = "one"
ring = "xdp"
queue = { kind = "fq-codel" }
[[interface]]
name = "two"
ring = "xdp"
rate = "50 Mbit/s"
queue = { kind = "favourtail" }
[[route]]
to = "10.0.1.0/24"
interface = "one"
[[route]]
to = "10.0.2.0/24"
interface = "two"
[log]
format = "json"
"#;

#[test]
fn a_router_with_af_xdp_leaves_no_program_at_its_interfaces_even_after_a_kill() {
    if skips() {
        return;
    }
    let folder = Folder::new("xdp");
    std::fs::write(folder.path().join("route.toml"), ROUTE).expect("a file");
    if !cfg!(feature = "xdp") {
        let said = script(
            &folder,
            "$FLEETFOOT router route.toml 2>&1 || echo status $?; ip link show one | grep -c xdp || true",
        );
        assert!(
            said.contains("--features xdp") && said.ends_with("status 1\n0\n"),
            "{said}"
        );
        return;
    }
    let said = script(
        &folder,
        &format!(
            r#"{WAIT}
            programs() {{ ip link show | grep -c 'prog/xdp' || true; }}
            none() {{ n=0; until [ $(programs) = 0 ]; do n=$((n+1)); [ $n -lt 1000 ] || exit 8; sleep 0.02; done; }}
            $FLEETFOOT router route.toml --json > document 2> log & router=$!
            holds log '"event":"started"'
            programs; grep -c 'the kernel gets only what is for this machine' log
            sed -i 's/50 Mbit/60 Mbit/' route.toml; kill -HUP $router
            holds log '"event":"reloaded","queues":"two"'
            programs
            kill -KILL $router; wait $router || true
            none
            $FLEETFOOT router route.toml --json > document 2> log & router=$!
            holds log '"event":"started"'
            programs
            kill -TERM $router; wait $router; echo status $?
            none
            grep -c own_destination document || true
            "#
        ),
    );
    assert_eq!(said, "2\n2\n2\n2\nstatus 0\n0\n");
}
