//! Each test has its own guard; the table that [`find`] reads is the latest one's, so tests look up
//! places through their guards.

use super::*;

fn guard() -> Guard {
    Guard::new(&GuardOptions { kept_blocks: 4, ..GuardOptions::default() })
}

fn take(guard: &Guard, bytes: usize) -> *mut u8 {
    guard.allocate(bytes, 64).expect("there is memory").as_ptr().cast()
}

fn give(guard: &Guard, data: *mut u8) {
    guard.deallocate(NonNull::new(data).expect("not null").cast());
}

#[test]
fn buffers_are_aligned_poisoned_and_touch_the_end_of_their_pages() {
    let guard = guard();
    for bytes in [0usize, 1, 63, 64, 65, 4095, 4096, 4097, 1 << 20] {
        let data = take(&guard, bytes);
        assert_eq!(data as usize % 64, 0);
        assert_eq!((data as usize + bytes.next_multiple_of(64)) % 4096, 0, "{bytes} bytes");
        // SAFETY: live, with this size.
        let fresh = unsafe { slice::from_raw_parts(data, bytes) };
        assert!(fresh.iter().all(|&byte| byte == 0xa5));
        give(&guard, data);
    }
    guard.set_side(Side::Start);
    guard.set_poison(0x5a);
    let data = take(&guard, 65);
    assert_eq!(data as usize % 4096, 0);
    // SAFETY: live, with this size.
    assert_eq!(unsafe { *data.add(64) }, 0x5a);
    give(&guard, data);
    assert_eq!(guard.violations(), []);
}

#[test]
fn a_buffer_ends_to_the_byte_where_no_alignment_is_asked_for() {
    let guard = guard();
    guard.set_side(Side::Exact);
    for bytes in [0usize, 4, 20, 63, 64, 65, 4096, 4100] {
        let data = take(&guard, bytes);
        assert_eq!((data as usize + bytes) % 4096, 0, "{bytes} bytes");
        // SAFETY: live, with this size.
        let fresh = unsafe { slice::from_raw_parts(data, bytes) };
        assert!(fresh.iter().all(|&byte| byte == 0xa5));
        give(&guard, data);
    }
    let data = take(&guard, 20);
    // SAFETY: a byte of the same page, before the buffer.
    unsafe { data.sub(1).write(1) };
    assert_eq!(guard.violations().len(), 1);
    give(&guard, data);
}

#[test]
fn large_alignments_are_kept() {
    let guard = guard();
    for align in [64usize, 128, 4096, 1 << 16] {
        let data = guard.allocate(100, align).expect("there is memory");
        assert_eq!(data.as_ptr() as usize % align, 0);
        guard.deallocate(data);
    }
}

#[test]
fn what_is_written_beside_a_buffer_is_told_once() {
    let guard = guard();
    let data = take(&guard, 40);
    guard.name(data.cast(), Role::Output(2));
    // SAFETY: bytes of the same page, beside the buffer.
    unsafe {
        data.add(40).write(1);
        data.add(43).write(2);
        data.sub(8).write(3);
    }
    let words: Vec<String> = guard.violations().iter().map(Violation::to_string).collect();
    assert_eq!(
        words,
        [
            "byte -8 of output 2, a buffer of 40 bytes, 8 before its start, was written: expected 0xcb, \
             found 0x03",
            "byte 40 of output 2, a buffer of 40 bytes, just beyond its end, was written: expected 0xcb, \
             found 0x01, as 1 further bytes there",
        ]
    );
    assert_eq!(guard.violations(), []);
    // SAFETY: bytes of the same page, beside the buffer.
    unsafe { data.add(63).write(9) };
    give(&guard, data);
    let last = guard.violations();
    assert_eq!(last.len(), 1, "found when it was given back");
    assert_eq!((last[0].place.offset, last[0].found), (63, 9));
}

#[test]
fn the_table_follows_a_blocks_life() {
    let guard = guard();
    let data = take(&guard, 100);
    let (row, at) = (guard.blocks.lock().live[&data.addr()].row, data.addr() + 5);
    let state = || guard.table.place(row, at).map(|place| (place.state, place.role));
    assert_eq!(state(), Some((BlockState::Writable, Role::Unnamed)));
    guard.protect(data.cast(), Role::Input(1)).expect("a buffer");
    assert_eq!(state(), Some((BlockState::ReadOnly, Role::Input(1))));
    assert_eq!(
        guard.table.find(at).map(|place| place.to_string()).as_deref(),
        Some("byte 5 of input 1, a buffer of 100 bytes that is read-only")
    );
    guard.release(data.cast()).expect("a buffer");
    // SAFETY: writable again.
    unsafe { data.write(1) };
    give(&guard, data);
    assert_eq!(state(), Some((BlockState::Freed, Role::Unnamed)));
    for _ in 0..8 {
        let other = take(&guard, 8);
        give(&guard, other);
    }
    assert_eq!(guard.blocks.lock().freed.len(), 4, "the quarantine is bounded");
    assert!(guard.table.find(at).is_none_or(|place| place.bytes == 8), "gone");
    assert!(guard.protect(data.cast(), Role::Input(0)).is_err());
    guard.forget();
    assert!(guard.blocks.lock().freed.is_empty());
}

#[test]
fn rows_run_out_with_an_answer_and_come_back() {
    let guard = Guard::new(&GuardOptions::default());
    let mut held = Vec::new();
    while let Some(data) = guard.allocate(1, 64) {
        held.push(data);
        assert!(held.len() <= ROWS);
    }
    assert!(held.len() > ROWS / 2, "{} buffers", held.len());
    for data in held.drain(..) {
        guard.deallocate(data);
    }
    let again = guard.allocate(1, 64).expect("there is room again");
    guard.deallocate(again);
}
