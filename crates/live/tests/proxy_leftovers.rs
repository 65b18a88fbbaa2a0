//! A proxy that has served, refused and been broken off keeps no descriptor and no thread. Alone in its file: both are those of the
//! process. Needs namespaces and TUN; says so and skips without.
#![cfg(target_os = "linux")]

use fleetfoot_core::tcp::{Config, Profile};
use fleetfoot_live::host::{Host, HostConfig, Place};
use fleetfoot_live::proxy::{Front, Limits, Prefix, Proxy, ProxyConfig, system_lookup};
use fleetfoot_live::{Error, Namespace};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn entries(of: &str) -> usize {
    std::fs::read_dir(of).expect("there is /proc").count()
}

/// One life of a proxy: clients that are served, refused by the target, refused for their request, looked up in vain, or stay until its end.
fn life(number: u32) -> Result<(), Error> {
    let place = Place::numbered(number);
    let attached = place.attach()?;
    let listener = TcpListener::bind((attached.kernel[0], 0)).expect("a port");
    let target = listener.local_addr().expect("bound");
    let config = HostConfig {
        addresses: place.hosts(),
        tcp: Config::profile(Profile::Linux),
        seed: 1,
    };
    let local: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let config = (
        Host::new(attached.device, config),
        ProxyConfig {
            front: Front::Kernel(vec![local]),
            target: None,
            allow: Prefix::LOOPBACK.to_vec(),
            most: 100,
            limits: Limits::default(),
            lookup: system_lookup(),
        },
    );
    let mut proxy = Proxy::new(config.0, config.1)?;
    let at = proxy.listening_at()[0];
    let (stop, stopping) = std::io::pipe().expect("a pipe");
    std::thread::scope(|scope| {
        let clients = scope.spawn(move || {
            let nobody = SocketAddr::new(target.ip(), 9);
            let mut open = Vec::new();
            for asked in [
                format!("CONNECT {target} HTTP/1.1\r\n\r\n"),
                format!("CONNECT {nobody} HTTP/1.1\r\n\r\n"),
                String::from("CONNECT no-such-name.invalid:80 HTTP/1.1\r\n\r\n"),
                String::from("GET / HTTP/1.1\r\n\r\n"),
                String::from("CONN"),
            ] {
                let mut stream = TcpStream::connect(at).expect("it listens");
                stream
                    .set_read_timeout(Some(Duration::from_secs(60)))
                    .expect("an option");
                stream.write_all(asked.as_bytes()).expect("room");
                if asked.len() > 4 {
                    assert!(stream.read(&mut [0; 12]).expect("an answer") > 0, "{asked}");
                }
                open.push(stream);
            }
            drop(stopping);
            (open, listener.accept().expect("the first of them"))
        });
        let ran = proxy.run(&stop, |_| false);
        let ended = proxy.end();
        drop(clients.join());
        ran.and(ended)
    })
}

#[test]
fn no_descriptor_and_no_thread_is_left() {
    if let Err(reason) = Namespace::available() {
        println!("skipped: {reason}");
        return;
    }
    Namespace::run(|_| {
        let state = || (entries("/proc/self/fd"), entries("/proc/self/task"));
        let before = state();
        for number in 0..5 {
            life(150 + number)?;
            // A thread that has ended is listed a moment longer; those that look names up end when their last name is answered.
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(30) && before != state() {
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(state(), before);
        }
        Ok(())
    })
    .expect("a namespace");
}
