//! Notices: nothing that a driver waits for happens without one.

use super::super::{ConnectionId, Events, How, Notice, Stack};
use super::{Family, Fd, PORT, Pair, SERVER, done};
use crate::time::Duration;
use alloc::vec::Vec;
use core::net::SocketAddr;

fn notices(stack: &mut Stack) -> (Vec<Fd>, Vec<ConnectionId>) {
    let (mut sockets, mut ended) = (Vec::new(), Vec::new());
    while let Some(notice) = stack.poll_notice() {
        match notice {
            Notice::Socket(fd) => sockets.push(fd),
            Notice::Ended(id) => ended.push(id),
        }
    }
    (sockets, ended)
}

#[test]
fn a_connection_is_noticed_at_every_step_and_when_it_is_gone() {
    let mut pair = Pair::new();
    for host in &mut pair.hosts {
        host.keep_notices(true);
    }
    let listener = pair.listener(5);
    let now = pair.now;
    let client = pair.hosts[0].socket(now, Family::V4).expect("a socket");
    pair.hosts[0].set_nonblocking(client, true).expect("open");
    let _ = pair.hosts[0].connect(now, client, SocketAddr::new(SERVER, PORT));
    pair.run(Duration::from_millis(100));
    assert_eq!(notices(&mut pair.hosts[0]).0, [client], "connected");
    assert_eq!(notices(&mut pair.hosts[1]).0, [listener], "someone to accept");
    let now = pair.now;
    let (server, _) = done(pair.hosts[1].accept(now, listener));
    assert!(done(pair.hosts[0].write(now, client, 1000)).len == 1000);
    pair.run(Duration::from_millis(100));
    assert_eq!(notices(&mut pair.hosts[1]).0, [server], "data");
    let now = pair.now;
    let found = pair.hosts[1].poll(now, server, Events::IN).expect("open");
    assert!(found.contains(Events::IN));
    let id = pair.hosts[1].connection_id(server).expect("a connection");
    assert!(pair.hosts[1].connection_by_id(id).is_some());
    assert_eq!(done(pair.hosts[1].read(now, server, 5000)).len, 1000);
    pair.hosts[0]
        .shutdown(now, client, How::Write)
        .expect("connected");
    pair.run(Duration::from_millis(100));
    assert!(notices(&mut pair.hosts[1]).0.contains(&server), "the end");
    let now = pair.now;
    assert_eq!(done(pair.hosts[1].read(now, server, 5000)).len, 0);
    done(pair.hosts[1].close(now, server));
    pair.run(Duration::from_millis(100));
    assert_eq!(notices(&mut pair.hosts[1]).1, [id], "nothing to keep");
    assert!(pair.hosts[1].connection_by_id(id).is_none());
    let now = pair.now;
    let id = pair.hosts[0].connection_id(client).expect("its record");
    done(pair.hosts[0].close(now, client));
    pair.run(Duration::from_millis(100));
    assert_eq!(notices(&mut pair.hosts[0]).1, [id]);
}

#[test]
fn nothing_is_kept_for_whoever_does_not_ask() {
    let mut pair = Pair::new();
    let listener = pair.listener(5);
    let now = pair.now;
    let client = pair.hosts[0].socket(now, Family::V4).expect("a socket");
    let _ = pair.hosts[0].connect(now, client, SocketAddr::new(SERVER, PORT));
    pair.run(Duration::from_millis(100));
    assert!(pair.hosts.iter_mut().all(|host| host.poll_notice().is_none()));
    let now = pair.now;
    done(pair.hosts[1].accept(now, listener));
}

#[test]
fn data_that_was_not_read_stays_readable_after_both_ends_closed() {
    let mut pair = Pair::new();
    let (client, server) = pair.connected();
    let now = pair.now;
    done(pair.hosts[1].write(now, server, 3000));
    pair.hosts[1]
        .shutdown(now, server, How::Write)
        .expect("connected");
    pair.hosts[0]
        .shutdown(now, client, How::Write)
        .expect("connected");
    pair.run(Duration::from_secs(1));
    let now = pair.now;
    assert_eq!(done(pair.hosts[0].read(now, client, 5000)).len, 3000);
    assert_eq!(done(pair.hosts[0].read(now, client, 5000)).len, 0);
}
