//! Reads the bits and codes of a scan.

use super::Problem;

/// The bits of a scan, highest bit of a byte first. A marker ends them; zeros follow.
pub struct Bits<'a> {
    data: &'a [u8],
    at: usize,
    held: u64,
    count: u32,
    /// Number of zeros that were made up.
    missing: u32,
    /// Whether bits were requested after the end of the file.
    pub starved: bool,
}

impl<'a> Bits<'a> {
    pub fn new(data: &'a [u8], at: usize) -> Bits<'a> {
        Bits { data, at, held: 0, count: 0, missing: 0, starved: false }
    }

    /// Fills the buffer: whether a file counts as read completely depends on how far ahead it is
    /// read.
    fn fill(&mut self) {
        while self.count <= 56 {
            let byte = match (self.data.get(self.at), self.data.get(self.at + 1)) {
                (Some(0xff), Some(0)) => {
                    self.at += 2;
                    0xff
                }
                (Some(0xff), next) => {
                    self.starved |= next.is_none();
                    self.missing = self.missing.saturating_add(8);
                    0
                }
                (None, _) => {
                    self.starved = true;
                    self.missing = self.missing.saturating_add(8);
                    0
                }
                (Some(&byte), _) => {
                    self.at += 1;
                    byte
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Whether bits were taken after the end of the file.
    pub fn is_beyond(&self) -> bool {
        self.missing > self.count
    }

    /// Makes `count` bits available.
    fn need(&mut self, count: u32) {
        if self.count < count {
            self.fill();
        }
    }

    /// The next bits, without taking them.
    fn peek(&self, count: u32) -> u32 {
        if count == 0 { 0 } else { (self.held >> (64 - count)) as u32 }
    }

    fn skip(&mut self, count: u32) {
        self.held = self.held.checked_shl(count).unwrap_or(0);
        self.count -= count;
    }

    /// Takes up to 16 bits.
    pub fn take(&mut self, count: u32) -> i32 {
        self.need(count);
        let bits = self.peek(count);
        self.skip(count);
        bits as i32
    }

    pub fn bit(&mut self) -> bool {
        self.take(1) == 1
    }

    /// A number of `count` bits, of which the lower half represents negative ones.
    pub fn signed(&mut self, count: u32) -> i32 {
        let bits = self.take(count);
        if count > 0 && bits < 1 << (count - 1) { bits - (1 << count) + 1 } else { bits }
    }

    /// Whether only the end of the image follows.
    pub fn ends_file(&mut self) -> bool {
        let at = self.next_marker();
        self.data.get(at + 1).is_none_or(|marker| *marker == 0xd9)
    }

    /// Skips to the next marker, past the rest of a byte and everything that is not a marker.
    pub fn next_marker(&mut self) -> usize {
        (self.held, self.count, self.missing) = (0, 0, 0);
        while let Some(&byte) = self.data.get(self.at) {
            let next = self.data.get(self.at + 1).copied().unwrap_or(0);
            if byte == 0xff && next != 0 && next != 0xff {
                break;
            }
            self.at += 1;
        }
        self.at
    }

    /// Skips a restart marker, which resets predictions; returns whether there was one.
    pub fn restart(&mut self) -> bool {
        let at = self.next_marker();
        let is_one = self.data.get(at + 1).is_some_and(|marker| (0xd0..=0xd7).contains(marker));
        if is_one {
            self.at += 2;
        }
        is_one
    }
}

/// Codes of up to 16 bits.
#[derive(Debug, Clone)]
pub struct Codes {
    /// For each prefix of eight bits, length and symbol of its code; 0 if the code is longer.
    short: Vec<(u8, u8)>,
    /// For each length, the first longer code (in 16 bits), and the offset from a code to its
    /// symbol's place.
    ends: [u32; 17],
    places: [i32; 17],
    symbols: Vec<u8>,
}

impl Codes {
    /// Codes from the number of codes of each length, and their symbols.
    pub fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Codes, Problem> {
        let (mut ends, mut places) = ([0; 17], [0; 17]);
        let mut short = vec![(0, 0); 256];
        let (mut code, mut place) = (0u32, 0usize);
        for length in 1..=16u32 {
            let count = usize::from(counts[length as usize - 1]);
            places[length as usize] = place as i32 - code as i32;
            for _ in 0..count {
                if code >= 1 << length {
                    return Err("codes that are more than their lengths allow".into());
                }
                if length <= 8 {
                    let first = (code << (8 - length)) as usize;
                    short[first..first + (1 << (8 - length))].fill((length as u8, symbols[place]));
                }
                (code, place) = (code + 1, place + 1);
            }
            ends[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Ok(Codes { short, ends, places, symbols: symbols.to_vec() })
    }

    /// The symbol of the next code.
    pub fn next(&self, bits: &mut Bits<'_>) -> Result<u8, Problem> {
        bits.need(8);
        let (length, symbol) = self.short[bits.peek(8) as usize];
        if length > 0 {
            bits.skip(length.into());
            return Ok(symbol);
        }
        let mut length = 8;
        while length < 16 {
            length += 1;
            bits.need(length as u32);
            let ahead = bits.peek(16);
            if ahead < self.ends[length] {
                bits.skip(length as u32);
                let place = (ahead >> (16 - length)) as i32 + self.places[length];
                return self
                    .symbols
                    .get(place as usize)
                    .copied()
                    .ok_or("a code that is none".into());
            }
        }
        Err("a code that is none".into())
    }
}
