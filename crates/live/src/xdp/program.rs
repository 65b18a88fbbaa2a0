//! The program that gives frames to the socket, in the kernel's own code.

use super::calls::{check, owned};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Attaches the program: the link that keeps it, its map, and whether it runs in the driver.
pub(super) fn attach(
    socket: RawFd,
    index: u32,
) -> Result<(OwnedFd, OwnedFd, bool), (&'static str, io::Error)> {
    const MAP_CREATE: i32 = 0;
    const MAP_UPDATE: i32 = 2;
    const PROGRAM_LOAD: i32 = 5;
    const LINK_CREATE: i32 = 28;
    const XSKMAP: u32 = 17;
    const PROGRAM_XDP: u32 = 6;
    const ATTACH_XDP: u32 = 37;
    const BEHIND_DRIVER: u32 = 1 << 1;
    const IN_DRIVER: u32 = 1 << 2;
    let rights = "no program can be loaded (CAP_BPF is needed besides)";
    // Type, size of keys and of values, entries, flags.
    let map = owned(bpf(MAP_CREATE, &mut [XSKMAP, 4, 4, 1, 0])).map_err(|cause| (rights, cause))?;
    let (key, value) = (0_u32, socket as u32);
    let [key, value] = [&raw const key, &raw const value].map(|pointer| halves(pointer as u64));
    check(bpf(
        MAP_UPDATE,
        &mut [
            map.as_raw_fd() as u32,
            0,
            key[0],
            key[1],
            value[0],
            value[1],
            0,
            0,
        ],
    ))
    .map_err(|cause| (rights, cause))?;
    let instruction = |code: u8, registers: u8, offset: u16, immediate: i32| {
        u64::from(code)
            | u64::from(registers) << 8
            | u64::from(offset) << 16
            | u64::from(immediate as u32) << 32
    };
    // return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)
    let program = [
        instruction(0x61, 0x12, 16, 0),              // r2 = *(u32 *)(r1 + 16)
        instruction(0x18, 0x11, 0, map.as_raw_fd()), // r1 = map
        instruction(0, 0, 0, 0),                     // its upper half
        instruction(0xb7, 0x03, 0, 2),               // r3 = XDP_PASS
        instruction(0x85, 0, 0, 51),                 // call bpf_redirect_map
        instruction(0x95, 0, 0, 0),                  // exit
    ];
    let (code, licence) = (
        halves(program.as_ptr() as u64),
        halves(c"Dual MIT/GPL".as_ptr() as u64),
    );
    let mut load = [0_u32; 18];
    load[..6].copy_from_slice(&[
        PROGRAM_XDP,
        program.len() as u32,
        code[0],
        code[1],
        licence[0],
        licence[1],
    ]);
    load[17] = ATTACH_XDP; // expected_attach_type
    let program = owned(bpf(PROGRAM_LOAD, &mut load)).map_err(|cause| (rights, cause))?;
    let link = |mode| {
        owned(bpf(
            LINK_CREATE,
            &mut [program.as_raw_fd() as u32, index, ATTACH_XDP, mode],
        ))
    };
    let busy = |cause: &io::Error| matches!(cause.raw_os_error(), Some(libc::EBUSY | libc::EEXIST));
    match link(IN_DRIVER) {
        Ok(link) => return Ok((link, map, true)),
        Err(cause) if busy(&cause) => {
            return Err(("another program is attached (ip link set NAME xdp off)", cause));
        }
        Err(_) => {}
    }
    match link(BEHIND_DRIVER) {
        Ok(link) => Ok((link, map, false)),
        Err(cause) => Err(("the program cannot be attached", cause)),
    }
}

fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// A request of bpf(2), as the words of its `union bpf_attr`.
fn bpf(command: i32, words: &mut [u32]) -> i32 {
    // SAFETY: the kernel reads as many bytes as it is told, and what they point to lives to the end of the call.
    unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            words.as_mut_ptr(),
            size_of_val(words) as u32,
        ) as i32
    }
}
