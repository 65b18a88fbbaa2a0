//! `fleetfoot attach`, `detach` and `list --attached`. What needs the kernel runs in namespaces of its own; it needs root, and says so and
//! skips without.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

const FLEETFOOT: &str = env!("CARGO_BIN_EXE_fleetfoot");

fn fleetfoot(arguments: &[&str]) -> Output {
    Command::new(FLEETFOOT)
        .args(arguments)
        .output()
        .expect("the program was built")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[cfg(not(feature = "bpf"))]
#[test]
fn without_the_feature_a_message_says_how_to_get_it() {
    for arguments in [
        &["attach", "cdg"][..],
        &["detach", "cdg"],
        &["list", "--attached"],
    ] {
        let output = fleetfoot(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = said(&output);
        assert!(
            said.contains("--features bpf") && said.contains("clang libbpf-dev"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn flags_that_say_nothing_to_a_program_are_refused() {
    for (arguments, expected) in [
        (
            &["cdg", "--initial-window", "20"][..],
            "--initial-window says nothing to cdg; it is for spread and options",
        ),
        (&["spread"], "spread needs --initial-window of 11 or more"),
        (
            &["spread", "--initial-window", "10"],
            "spread needs --initial-window of 11 or more",
        ),
        (
            &["options"],
            "at least one of --initial-window, --rto-min, --delayed-ack-max",
        ),
        (&["options", "--rto-min", "1ms"], "the kernel takes 2ms to 200ms"),
        (
            &["options", "--rto-min", "soon"],
            "a time with its unit is wanted",
        ),
        (&["mark"], "mark needs --interface"),
        (
            &["mark", "--interface", "lo", "--length", "64"],
            "64 is not in 2..=63",
        ),
        (
            &["mark", "--interface", "lo", "--layout", "a", "--codepoint", "3"],
            "--codepoint is for --layout b",
        ),
        (&["bbr"], "possible values: cdg, newcwv, spread, options, mark"),
        (&["cdg", "--default", "--pid", "1"], "cannot be used with"),
    ] {
        let output = fleetfoot(&[&["attach"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            said(&output).contains(expected),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

#[cfg(feature = "bpf")]
mod kernel {
    use super::{FLEETFOOT, fleetfoot, said};
    use std::process::{Command, Output};

    /// Runs a script in network and mount namespaces of its own, with a /sys/fs/bpf of its own. `None`: this machine does not let us.
    fn script(text: &str) -> Option<Output> {
        let ready = "mount -t bpf bpf /sys/fs/bpf && ip link set lo up || exit 99; [ -e /sys/kernel/btf/vmlinux ] || exit 99\n";
        let output = Command::new("unshare")
            .args(["--mount", "--net", "--propagation", "private", "sh", "-c"])
            .arg(format!("{ready}{text}"))
            .env("FLEETFOOT", FLEETFOOT)
            .output();
        match output {
            Ok(output) if output.status.code() != Some(99) && !said(&output).contains("unshare failed") => {
                Some(output)
            }
            _ => {
                println!("skipped: programs in the kernel need root, unshare and a kernel with BTF");
                None
            }
        }
    }

    #[test]
    fn what_is_attached_is_listed_and_detached() {
        let Some(output) = script(
            "set -e
            before=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
            $FLEETFOOT list --attached
            $FLEETFOOT attach options --initial-window 20 --rto-min 20ms
            $FLEETFOOT attach options --initial-window 20 --rto-min 20ms --pid $$
            $FLEETFOOT attach options --initial-window 30 && exit 1
            $FLEETFOOT attach newcwv --default
            [ $(cat /proc/sys/net/ipv4/tcp_congestion_control) = ff_newcwv ]
            echo reno > /proc/sys/net/ipv4/tcp_congestion_control
            $FLEETFOOT list --attached
            $FLEETFOOT detach newcwv --default
            [ $(cat /proc/sys/net/ipv4/tcp_congestion_control) = reno ]
            echo $before > /proc/sys/net/ipv4/tcp_congestion_control
            $FLEETFOOT attach newcwv --pid $$
            $FLEETFOOT detach newcwv --json
            [ $(cat /proc/sys/net/ipv4/tcp_congestion_control) = $before ]
            $FLEETFOOT detach options
            $FLEETFOOT detach options && exit 1
            $FLEETFOOT list --attached --json
            [ ! -e /sys/fs/bpf/fleetfoot ]",
        ) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let said = said(&output);
        if said.contains("File exists") || said.contains("Operation not permitted") {
            println!("skipped: {said}");
            return;
        }
        assert!(output.status.success(), "{text}{said}");
        for expected in [
            "nothing is attached\n",
            "options              this namespace; initial window 20, RTO minimum 20 ms; 0 connections; 0 refused by the kernel\n",
            "newcwv (ff_newcwv)   known to the kernel\n",
            "; the default is reno now\n",
            "\"schema\": \"fleetfoot-attached\"",
            "\"attached\": []",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
        assert!(
            said.contains("options is attached in this namespace with initial window 20, RTO minimum 20 ms: fleetfoot detach options first"),
            "{said}"
        );
        assert!(said.contains("options is not attached"), "{said}");
    }

    /// Of two defaults, one after the other, either may go first.
    #[test]
    fn the_default_before_both_comes_back_in_either_order() {
        let Some(output) = script(
            "set -e
            default() { cat /proc/sys/net/ipv4/tcp_congestion_control; }
            before=$(default)
            for order in 'cdg newcwv' 'newcwv cdg'; do
                $FLEETFOOT attach cdg --default
                $FLEETFOOT attach newcwv --default
                for name in $order; do $FLEETFOOT detach $name; done
                [ $(default) = $before ]
                # Known to the kernel still, but no longer the default of this namespace.
                $FLEETFOOT attach cdg --default
                $FLEETFOOT attach newcwv --default
                for name in $order; do $FLEETFOOT detach $name --default; done
                [ $(default) = $before ]
                $FLEETFOOT detach cdg; $FLEETFOOT detach newcwv
            done
            [ \"$($FLEETFOOT list --attached)\" = 'nothing is attached' ]
            echo done",
        ) else {
            return;
        };
        let (text, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
        if said.contains("File exists") || said.contains("Operation not permitted") {
            println!("skipped: {said}");
            return;
        }
        assert!(
            output.status.success() && text.ends_with("done\n"),
            "{text}{said}"
        );
        assert_eq!(
            said, "",
            "libbpf has nothing to say about links that were never there"
        );
    }

    /// A namespace that was made while a congestion control was the default of the machine has it, too.
    #[test]
    fn namespaces_that_inherited_a_default_get_another_one() {
        let Some(output) = script(
            "set -e
            default() { nsenter --net=/proc/$1/ns/net cat /proc/sys/net/ipv4/tcp_congestion_control; }
            before=$(default self)
            $FLEETFOOT attach cdg --default
            # As if it had been made then: only those are inherited from that are the machine's first.
            unshare --net sh -c 'echo ff_cdg > /proc/sys/net/ipv4/tcp_congestion_control; exec sleep 100' &
            heir=$!
            trap \"kill $heir\" EXIT
            until [ $(default $heir) = ff_cdg ]; do sleep 0.05; done
            $FLEETFOOT list --attached
            $FLEETFOOT detach cdg --default
            [ $(default self) = $before ]
            [ $(default $heir) = ff_cdg ]
            $FLEETFOOT detach cdg
            [ $(default $heir) = \"$(default 1 2>/dev/null || echo $before)\" ]
            echo done",
        ) else {
            return;
        };
        let (text, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
        if said.contains("File exists") || said.contains("Operation not permitted") {
            println!("skipped: {said}");
            return;
        }
        assert!(
            output.status.success() && text.ends_with("done\n"),
            "{text}{said}"
        );
        for expected in [
            "known to the kernel; also the default of one namespace that inherited it\n",
            "still the default of one namespace that inherited it: detach without a place reaches it\n",
            "cdg (ff_cdg)         no longer known to the kernel\n",
            "default of namespace of process ",
            "; had inherited it\n",
        ] {
            assert!(text.contains(expected), "{expected:?} in {text}");
        }
    }

    /// As `script`, without a /sys/fs/bpf; `unshare` is started with these flags besides.
    fn without_bpf(flags: &[&str], text: &str) -> Option<Output> {
        script("true")?;
        let output = Command::new("unshare")
            .args(["--mount", "--net", "--propagation", "private"])
            .args(flags)
            .args(["sh", "-c"])
            .arg(format!(
                "while umount /sys/fs/bpf 2>/dev/null; do :; done; ip link set lo up || exit 99\n{text}"
            ))
            .env("FLEETFOOT", FLEETFOOT)
            .output()
            .expect("unshare is there");
        (output.status.code() != Some(99)).then_some(output)
    }

    #[test]
    fn mounts_that_end_with_a_command_are_refused_before_anything_is_changed() {
        let Some(output) = without_bpf(
            &[],
            "ip link add va type veth peer name vb
            $FLEETFOOT attach mark --interface va; echo status $?
            $FLEETFOOT attach newcwv --default; echo status $?
            ip -d link show dev va | grep -o 'gso_max_segs 65535'
            grep -q ' /sys/fs/bpf ' /proc/self/mounts || echo unmounted",
        ) else {
            return;
        };
        let (text, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
        assert_eq!(
            text, "status 2\nstatus 2\ngso_max_segs 65535\nunmounted\n",
            "{said}"
        );
        assert_eq!(
            said.matches("with --namespace NAME or --pid PID").count(),
            2,
            "{said}"
        );
    }

    #[test]
    fn what_this_program_mounts_is_roots_alone_and_a_folder_of_others_is_refused() {
        // The first process of its own: its mounts are not those of a command.
        let Some(output) = without_bpf(
            &["--pid", "--fork", "--mount-proc"],
            "set -e
            $FLEETFOOT attach options --initial-window 20 > /dev/null
            stat -c %a /sys/fs/bpf /sys/fs/bpf/fleetfoot
            $FLEETFOOT detach options > /dev/null
            for change in 'chown 1' 'chmod 777'; do
                mkdir /sys/fs/bpf/fleetfoot
                $change /sys/fs/bpf/fleetfoot
                $FLEETFOOT attach options --initial-window 20 || echo status $?
                rmdir /sys/fs/bpf/fleetfoot
            done",
        ) else {
            return;
        };
        let (text, said) = (String::from_utf8_lossy(&output.stdout), said(&output));
        assert_eq!(text, "1700\n700\nstatus 2\nstatus 2\n", "{said}");
        assert_eq!(said.matches("is not a folder of root").count(), 2, "{said}");
    }

    /// Killed at any time, what is left can be completed and removed.
    #[test]
    fn a_kill_leaves_nothing_that_the_next_attach_or_detach_cannot_repair() {
        let Some(output) = script(
            "ip link add va type veth peer name vb
            set -e
            try() {
                for ms in 0 2 4 6 8 10 13 16 20 25 30 40 60; do
                    $FLEETFOOT \"$@\" >/dev/null 2>&1 &
                    sleep 0.0$(printf %02d $ms)
                    kill -9 $! 2>/dev/null || true
                    wait $! 2>/dev/null || true
                    if [ $((ms % 4)) = 0 ]; then
                        $FLEETFOOT \"$@\" >/dev/null
                        $FLEETFOOT list --attached | grep -q incomplete && exit 1
                    fi
                    $FLEETFOOT detach $2 >/dev/null 2>&1 || [ $? = 2 ]
                    [ \"$($FLEETFOOT list --attached)\" = 'nothing is attached' ]
                    [ ! -e /sys/fs/bpf/fleetfoot ]
                done
            }
            before=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
            try attach cdg --default
            [ $(cat /proc/sys/net/ipv4/tcp_congestion_control) = $before ]
            try attach mark --interface va
            ip -d link show dev va | grep -q 'gso_max_segs 65535'
            echo done",
        ) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let said = said(&output);
        if said.contains("File exists") || said.contains("Operation not permitted") {
            println!("skipped: {said}");
            return;
        }
        assert!(
            output.status.success() && text.ends_with("done\n"),
            "{text}{said}"
        );
    }

    #[test]
    fn places_that_are_not_there_are_named() {
        if script("true").is_none() {
            return;
        }
        for (arguments, expected) in [
            (
                &["attach", "cdg", "--namespace", "no-such"][..],
                "there is no network namespace \"no-such\"",
            ),
            (
                &["attach", "cdg", "--pid", "4294967295"],
                "there is no process 4294967295",
            ),
            (
                &["attach", "mark", "--interface", "no-such"],
                "there is no interface \"no-such\"",
            ),
        ] {
            let output = fleetfoot(arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
            assert!(said(&output).contains(expected), "{}", said(&output));
        }
    }
}
