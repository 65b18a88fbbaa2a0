//! `fleetfoot proxy`: what programs reach through it, what it reports, and that nothing of it is left. Needs namespaces; says so and
//! skips without. All of it happens in a namespace that stands for the machine.
#![cfg(target_os = "linux")]

use fleetfoot_live::Namespace;
use std::process::{Command, Output};

fn in_namespace(test: impl FnOnce(&Namespace) + Send) {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    Namespace::run(|namespace| {
        test(namespace);
        Ok(())
    })
    .expect("namespaces are there");
}

fn has(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let found = Command::new(program).arg("--version").output().is_ok();
        if !found {
            println!("skipped: {program} is not installed");
        }
        found
    })
}

/// Runs a script of bash with `$FLEETFOOT`, in a folder of its own; `started FILE` waits for the first line of a proxy.
fn script(name: &str, text: &str) -> Output {
    let folder = std::env::temp_dir().join(format!("fleetfoot-proxy-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!(
        "set -m; trap - INT
         started() {{ for _ in $(seq 200); do grep -q 'proxy at' $1 && return; sleep 0.05; done; echo no proxy; cat $1; exit 1; }}
         {text}"
    );
    let output = Command::new("bash")
        .current_dir(&folder)
        .env("FLEETFOOT", env!("CARGO_BIN_EXE_fleetfoot"))
        .args(["-c", &text])
        .output()
        .expect("bash is there");
    let _ = std::fs::remove_dir_all(&folder);
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn curl_reaches_a_server_by_every_protocol_and_the_counters_say_so() {
    if !has(&["curl", "python3", "bash"]) {
        return;
    }
    in_namespace(|_| {
        let output = script(
            "curl",
            r#"
            head -c 300000 /dev/urandom > file
            ip address add 10.8.0.1/24 dev lo
            python3 -m http.server 8000 --bind 0.0.0.0 > /dev/null 2>&1 & server=$!
            until curl -s -o /dev/null http://10.8.0.1:8000/file; do sleep 0.1; done
            $FLEETFOOT proxy --address 10.9.0.2/24 --set tcp.congestion_control=reno --json > document 2> said & proxy=$!
            $FLEETFOOT proxy --listen 3128 --to 10.8.0.1:8000 --address 10.10.0.2/24 2> also & other=$!
            started said; started also
            curl -sS --socks5 127.0.0.1:1080 http://10.8.0.1:8000/file | cmp - file && echo socks5
            curl -sS --socks5-hostname 127.0.0.1:1080 http://10.8.0.1:8000/file | cmp - file && echo socks5h
            curl -sS -p -x http://127.0.0.1:1080 http://10.8.0.1:8000/file | cmp - file && echo connect
            curl -sS http://127.0.0.1:3128/file | cmp - file && echo plain
            curl -sS -x http://127.0.0.1:1080 http://10.8.0.1:8000/file -o /dev/null -w '%{http_code}\n'
            curl -sS -p -x http://127.0.0.1:1080 http://10.8.0.1:8001/ 2>&1 | grep -o 'response 502'
            curl -sS --socks5 127.0.0.1:1080 http://127.0.0.1:8000/ 2>&1 | grep -o '(2)'
            kill -USR1 $proxy
            until grep -q 'our TCP: ' said; do sleep 0.05; done
            kill -INT $proxy; wait $proxy; echo $?
            kill -TERM $other; wait $other; echo $?
            kill $server
            sed -n 's/^\([0-9]* connections ([0-9]* open): [0-9]* finished\).*/\1/p' said
            tail -4 also | head -1 | cut -d: -f1
            ip -o link | grep -c ffh
            cat document >&2
        "#,
        );
        assert_eq!(
            text(&output),
            "socks5\nsocks5h\nconnect\nplain\n405\nresponse 502\n(2)\n0\n0\n6 connections (0 open): 3 finished\n\
             1 connection (0 open)\n0\n",
            "{output:?}"
        );
        // Behind what bash says of the jobs that were ended.
        let said = String::from_utf8_lossy(&output.stderr);
        let (begin, end) = said.find('{').zip(said.rfind('}')).expect("a document");
        let document: serde_json::Value = serde_json::from_str(&said[begin..=end]).expect("one document");
        assert_eq!(document["schema"], "fleetfoot-proxy");
        assert_eq!(document["clients"][0], "127.0.0.1:1080");
        let counts = &document["proxy"];
        for (name, count) in [
            ("accepted", 6),
            ("socks", 3),
            ("http", 2),
            ("connected", 3),
            ("malformed", 1),
            ("refused", 1),
            ("forbidden", 1),
            ("finished", 3),
            ("open", 0),
        ] {
            assert_eq!(counts[name], count, "{name}: {counts}");
        }
        assert!(counts["bytes_to_client"].as_u64() > Some(900_000), "{counts}");
        assert!(document["tcp"]["segments_sent"].as_u64() >= Some(3), "{document}");
        assert_eq!(document["counters"]["lost_bytes"], 0);
    });
}

#[test]
fn a_proxy_that_was_killed_leaves_nothing_and_starts_again() {
    if !has(&["nft", "curl", "python3", "unshare", "bash"]) {
        return;
    }
    in_namespace(|_| {
        // Beyond the machine is a server that knows no way to the addresses of our TCP.
        let output = script(
            "killed",
            r#"
            unshare -n sleep 600 & beyond=$!
            until [ "$(readlink /proc/$beyond/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
            there="nsenter -n -t $beyond"
            ip link add uplink type veth peer name w netns $beyond
            ip address add 198.51.100.1/24 dev uplink; ip link set uplink up
            $there ip address add 198.51.100.2/24 dev w; $there ip link set w up
            $there python3 -m http.server 80 > /dev/null 2>&1 & server=$!
            until curl -s -o /dev/null http://198.51.100.2/; do sleep 0.1; done
            routes() { ip route; ip -6 route; ip -o link | cut -d: -f2; nft list ruleset; cat /proc/sys/net/ipv4/conf/uplink/forwarding; }
            routes > before
            for round in 1 2 3; do
                $FLEETFOOT proxy --masquerade --tun ffproxy 2> said & proxy=$!
                started said
                ip -o link show ffproxy > /dev/null && nft list ruleset | grep -c 'oifname != "ffproxy" masquerade'
                cat /proc/sys/net/ipv4/conf/uplink/forwarding
                curl -s --max-time 20 --socks5 127.0.0.1:1080 http://198.51.100.2/ -o /dev/null -w '%{http_code}\n'
                # As systemd does: what asks for the report comes to the process that waits to undo, too.
                kill -USR1 $proxy $(cat /proc/$proxy/task/$proxy/children)
                kill -9 $proxy; wait $proxy 2> /dev/null
                for _ in $(seq 200); do routes > after; cmp -s before after && break; sleep 0.05; done
                diff before after && echo as before
            done
            kill $server $beyond
        "#,
        );
        let round = "2\n1\n200\nas before\n";
        assert_eq!(text(&output), round.repeat(3), "{output:?}");
    });
}

#[test]
fn a_pair_crosses_a_described_link() {
    if !has(&["python3", "bash"]) {
        return;
    }
    in_namespace(|_| {
        // The far proxy and an echo are at the far end of the link, the near proxy and the client at the other.
        let output = script(
            "pair",
            r#"
            cat > echo.py <<'PY'
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
socketserver.ThreadingTCPServer(("127.0.0.1", 7), Echo).serve_forever()
PY
            cat > client.py <<'PY'
import os, socket, threading
sent = os.urandom(400_000)
stream = socket.create_connection(("127.0.0.1", 1080))
def write():
    stream.sendall(sent)
    stream.shutdown(socket.SHUT_WR)
threading.Thread(target=write).start()
back = b""
while data := stream.recv(65536):
    back += data
print("same" if back == sent else f"{len(back)} bytes came back")
PY
            cat > far.sh <<'SH'
python3 echo.py &
exec $FLEETFOOT proxy --accept 7000 --to 127.0.0.1:7 --allow 0.0.0.0/0 --set tcp.rdb=one
SH
            cat > near.sh <<'SH'
$FLEETFOOT proxy --to $FLEETFOOT_HOST:7000 2> near & proxy=$!
until grep -q 'proxy at' near; do sleep 0.05; done
sleep 1
python3 client.py
kill -INT $proxy; wait $proxy; echo $?
SH
            $FLEETFOOT shell --rate 50mbit --delay 5ms --loss 2% --seed 3 --far "bash far.sh" --quiet -- bash near.sh
        "#,
        );
        assert_eq!(text(&output), "same\n0\n", "{output:?}");
    });
}
