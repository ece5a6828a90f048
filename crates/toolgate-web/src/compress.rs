//! Compresses responses: gzip (RFC 1952) with the fixed codes of deflate (RFC 1951).
//!
//! Only an encoder is needed, and the pages are small, so the fixed codes are enough.

/// Shorter texts gain nothing.
pub(crate) const SHORTEST: usize = 600;
/// How far back a repetition may be.
const WINDOW: usize = 32 * 1024;
const SHORTEST_MATCH: usize = 3;
const LONGEST_MATCH: usize = 258;
/// How many earlier places are compared.
const COMPARED: usize = 48;
const HASHES: usize = 1 << 15;
const NOWHERE: u32 = u32::MAX;
const END_OF_BLOCK: u32 = 256;

/// The first length of each code, and how many further bits it has.
const LENGTHS: [(u16, u8); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];

/// The text as a gzip file. Longer ones than 4 GB are not for pages.
pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    // The method is deflate; no name, no time, an unknown system.
    let mut bits =
        BitWriter { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], held: 0, count: 0 };
    // One block, which is the last, with the fixed codes.
    bits.put(0b011, 3);
    let (mut newest, mut before) = (vec![NOWHERE; HASHES], vec![NOWHERE; WINDOW]);
    let mut place = 0;
    while place < text.len() {
        let found = repetition(text, place, &newest, &before);
        let taken = if let Some((length, distance)) = found {
            bits.repeat(length, distance);
            length
        } else {
            bits.symbol(u32::from(text[place]));
            1
        };
        for seen in place..place + taken {
            if let Some(hash) = hash(text, seen) {
                before[seen % WINDOW] = newest[hash];
                newest[hash] = u32::try_from(seen).unwrap_or(NOWHERE);
            }
        }
        place += taken;
    }
    bits.symbol(END_OF_BLOCK);
    let mut bytes = bits.end();
    bytes.extend(checksum(text).to_le_bytes());
    // The length counts modulo 2^32.
    bytes.extend(u32::try_from(text.len() & 0xffff_ffff).unwrap_or_default().to_le_bytes());
    bytes
}

/// The longest text before `place` that stands there again: its length and how far back it is.
fn repetition(text: &[u8], place: usize, newest: &[u32], before: &[u32]) -> Option<(usize, usize)> {
    let limit = LONGEST_MATCH.min(text.len() - place);
    let mut candidate = newest[hash(text, place)?];
    let (mut length, mut distance) = (SHORTEST_MATCH - 1, 0);
    for _ in 0..COMPARED {
        let earlier = candidate as usize;
        if candidate == NOWHERE || earlier >= place || place - earlier > WINDOW {
            break;
        }
        let same = (0..limit).take_while(|at| text[earlier + at] == text[place + at]).count();
        if same > length {
            (length, distance) = (same, place - earlier);
        }
        if length == limit {
            break;
        }
        let next = before[earlier % WINDOW];
        // An entry that was overwritten leads forward.
        if next != NOWHERE && next >= candidate {
            break;
        }
        candidate = next;
    }
    (length >= SHORTEST_MATCH).then_some((length, distance))
}

/// The hash of the three bytes at a place; `None` at the end.
fn hash(text: &[u8], place: usize) -> Option<usize> {
    let [a, b, c] = *text.get(place..place + SHORTEST_MATCH)? else { return None };
    let word = u32::from(a) | u32::from(b) << 8 | u32::from(c) << 16;
    Some((word.wrapping_mul(0x9e37_79b1) >> 17) as usize % HASHES)
}

/// Writes bits, the lowest of a byte first.
struct BitWriter {
    bytes: Vec<u8>,
    held: u64,
    count: u32,
}

impl BitWriter {
    fn put(&mut self, bits: u32, count: u32) {
        self.held |= u64::from(bits) << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push((self.held & 0xff) as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// A code, whose highest bit comes first.
    fn code(&mut self, code: u32, count: u32) {
        self.put(code.reverse_bits() >> (32 - count), count);
    }

    /// A byte, the end, or the code of a length.
    fn symbol(&mut self, symbol: u32) {
        match symbol {
            0..144 => self.code(0x30 + symbol, 8),
            144..256 => self.code(0x190 + symbol - 144, 9),
            256..280 => self.code(symbol - 256, 7),
            _ => self.code(0xc0 + symbol - 280, 8),
        }
    }

    fn repeat(&mut self, length: usize, distance: usize) {
        let index = LENGTHS.partition_point(|(first, _)| usize::from(*first) <= length) - 1;
        let (first, more) = LENGTHS[index];
        self.symbol(257 + small(index));
        self.put(small(length - usize::from(first)), u32::from(more));
        // Two codes for each power of two, from 4 on.
        let back = small(distance - 1);
        let (code, more) = if back < 4 {
            (back, 0)
        } else {
            let more = back.ilog2() - 1;
            (2 * more + (back >> more), more)
        };
        self.code(code, 5);
        self.put(back & ((1 << more) - 1), more);
    }

    fn end(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
        self.bytes
    }
}

/// A length or a distance, which are below 2^16.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The CRC-32 of a text.
fn checksum(text: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0_u32;
        while index < 256 {
            let (mut value, mut bit) = (index, 0);
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[index as usize] = value;
            index += 1;
        }
        table
    };
    let step = |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8);
    !text.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };

    use super::*;

    /// What `gzip` of the system makes of it; `None` where there is none.
    fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
        let mut child = Command::new("gzip")
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut stdin = child.stdin.take()?;
        let packed = packed.to_vec();
        let writing = std::thread::spawn(move || stdin.write_all(&packed));
        let output = child.wait_with_output().ok()?;
        writing.join().unwrap().unwrap();
        assert!(output.status.success(), "gzip refused it");
        Some(output.stdout)
    }

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(100_000)
        .collect();
        // Repetitions at every distance of the window, and beyond it.
        let far: Vec<u8> = (1..40_000_usize)
            .step_by(613)
            .flat_map(|gap| [&noise[..gap.min(200)], &noise[gap..gap + 300]].concat())
            .collect();
        let page = include_str!("../assets/page.css").repeat(9);
        for text in [
            &b""[..],
            b"a",
            b"aaaa",
            &[0xff; 1_000],
            "\u{202e}äöü".as_bytes(),
            page.as_bytes(),
            &noise,
            &far,
        ] {
            let Some(back) = unpacked(&gzip(text)) else { return };
            assert!(back == text, "{} bytes became {}", text.len(), back.len());
        }
    }

    #[test]
    fn a_page_becomes_smaller() {
        let script = include_str!("../assets/htmx/htmx.min.js");
        let packed = gzip(script.as_bytes()).len();
        assert!(packed * 2 < script.len(), "{packed} of {}", script.len());
    }
}
