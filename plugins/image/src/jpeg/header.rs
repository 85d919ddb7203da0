//! Markers and their segments: tables, the frame, and the beginning of scans.

use super::{Problem, bits::Codes, filled, scan};
use crate::decode::MOST_BYTES;

/// Most blocks for each byte of the file. A block takes at least a bit; a file with more blocks
/// than this is nearly all missing, and would make the decoder allocate memory for all of it.
const MOST_BLOCKS_A_BYTE: usize = 512;

/// Most scans: each goes over the whole image, however short it is.
const MOST_SCANS: usize = 100;

/// A plane of an image.
#[derive(Debug, Default, Clone)]
pub struct Component {
    pub id: u8,
    /// Horizontal and vertical sampling relative to the plane with the fewest samples.
    pub across: usize,
    pub down: usize,
    pub table: usize,
    /// Blocks in a row, and rows of blocks, including those that complete the last group.
    pub blocks: [usize; 2],
    /// Blocks that contain part of the image.
    pub own_blocks: [usize; 2],
    /// Coefficients, 64 for each block, in row order.
    pub coefficients: Vec<i16>,
}

/// An image's size and planes, with the current state of all tables.
#[derive(Debug, Default)]
pub struct Frame {
    pub width: usize,
    pub height: usize,
    pub progressive: bool,
    pub components: Vec<Component>,
    pub most: [usize; 2],
    pub quantisers: [Option<[u16; 64]>; 4],
    pub dc: [Option<Codes>; 4],
    pub ac: [Option<Codes>; 4],
    /// Groups of blocks between restarts; 0 for none.
    pub interval: usize,
    /// Size of the file.
    pub bytes: usize,
    has_jfif: bool,
    transform: Option<u8>,
}

impl Frame {
    /// Whether the first component is luminance: always, unless the file says that it stores red,
    /// green and blue.
    pub fn is_luma(&self) -> bool {
        let ids: Vec<u8> = self.components.iter().map(|one| one.id).collect();
        match self.transform {
            _ if self.components.len() == 1 || self.has_jfif => true,
            Some(transform) => transform != 0,
            None => ids != *b"RGB",
        }
    }

    /// Groups of blocks in a row, and rows of them.
    pub fn groups(&self) -> [usize; 2] {
        let [across, down] = self.most;
        [self.width.div_ceil(8 * across), self.height.div_ceil(8 * down)]
    }
}

struct Reader<'a> {
    data: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let (first, rest) =
            self.data.split_at_checked(count).ok_or("a header that ends too early")?;
        self.data = rest;
        Ok(first)
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        Ok(self.bytes(1)?[0])
    }

    fn number(&mut self) -> Result<usize, Problem> {
        let pair = self.bytes(2)?;
        Ok((usize::from(pair[0]) << 8) | usize::from(pair[1]))
    }
}

/// Height, width and channels of a file, as its frame says before its pixels begin; none where it does not.
pub fn shape(contents: &[u8]) -> Option<[u16; 3]> {
    let (mut at, mut found) = (2, None);
    loop {
        let rest = contents.get(at..)?;
        let skipped =
            rest.windows(2).position(|pair| pair[0] == 0xff && pair[1] != 0 && pair[1] != 0xff)?;
        at += skipped + 2;
        let marker = contents[at - 1];
        match marker {
            0x01 | 0xd0..=0xd8 => continue,
            // Pixels begin.
            0xda => return found,
            0xd9 => return None,
            _ => {}
        }
        let mut reader = Reader { data: &contents[at..] };
        let length = reader.number().ok()?;
        let body = reader.bytes(length.checked_sub(2)?).ok()?;
        at += length;
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if let (true, &[_, h, height, w, width, channels, ..]) = (is_frame, body) {
            let number = |high, low| u16::from_be_bytes([high, low]);
            found = Some([number(h, height), number(w, width), channels.into()]);
        }
    }
}

