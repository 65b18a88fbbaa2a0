//! Values of options against what Linux 6.18 made of them (`linux-6.18-options.txt`).

use super::SERVER;
use crate::socket::{Errno, Family, Memory, OptionValue, SocketOption, Stack, StackConfig};
use crate::tcp::{Config, Profile};
use crate::time::Instant;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;

#[test]
fn options_take_and_give_what_linux_does() {
    let recorded = include_str!("linux-6.18-options.txt");
    let mut tcp = Config::profile(Profile::Linux);
    tcp.syn_retries = 6;
    let mut config = StackConfig::new(vec![SERVER], tcp);
    config.receive_memory = Memory {
        min: 4096,
        default: 131_072,
        max: 33_554_432,
    };
    let now = Instant::ZERO;
    let (mut checked, mut wrong) = (0, String::new());
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let words: vec::Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, value, expected, expected_back] = words[..] else {
            panic!("not a line of the table: {line}");
        };
        let mut stack = Stack::new(config.clone());
        let fd = stack.socket(now, Family::V4).expect("a socket");
        let option = SocketOption::by_name(name).expect("a known option");
        assert_eq!(
            SocketOption::by_number(option.number().0, option.number().1),
            Some(option)
        );
        let answer = match value.parse() {
            Err(_) => "-".to_string(),
            Ok(value) => match stack.setsockopt(now, fd, option, &OptionValue::Int(value)) {
                Ok(()) => "0".to_string(),
                Err(errno) => errno.name().to_string(),
            },
        };
        let back = match stack.getsockopt(now, fd, option) {
            Ok(OptionValue::Int(value)) => value.to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(errno) => errno.name().to_string(),
        };
        if (answer.as_str(), back.as_str()) != (expected, expected_back) {
            wrong = format!("{wrong}{name} {value}: {answer} {back}, Linux {expected} {expected_back}\n");
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(checked, 30 * 28);
    assert_eq!(Errno::by_name("EWOULDBLOCK"), Some(Errno::EAGAIN));
}
