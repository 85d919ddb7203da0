//! Checks program headers against the file, each other, and the sections.

use object::elf::{
    self as spec, PF_R, PF_W, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_PROPERTY, PT_GNU_RELRO,
    PT_LOAD, PT_NOTE, PT_PHDR, PT_TLS,
};

/// The smallest page of systems that use ELF files.
const PAGE: u64 = 4096;
/// Limit of user space addresses on 64-bit systems.
const SPACE: u64 = 1 << 47;
/// Most bytes of memory of a library.
const MOST_BYTES: u64 = 1 << 40;
/// Greatest plausible alignment.
const MOST_ALIGN: u64 = 1 << 30;

/// A program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its index in the table.
    pub at: usize,
    /// The type of the segment.
    pub kind: spec::ProgramType,
    /// Permissions.
    pub flags: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Address, from the library's first byte.
    pub address: u64,
    /// Bytes in the file.
    pub file_bytes: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// Alignment; 0 and 1 mean none.
    pub align: u64,
}

/// A section that exists while the library runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Address, from the library's first byte.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in memory.
    pub bytes: u64,
    /// Whether its bytes are in the file; else they are zero.
    pub in_file: bool,
    /// Whether the library may write to it.
    pub writable: bool,
    /// Whether it is code.
    pub executable: bool,
    /// Whether each thread has its own copy.
    pub per_thread: bool,
}

/// The mapped segments of a library, and other facts from its program headers.
#[derive(Debug)]
pub struct Layout {
    /// Sorted by address.
    loads: Vec<Segment>,
    thread: Option<Segment>,
    sealed: Option<Segment>,
}

fn floor(address: u64) -> u64 {
    address & !(PAGE - 1)
}

/// Rounds an address in user space up to a page.
fn ceil(address: u64) -> u64 {
    floor(address + (PAGE - 1))
}

impl Segment {
    /// The end in memory; only after [`Segment::check_ranges`].
    fn end(&self) -> u64 {
        self.address + self.bytes
    }

    fn damaged(&self, what: impl std::fmt::Display) -> String {
        format!("program header {}: {what}", self.at)
    }

    fn has(&self, flag: spec::ProgramFlags) -> bool {
        self.flags & flag.0 != 0
    }

    /// Checks that both ranges are valid.
    fn check_ranges(&self, file: u64) -> Result<(), String> {
        let in_file = self.offset.checked_add(self.file_bytes).is_some_and(|end| end <= file);
        if !in_file {
            let (from, bytes) = (self.offset, self.file_bytes);
            return Err(self.damaged(format!(
                "{bytes} bytes from {from} on reach past the end of the file, which has {file}"
            )));
        }
        let in_memory = self.address.checked_add(self.bytes).is_some_and(|end| end <= SPACE);
        if !in_memory {
            let (from, bytes) = (self.address, self.bytes);
            return Err(
                self.damaged(format!("{bytes} bytes at address {from:#x} are in no memory"))
            );
        }
        if self.align > 1 && (!self.align.is_power_of_two() || self.align > MOST_ALIGN) {
            return Err(self.damaged(format!("alignment {}", self.align)));
        }
        Ok(())
    }

    /// Checks a mapped segment by itself.
    fn check_load(&self) -> Result<(), String> {
        if self.file_bytes > self.bytes {
            let (in_file, bytes) = (self.file_bytes, self.bytes);
            return Err(self.damaged(format!("{in_file} bytes in the file, {bytes} in memory")));
        }
        if self.align < PAGE {
            let align = self.align;
            return Err(self.damaged(format!("alignment {align}, expected {PAGE} or more")));
        }
        if self.offset % self.align != self.address % self.align {
            return Err(self.damaged("its places in file and memory are aligned differently"));
        }
        match self.has(PF_R) {
            true => Ok(()),
            false => Err(self.damaged("it cannot be read")),
        }
    }
}

impl Layout {
    /// The layout that the program headers of a file of `file` bytes describe.
    ///
    /// # Errors
    /// A description of the damage.
    pub fn new(segments: &[Segment], file: u64) -> Result<Layout, String> {
        let of = |kind| segments.iter().filter(move |segment| segment.kind == kind).copied();
        let mut layout = Layout {
            loads: of(PT_LOAD).filter(|segment| segment.bytes > 0).collect(),
            thread: of(PT_TLS).next(),
            sealed: of(PT_GNU_RELRO).next(),
        };
        layout.check_loads(file)?;
        for kind in [PT_DYNAMIC, PT_TLS, PT_GNU_RELRO] {
            if let Some(second) = of(kind).nth(1) {
                return Err(second.damaged("a second one of a kind of which there is one"));
            }
        }
        for kind in [PT_PHDR, PT_NOTE, PT_GNU_PROPERTY, PT_GNU_EH_FRAME, PT_DYNAMIC] {
            of(kind).try_for_each(|segment| layout.check_part(&segment, file))?;
        }
        layout.thread.iter().try_for_each(|thread| layout.check_thread(thread, file))?;
        layout.sealed.iter().try_for_each(|sealed| layout.check_sealed(sealed))?;
        layout.loads.shrink_to_fit();
        Ok(layout)
    }

    fn check_loads(&self, file: u64) -> Result<(), String> {
        let (Some(first), Some(last)) = (self.loads.first(), self.loads.last()) else {
            return Err("no program header of a part that is mapped".to_owned());
        };
        for load in &self.loads {
            load.check_ranges(file)?;
            load.check_load()?;
        }
        for pair in self.loads.windows(2) {
            if floor(pair[1].address) < ceil(pair[0].end()) {
                let before = pair[0].at;
                return Err(pair[1].damaged(format!(
                    "address {:#x} is not past the end of program header {before}",
                    pair[1].address
                )));
            }
        }
        match last.end() - floor(first.address) {
            bytes if bytes > MOST_BYTES => {
                Err(last.damaged(format!("the library is of {bytes} bytes in memory")))
            }
            _ => Ok(()),
        }
    }