/// Reads a whole file, including coefficients. If it is truncated, returns the number of complete
/// rows of groups of blocks. The last row never counts as complete, since libjpeg waits for more
/// data before it outputs that row; no row does if all scans are needed first.
pub fn read(contents: &[u8], frame: &mut Frame) -> Result<Option<usize>, Problem> {
    frame.bytes = contents.len();
    let (mut at, mut scans, mut whole) = (2, 0, 0);
    loop {
        // Bytes before a marker are skipped, as fill bytes are.
        let skipped = contents.get(at..).unwrap_or_default();
        let found =
            skipped.windows(2).position(|pair| pair[0] == 0xff && pair[1] != 0 && pair[1] != 0xff);
        let Some(found) = found else {
            // The file ends within its pixels.
            let whole = if scans == 1 && !frame.progressive { whole } else { 0 };
            return if scans > 0 { Ok(Some(whole)) } else { Err("a jpeg without pixels".into()) };
        };
        at += found + 2;
        let marker = contents[at - 1];
        if marker == 0xd9 {
            return if scans > 0 { Ok(None) } else { Err("a jpeg without pixels".into()) };
        }
        if matches!(marker, 0x01 | 0xd0..=0xd8) {
            continue;
        }
        let mut reader = Reader { data: &contents[at..] };
        let length = reader.number()?;
        let body = reader.bytes(length.checked_sub(2).ok_or("a length that is none")?)?;
        at += length;
        if marker == 0xda {
            scans += 1;
            if scans > MOST_SCANS {
                return Err(Problem::Wrong(format!("more than {MOST_SCANS} scans")));
            }
            let (end, ended) = read_scan(contents, at, Reader { data: body }, frame)?;
            at = end;
            whole = ended.unwrap_or(frame.groups()[1] - 1);
        } else {
            segment(marker, Reader { data: body }, frame)?;
        }
    }
}

