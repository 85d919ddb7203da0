use super::*;

const FILE: u64 = 0x4000;

fn segment(kind: spec::ProgramType, flags: u32, offset: u64, address: u64, bytes: u64) -> Segment {
    let align = if kind == PT_LOAD { PAGE } else { 8 };
    Segment { at: 0, kind, flags, offset, address, file_bytes: bytes, bytes, align }
}

/// A small library as a linker lays it out: read-only data, code, data followed by zeros.
fn library() -> Vec<Segment> {
    let mut all = vec![
        segment(PT_LOAD, 4, 0, 0, 0x800),
        segment(PT_LOAD, 5, 0x1000, 0x1000, 0x500),
        Segment { bytes: 0x900, ..segment(PT_LOAD, 6, 0x2e00, 0x3e00, 0x400) },
        segment(PT_DYNAMIC, 6, 0x2e10, 0x3e10, 0x1c0),
        segment(PT_NOTE, 4, 0x200, 0x200, 0x20),
        Segment { bytes: 0x20, ..segment(PT_TLS, 4, 0x2e00, 0x3e00, 0x10) },
        segment(PT_GNU_RELRO, 4, 0x2e00, 0x3e00, 0x200),
        segment(spec::PT_GNU_STACK, 6, 0, 0, 0),
    ];
    all.iter_mut().enumerate().for_each(|(at, segment)| segment.at = at);
    all
}

fn section(name: &str, offset: u64, address: u64, bytes: u64) -> Section {
    let (writable, executable) = (name.starts_with(".data"), name == ".text");
    let per_thread = name.starts_with(".t") && name != ".text";
    let in_file = !name.ends_with("bss");
    Section {
        name: name.to_owned(),
        address,
        offset,
        bytes,
        in_file,
        writable: writable || !in_file,
        executable,
        per_thread,
    }
}

fn sections() -> Vec<Section> {
    vec![
        section(".rodata", 0x300, 0x300, 0x100),
        section(".text", 0x1000, 0x1000, 0x500),
        section(".tdata", 0x2e00, 0x3e00, 0x10),
        section(".tbss", 0x2e10, 0x3e10, 0x10),
        section(".data", 0x3000, 0x4000, 0x200),
        section(".bss", 0x3200, 0x4200, 0x500),
    ]
}

fn checked(segments: &[Segment]) -> Result<(), String> {
    Layout::new(segments, FILE)?.check_sections(&sections())
}

fn refused(at: usize, change: impl FnOnce(&mut Segment)) -> String {
    let mut segments = library();
    change(&mut segments[at]);
    checked(&segments).unwrap_err()
}

#[test]
fn what_a_linker_writes_passes() {
    checked(&library()).unwrap();
    let layout = Layout::new(&library(), FILE).unwrap();
    assert!(layout.covers(0x1000, 0x500) && !layout.covers(0x1000, 0x501));
    assert!(!layout.covers(u64::MAX, 2), "a range that has no end");
}

#[test]
fn ranges_outside_of_file_and_memory_are_refused() {
    let past = refused(1, |text| text.file_bytes = 0x4000);
    assert_eq!(
        past,
        "program header 1: 16384 bytes from 4096 on reach past the end of the file, which has 16384"
    );
    for end in [u64::MAX, u64::MAX - 0x1000] {
        assert!(refused(0, |load| load.file_bytes = end).contains("past the end of the file"));
        assert!(refused(0, |load| load.bytes = end).contains("are in no memory"));
    }
    assert!(refused(2, |load| load.bytes = 1 << 41).contains("bytes in memory"));
}

#[test]
fn parts_that_overlap_or_are_out_of_order_are_refused() {
    let over = refused(0, |load| load.bytes = 0x1001);
    assert_eq!(over, "program header 1: address 0x1000 is not past the end of program header 0");
    assert!(refused(2, |load| load.address = 0xe00).contains("is not past the end"));
}

#[test]
fn alignments_that_the_linker_cannot_serve_are_refused() {
    for align in [0, 1, 3, 512, 0x1800, 1 << 40] {
        assert!(refused(1, |load| load.align = align).contains("alignment"), "{align}");
    }
    assert!(refused(1, |load| load.address += 8).contains("aligned differently"));
    assert!(refused(5, |thread| thread.align = 24).contains("alignment 24"));
}

#[test]
fn what_is_read_by_the_linker_must_be_mapped() {
    for at in [3, 4, 5] {
        assert!(refused(at, |part| part.address += 0x10_0000).contains("is mapped"), "{at}");
    }
    assert!(refused(3, |dynamic| dynamic.bytes += 8).contains("448 bytes in the file, 456"));
    assert!(refused(6, |sealed| sealed.address = 0x1000).contains("no part that can be written"));
    assert!(refused(6, |sealed| sealed.bytes = u64::MAX).contains("no part that can be written"));
    assert!(refused(6, |sealed| sealed.bytes = 0x1200).contains("makes section '.data' read-only"));
}

#[test]
fn permissions_and_places_follow_the_sections() {
    assert!(refused(0, |load| load.flags = 2).contains("cannot be read"));
    let text = refused(1, |load| load.flags = 4);
    assert_eq!(text, "program header 1: section '.text', which it maps, cannot run");
    assert!(refused(2, |load| load.flags = 4).contains("can be written, program header 2"));
    assert!(refused(1, |load| load.kind = spec::PT_NULL).contains("section '.text' is in no part"));
    assert!(refused(2, |load| load.bytes = 0x400).contains("section '.bss' is in no part"));
    assert!(refused(1, |load| load.offset += 0x1000).contains("section '.text' is in no part"));
}

#[test]
fn variables_of_threads_are_those_of_the_sections() {
    for bytes in [0x10, 0x40, 1 << 40] {
        let error = refused(5, |thread| thread.bytes = bytes);
        assert!(error.contains("variables of threads are elsewhere"), "{error}");
    }
    let error = refused(5, |thread| thread.kind = spec::PT_NULL);
    assert!(error.contains("section '.tdata': no program header"), "{error}");
}

#[test]
fn one_of_a_kind_is_one() {
    let mut segments = library();
    segments.push(Segment { at: 8, ..segments[3] });
    assert!(checked(&segments).unwrap_err().contains("program header 8: a second one"));
    assert!(checked(&[]).unwrap_err().contains("no program header of a part"));
}
