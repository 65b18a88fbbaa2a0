//! The functions that a page calls: texts go in and out as a place and a length in the engine's memory.
//!
//! The page gives `fleetfoot.now` (s, a clock) and `fleetfoot.progress` (a JSON object), writes a request where [`reserve`] says,
//! calls [`call`], reads the answer and gives it back to [`release`].

use crate::{call_with_record, parted};
use std::sync::atomic::AtomicBool;

#[link(wasm_import_module = "fleetfoot")]
unsafe extern "C" {
    #[link_name = "now"]
    safe fn page_now() -> f64;
    #[link_name = "progress"]
    safe fn page_progress(text: *const u8, length: usize);
}

/// Memory that the engine may take (bytes).
const MEMORY: u64 = 2_000_000_000;

/// Room for `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Gives back what [`reserve`] or [`call`] returned.
///
/// # Safety
/// `place` and `length` are those of one of them, and it was not given back before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(place: *mut u8, length: usize) {
    // SAFETY: it came from a boxed slice of this length.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(place, length)) });
}

/// Answers the message of `length` bytes at `place`, a request and what is attached to it ([`parted`]): the place of the answer in the same form, whose length stands in the upper half.
///
/// # Safety
/// `place` and `length` are those of [`reserve`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn call(place: *const u8, length: usize) -> u64 {
    fleetfoot_lab::memory::limit_to(MEMORY);
    fleetfoot_lab::clock::keep(|| page_now());
    // SAFETY: as promised.
    let message = unsafe { std::slice::from_raw_parts(place, length) };
    let (request, attached) = parted(message);
    let (mut answer, record) = call_with_record(&request, attached, &AtomicBool::new(false), &|progress| {
        let text = progress.to_string();
        page_progress(text.as_ptr(), text.len());
    });
    answer.push('\n');
    let answer = [answer.into_bytes(), record].concat().into_boxed_slice();
    let length = answer.len() as u64;
    (length << 32) | Box::into_raw(answer).cast::<u8>() as u64
}