fn segment(marker: u8, mut body: Reader<'_>, frame: &mut Frame) -> Result<(), Problem> {
    match marker {
        0xdb => read_quantisers(body, frame),
        0xc4 => read_codes(body, frame),
        0xdd => {
            frame.interval = body.number()?;
            Ok(())
        }
        0xc0..=0xc2 => read_frame(marker, body, frame),
        // Lossless, hierarchical and arithmetic coding, and a height that follows later.
        0xc3 | 0xc5..=0xcf | 0xdc => Err(Problem::Other),
        0xe0 => {
            frame.has_jfif |= body.data.starts_with(b"JFIF\0");
            Ok(())
        }
        0xee => {
            if body.data.starts_with(b"Adobe") {
                frame.transform = body.data.get(11).copied().or(frame.transform);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Index of the coefficient at each position in the file's order.
pub const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];

fn read_quantisers(mut body: Reader<'_>, frame: &mut Frame) -> Result<(), Problem> {
    while !body.data.is_empty() {
        let head = body.byte()?;
        let mut table = [0; 64];
        for place in ZIGZAG {
            let value = if head >> 4 == 0 { body.byte()?.into() } else { body.number()? };
            table[usize::from(place)] = value as u16;
        }
        let slot = frame.quantisers.get_mut(usize::from(head & 15));
        *slot.ok_or("a table of quantisers beyond the fourth")? = Some(table);
    }
    Ok(())
}

fn read_codes(mut body: Reader<'_>, frame: &mut Frame) -> Result<(), Problem> {
    while !body.data.is_empty() {
        let head = body.byte()?;
        let mut counts = [0; 16];
        counts.copy_from_slice(body.bytes(16)?);
        let symbols = body.bytes(counts.iter().map(|count| usize::from(*count)).sum())?;
        let codes = Codes::new(&counts, symbols)?;
        let tables = if head >> 4 == 0 { &mut frame.dc } else { &mut frame.ac };
        let slot = tables.get_mut(usize::from(head & 15));
        *slot.ok_or("a table of codes beyond the fourth")? = Some(codes);
    }
    Ok(())
}

fn read_frame(marker: u8, mut body: Reader<'_>, frame: &mut Frame) -> Result<(), Problem> {
    if !frame.components.is_empty() {
        return Err("two frames".into());
    }
    let bits = body.byte()?;
    (frame.height, frame.width) = (body.number()?, body.number()?);
    let count = body.byte()?;
    if bits != 8 || ![1, 3].contains(&count) || frame.height == 0 {
        return Err(Problem::Other);
    }
    if frame.width == 0 {
        return Err("an image without width".into());
    }
    let bytes = frame.width as u64 * frame.height as u64 * u64::from(count);
    if bytes > MOST_BYTES {
        let (width, height) = (frame.width, frame.height);
        let why = format!(
            "{width} x {height} pixels are more than the {MOST_BYTES} bytes that are decoded"
        );
        return Err(Problem::Wrong(why));
    }
    frame.progressive = marker == 0xc2;
    for _ in 0..count {
        let (id, sampling, table) = (body.byte()?, body.byte()?, body.byte()?);
        let (across, down) = (usize::from(sampling >> 4), usize::from(sampling & 15));
        if !(1..=4).contains(&across) || !(1..=4).contains(&down) || table > 3 {
            return Err("a component with samples or a table that there are not".into());
        }
        let component = Component { id, across, down, table: table.into(), ..Component::default() };
        frame.components.push(component);
    }
    if let [only] = &mut frame.components[..] {
        // A single plane has nothing to be compared with.
        (only.across, only.down) = (1, 1);
    }
    let most = |of: fn(&Component) -> usize| frame.components.iter().map(of).max().unwrap_or(1);
    frame.most = [most(|one| one.across), most(|one| one.down)];
    let ([groups_across, groups_down], [most_across, most_down]) = (frame.groups(), frame.most);
    let blocks = frame.components.iter().map(|one| one.across * one.down).sum::<usize>();
    if (groups_across * groups_down * blocks) / MOST_BLOCKS_A_BYTE > frame.bytes {
        let (width, height, bytes) = (frame.width, frame.height, frame.bytes);
        return Err(Problem::Wrong(format!("{width} x {height} pixels in {bytes} bytes")));
    }
    for one in &mut frame.components {
        let own =
            |size: usize, samples: usize, most: usize| (size * samples).div_ceil(most).div_ceil(8);
        one.own_blocks =
            [own(frame.width, one.across, most_across), own(frame.height, one.down, most_down)];
        one.blocks = [groups_across * one.across, groups_down * one.down];
        one.coefficients = filled(one.blocks[0] * one.blocks[1] * 64, 0)?;
    }
    Ok(())
}

fn read_scan(
    contents: &[u8],
    at: usize,
    mut body: Reader<'_>,
    frame: &mut Frame,
) -> Result<(usize, Option<usize>), Problem> {
    let count = usize::from(body.byte()?);
    if frame.components.is_empty() || count == 0 || count > frame.components.len() {
        return Err("a scan of planes that there are not".into());
    }
    let mut planes: Vec<(usize, usize, usize)> = Vec::new();
    for _ in 0..count {
        let (id, tables) = (body.byte()?, body.byte()?);
        let found = frame.components.iter().position(|one| one.id == id);
        let found = found.filter(|at| planes.iter().all(|(known, ..)| known != at));
        let found = found.ok_or("a scan of a plane that there is not")?;
        planes.push((found, usize::from(tables >> 4), usize::from(tables & 15)));
    }
    let (start, end, bits) = (body.byte()?, body.byte()?, body.byte()?);
    let band = match frame.progressive {
        true => scan::Band { start, end, high: bits >> 4, low: bits & 15 },
        false => scan::Band { start: 0, end: 63, high: 0, low: 0 },
    };
    scan::read(contents, at, &planes, band, frame)
}