    /// Whether one segment maps the whole range.
    pub fn covers(&self, address: u64, bytes: u64) -> bool {
        let end = address.checked_add(bytes);
        self.loads
            .iter()
            .any(|load| load.address <= address && end.is_some_and(|end| end <= load.end()))
    }

    /// The segment that maps this range of the file to this address.
    fn maps(&self, offset: u64, address: u64, bytes: u64) -> Option<&Segment> {
        self.loads.iter().find(|load| {
            let (into, into_file) =
                (address.checked_sub(load.address), offset.checked_sub(load.offset));
            let end = into.and_then(|into| into.checked_add(bytes));
            into == into_file && end.is_some_and(|end| end <= load.file_bytes)
        })
    }

    /// Checks a part that the linker reads at the place in its program header.
    fn check_part(&self, part: &Segment, file: u64) -> Result<(), String> {
        part.check_ranges(file)?;
        if part.bytes > part.file_bytes {
            let (in_file, bytes) = (part.file_bytes, part.bytes);
            return Err(part.damaged(format!("{in_file} bytes in the file, {bytes} in memory")));
        }
        let Some(load) = self.maps(part.offset, part.address, part.file_bytes) else {
            return Err(part.damaged("what it describes is in no part that is mapped"));
        };
        if part.kind == PT_DYNAMIC && part.has(PF_W) && !load.has(PF_W) {
            return Err(part.damaged(format!(
                "it can be written, program header {}, which maps it, cannot",
                load.at
            )));
        }
        Ok(())
    }

    fn check_thread(&self, thread: &Segment, file: u64) -> Result<(), String> {
        thread.check_ranges(file)?;
        if thread.file_bytes > thread.bytes {
            return Err(thread.damaged("more bytes in the file than in memory"));
        }
        let is_mapped = thread.file_bytes == 0
            || self.maps(thread.offset, thread.address, thread.file_bytes).is_some();
        match is_mapped {
            true => Ok(()),
            false => Err(thread.damaged("what threads begin with is in no part that is mapped")),
        }
    }

    /// Checks the part that becomes read-only after relocation.
    fn check_sealed(&self, sealed: &Segment) -> Result<(), String> {
        let end = sealed.address.checked_add(sealed.bytes).filter(|end| *end <= SPACE);
        let within = |load: &&Segment| {
            load.address <= sealed.address && end.is_some_and(|end| end <= ceil(load.end()))
        };
        match self.loads.iter().find(within) {
            Some(load) if load.has(PF_W) => Ok(()),
            _ => Err(sealed.damaged("what becomes read-only is in no part that can be written")),
        }
    }

    /// Checks that each section is mapped at its place, with its permissions.
    ///
    /// # Errors
    /// A description of the damage.
    pub fn check_sections(&self, sections: &[Section]) -> Result<(), String> {
        self.check_thread_sections(sections)?;
        for section in sections.iter().filter(|section| section.in_file || !section.per_thread) {
            let Section { name, address, offset, bytes, .. } = section;
            let load = match section.in_file {
                true => self.maps(*offset, *address, *bytes),
                false => self.loads.iter().find(|load| {
                    let end = address.checked_add(*bytes);
                    load.address <= *address && end.is_some_and(|end| end <= load.end())
                }),
            };
            let Some(load) = load else {
                return Err(format!("section '{name}' is in no part that is mapped"));
            };
            let (cannot_write, cannot_run) = (!load.has(PF_W), !load.has(PF_X));
            if (section.writable && cannot_write) || (section.executable && cannot_run) {
                let what = if section.executable { "run" } else { "be written" };
                return Err(load.damaged(format!("section '{name}', which it maps, cannot {what}")));
            }
            self.check_unsealed(section)?;
        }
        Ok(())
    }

    /// Checks that the sections of thread-local variables match their program header.
    fn check_thread_sections(&self, sections: &[Section]) -> Result<(), String> {
        let mut own = sections.iter().filter(|section| section.per_thread).peekable();
        let Some(thread) = &self.thread else {
            return match own.peek() {
                Some(Section { name, .. }) => {
                    Err(format!("section '{name}': no program header of variables of threads"))
                }
                None => Ok(()),
            };
        };
        let bounds = own.try_fold((u64::MAX, 0), |(begin, end): (u64, u64), section| {
            let past = section.address.checked_add(section.bytes)?;
            Some((begin.min(section.address), end.max(past)))
        });
        let fits = bounds.is_some_and(|(begin, end)| {
            let most = end.checked_next_multiple_of(thread.align.max(1));
            thread.address <= begin && end <= thread.end() && Some(thread.end()) <= most
        });
        match fits || thread.bytes == 0 {
            true => Ok(()),
            false => Err(thread.damaged("variables of threads are elsewhere, by the sections")),
        }
    }

    /// Checks that variables stay writable.
    fn check_unsealed(&self, section: &Section) -> Result<(), String> {
        let Some(sealed) = &self.sealed else { return Ok(()) };
        let name = section.name.as_str();
        let variables = name == ".data" || name == ".bss";
        let (begin, end) = (floor(sealed.address), floor(sealed.end()));
        match variables && section.address < end && begin < section.address + section.bytes {
            true => Err(sealed.damaged(format!("it makes section '{name}' read-only"))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
